package live

import (
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Input is what [Decide] decides on. It is not changed.
type Input struct {
	// Config is the wanted configuration, defaulted and valid.
	Config *runnerconfig.Config
	// Generation counts the configurations given, without those for which [GenerationAlone] holds.
	// A new one allows given-up steps to be tried again, even if the configuration is equal.
	Generation int
	Machine    Machine
	Display    DisplaySecret
	Power      Power
	Observed   Observed
	Memory     Memory
	Now        time.Time
}

// Machine is what was fixed when QEMU started.
type Machine struct {
	// Started is the configuration that QEMU was started with.
	Started *runnerconfig.Config
	// RAM is the size of the memory in bytes.
	RAM int64
	// HTTPImages reports whether QEMU can read images from http and https (its curl driver).
	HTTPImages bool
	// Ticketing reports whether the display was started with a password. QEMU cannot change that at
	// run time.
	Ticketing bool
	// KVM reports whether the host's processors execute the guest. Otherwise QEMU emulates them in
	// software, and none is ever unplugged: see [UnplugCPU].
	KVM bool
	// GrowsDisks reports whether disks grow to their Size while the machine runs. In a cluster, a
	// volume claim has to grow first, which a runner cannot observe: there only GrowTo counts.
	GrowsDisks bool
	// Ports is the number of root ports for hot-plugging; 0 for machines that were created before
	// these existed.
	Ports int
}

// DisplaySecret is the content of the display secret.
type DisplaySecret struct {
	// Password is a digest of the password; empty if there is none.
	Password string
	// Long reports whether the password is longer than [VNCPasswordBytes].
	Long bool
	// Expiry is the time in QEMU's form: "now", "never", "+SECONDS", or seconds
	// since 1970. Empty means never.
	Expiry string
	// Problem is why the secret cannot be read; empty if it can.
	Problem string
}

// Power is the last request to pause or resume the machine. The zero value is none: a machine that
// was paused by another client is left alone.
type Power struct {
	// Number counts the requests.
	Number int
	// Pause requests a pause, otherwise to resume.
	Pause bool
}

// Observed is what QEMU reported. The lists are in no particular order.
type Observed struct {
	CPUs []CPUSlot
	// Translation is an emulating QEMU's report on its translated code (x-query-jit). It is used
	// while there are fewer CPUs than wanted; empty if unknown.
	Translation string
	// Balloon is the memory in bytes that the balloon leaves to the guest; nil if the machine has
	// no balloon.
	Balloon *int64
	// NoBalloonDriver reports that, as far as QEMU can tell, the guest has not loaded a balloon
	// driver yet. It is used while the balloon has another size than wanted.
	NoBalloonDriver bool
	Drives          []Drive
	Disks           []Disk
	// Attached are the machine's disks of attachments.
	Attached []Attached
	// USBDevices are the ids of the host's USB devices that the machine has, also of those not
	// plugged into the host.
	USBDevices []string
	// RunState is QEMU's run state, such as "running".
	RunState string
	// IOError is the error for which the machine is paused, if it is.
	IOError *IOError
	// Resets counts the resets of the machine, whatever caused them.
	Resets int
}

// CPUSlot is a place for a processor.
type CPUSlot struct {
	// Driver is the device to plug.
	Driver string
	// Props are the slot's position in the machine.
	Props map[string]int64
	// QOMPath is the processor in it; empty while the slot is free.
	QOMPath string
}

// Drive is a CD drive.
type Drive struct {
	// ID is the device's: "cd0" for the first drive of the configuration.
	ID string
	// TrayOpen and Locked are the state of the tray.
	TrayOpen, Locked bool
	// Medium is the file or URL in the drive; empty if there is none.
	Medium string
}

// Disk is a disk other than a CD.
type Disk struct {
	// ID is the device's: "disk0" for the first one of the configuration.
	ID string
	// Node is the block node with its content.
	Node string
	// Size is the size that the guest can have, in bytes.
	Size int64
}

// Attached is a disk of an attachment.
type Attached struct {
	// UID is the attachment's; empty without a device, when only the image or the connection to its
	// exporter is open.
	UID string
	// Port is its root port, see qemucmd.PortID.
	Port int
}

// IOError is an error of a disk.
type IOError struct {
	// Device and File identify the disk.
	Device, File string
	// Reason is the error, for people.
	Reason string
	// NoSpace reports that the host's storage is full; Free is its free space now, in bytes.
	NoSpace bool
	Free    int64
}

// Decision is what [Decide] returns.
type Decision struct {
	// Steps are to be executed in order. If one fails, the others are still to be tried.
	Steps []Step
	// Memory is for the next call.
	Memory Memory
	// Conditions are always the same types in the same order, except for USBDevicesAttached, which
	// only machines with USB devices of their host have.
	Conditions []Condition
	// Attachments report all attachments of the configuration, in its order.
	Attachments []Attachment
	// Disks report the disks of the configuration that have a size to grow to, in its order.
	Disks []DiskSize
	// Wake is when to decide again without an event; zero means only after an event.
	Wake time.Time
}

// Phase is the phase of an attachment.
type Phase string

// Attachment is the state of an attachment of the configuration.
type Attachment struct {
	UID   string `json:"uid"`
	Name  string `json:"name"`
	Phase Phase  `json:"phase"`
	// Place is the machine's place for plugged disks that it has in the guest, counted from 1; 0
	// while it has none.
	Place int `json:"place,omitempty"`
	// Message is what it waits for, or what went wrong.
	Message string `json:"message,omitempty"`
}

// DiskSize is the size in the guest of a disk that exists by itself.
type DiskSize struct {
	// Name is the disk's name in its machine.
	Name string `json:"name"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Message is why QEMU refused to grow it to the configured size.
	Message string `json:"message,omitempty"`
}
