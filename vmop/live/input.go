package live

import (
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Input is what [Decide] decides on. Nothing in it is changed.
type Input struct {
	// Config is the wanted configuration, defaulted and valid.
	Config *runnerconfig.Config
	// Generation counts the configurations given, without those for which
	// [GenerationAlone] holds. A new one allows steps that were given up to be
	// tried again, also if it says the same.
	Generation int
	Machine    Machine
	Display    DisplaySecret
	Power      Power
	Observed   Observed
	Memory     Memory
	Now        time.Time
}

// Machine is what was settled when QEMU started.
type Machine struct {
	// Started is the configuration that QEMU was started with.
	Started *runnerconfig.Config
	// RAM is the size of the memory in bytes.
	RAM int64
	// HTTPImages says that QEMU can read images from http and https (its curl
	// driver).
	HTTPImages bool
	// Ticketing says that the display was started with a password. QEMU cannot
	// change that at run time.
	Ticketing bool
	// KVM says that the host's processors execute the guest. Otherwise QEMU
	// emulates them in software, and none is ever unplugged: [UnplugCPU] has why.
	KVM bool
	// GrowsDisks says that disks grow to their Size while the machine runs. In a cluster
	// a volume claim has to grow first, of which a runner knows nothing: there GrowTo
	// alone says it.
	GrowsDisks bool
	// Ports is the number of root ports for what is plugged; 0 of machines that were made
	// before there were any.
	Ports int
}

// DisplaySecret is what the files of the display secret say.
type DisplaySecret struct {
	// Password is a digest of the password; empty means that there is none.
	Password string
	// Long says that the password is longer than [VNCPasswordBytes].
	Long bool
	// Expiry is the time in QEMU's form: "now", "never", "+SECONDS", or seconds
	// since 1970. Empty means never.
	Expiry string
	// Problem says why the secret cannot be read; empty if it can.
	Problem string
}

// Power is the last request to pause or resume the machine. The zero value is none: a machine that
// was paused by another client is left alone.
type Power struct {
	// Number counts the requests.
	Number int
	// Pause asks for a pause, otherwise to resume.
	Pause bool
}

// Observed is what QEMU reported. The order of the lists has no meaning.
type Observed struct {
	CPUs []CPUSlot
	// Translation is what an emulating QEMU says of its translated code (x-query-jit). It
	// matters while there are fewer CPUs than wanted; empty if nobody says.
	Translation string
	// Balloon is the memory in bytes that the balloon leaves to the guest; nil
	// if the machine has no balloon.
	Balloon *int64
	// NoBalloonDriver says that the guest has not had a driver for the balloon
	// yet, as far as QEMU can tell. It matters while the balloon has another size
	// than wanted.
	NoBalloonDriver bool
	Drives          []Drive
	Disks           []Disk
	// Attached are the disks of attachments that the machine has.
	Attached []Attached
	// USBDevices are the ids of the host's USB devices that the machine has, whether they
	// are plugged into the host or not.
	USBDevices []string
	// RunState is QEMU's run state, such as "running".
	RunState string
	// IOError describes the error for which the machine is paused, if it is.
	IOError *IOError
	// Resets counts the resets of the machine, whoever caused them.
	Resets int
}

// CPUSlot is a place for a processor.
type CPUSlot struct {
	// Driver is the device to plug.
	Driver string
	// Props tell where the slot is in the machine.
	Props map[string]int64
	// QOMPath is the processor in it; empty while the slot is free.
	QOMPath string
}

// Drive is a CD drive.
type Drive struct {
	// ID of the device: "cd0" for the first drive of the configuration.
	ID string
	// TrayOpen and Locked are the state of the tray.
	TrayOpen, Locked bool
	// Medium is the file or URL in the drive; empty if there is none.
	Medium string
}

// Disk is a disk that is no CD.
type Disk struct {
	// ID of the device: "disk0" for the first one of the configuration.
	ID string
	// Node is the block node with its content.
	Node string
	// Size is what the guest can have of it, in bytes.
	Size int64
}

// Attached is a disk of an attachment.
type Attached struct {
	// UID is that of the attachment; empty if the device is gone, or was never there, and
	// only the image, or the way to its exporter, is open.
	UID string
	// Port is the root port, qemucmd.PortID, that it is at.
	Port int
}

// IOError is an error of a disk.
type IOError struct {
	// Device and File say which disk it is.
	Device, File string
	// Reason is the error, for people.
	Reason string
	// NoSpace says that the storage of the host is full, and Free how many bytes
	// it has left now.
	NoSpace bool
	Free    int64
}

// Decision is what [Decide] returns.
type Decision struct {
	// Steps are to be executed in their order. One that fails does not keep the
	// others from being tried.
	Steps []Step
	// Memory is for the next call.
	Memory Memory
	// Conditions are always the same types in the same order, but for USBDevicesAttached,
	// which only machines have that have USB devices of their host.
	Conditions []Condition
	// Attachments tell of all attachments of the configuration, in its order.
	Attachments []Attachment
	// Disks tell of the disks of the configuration that have a size to grow to, in its
	// order.
	Disks []DiskSize
	// Wake is when to decide again although nothing happened; zero means not
	// before an event.
	Wake time.Time
}

// Phase is how far an attachment is.
type Phase string

// Attachment tells of an attachment of the configuration.
type Attachment struct {
	UID   string `json:"uid"`
	Name  string `json:"name"`
	Phase Phase  `json:"phase"`
	// Place is at which of the machine's places for what is plugged the guest has it,
	// counted from 1; 0 while it has it not.
	Place int `json:"place,omitempty"`
	// Message says what is waited for, or what went wrong.
	Message string `json:"message,omitempty"`
}

// DiskSize is what the guest has of a disk that exists by itself.
type DiskSize struct {
	// Name is the disk's within its machine.
	Name string `json:"name"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Message is why that is less than configured, if QEMU has refused.
	Message string `json:"message,omitempty"`
}
