package runnerconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Config is the content of config.yaml.
type Config struct {
	Runner Runner `json:"/Runner"`
}

// Runner configures one runner and the machine that it runs.
type Runner struct {
	// Generation is metadata.generation of the VirtualMachine that the file was made from, for the
	// runner's reports; 0 is none. VM-Operator has no such key.
	Generation int64 `json:"generation,omitempty"`
	// MachineUID is the metadata.uid of a new VirtualMachine of the same name, to which the runner
	// is to report: the previous one was deleted while its machine was kept. If it is empty, the
	// runner keeps its VirtualMachine. VM-Operator has no such key.
	MachineUID string `json:"machineUid,omitempty"`
	// Namespace is the VirtualMachine's, for a runner outside of a pod.
	Namespace string `json:"namespace,omitempty"`
	// DataDir keeps what must survive: the UUID, firmware variables, TPM state.
	DataDir string `json:"dataDir,omitempty"`
	// RuntimeDir keeps sockets and process ids while the machine runs.
	RuntimeDir string `json:"runtimeDir,omitempty"`
	// Template names a custom machine type; see qemucmd.IsStandardTemplate.
	Template string `json:"template,omitempty"`
	// UpdateTemplate re-reads the template at each start instead of keeping the
	// copy made at the first one.
	UpdateTemplate bool `json:"updateTemplate,omitempty"`
	// GuestShutdownStops makes a power-off by the guest final.
	GuestShutdownStops bool `json:"guestShutdownStops"`
	// GuestResetEnds makes a reset by the guest end the machine: changes wait for its next start,
	// and the writer of the file starts it again. VM-Operator has no such key.
	GuestResetEnds bool `json:"guestResetEnds,omitempty"`
	// ResetCounter resets the machine when it grows. nil means that resets are not counted.
	ResetCounter *int64     `json:"resetCounter,omitempty"`
	CloudInit    *CloudInit `json:"cloudInit,omitempty"`
	// Sysprep is a CD with the answers of Windows' setup. VM-Operator has no such key.
	Sysprep *Sysprep `json:"sysprep,omitempty"`
	VM      VM       `json:"vm"`
}

// CloudInit holds the NoCloud documents. User data and network configuration are JSON with the key
// order and number spelling of the source. Documents in Secrets are only named by the sources
// (VM-Operator has no such keys). The meta-data of a source is merged over MetaData.
type CloudInit struct {
	MetaData map[string]string `json:"metaData,omitempty"`
	// MetaDataValues are the lists and mappings in the meta-data, as JSON. The file has them
	// together with the strings; a string of the same key takes precedence.
	MetaDataValues map[string]json.RawMessage `json:"-"`
	UserData       json.RawMessage            `json:"userData,omitempty"`
	NetworkConfig  json.RawMessage            `json:"networkConfig,omitempty"`
	// UserDataText is a whole user-data file, which is used unchanged.
	UserDataText      string           `json:"userDataText,omitempty"`
	MetaDataFrom      *CloudInitSource `json:"metaDataFrom,omitempty"`
	UserDataFrom      *CloudInitSource `json:"userDataFrom,omitempty"`
	NetworkConfigFrom *CloudInitSource `json:"networkConfigFrom,omitempty"`
}

// CloudInitSource locates a document that is a key of a Secret.
type CloudInitSource struct {
	// Secret and Key name it.
	Secret string `json:"secret"`
	Key    string `json:"key"`
	// File has the content. If it is empty, the program that runs the machine passes the content to
	// the runner.
	File string `json:"file,omitempty"`
	// OtherKey is the key of the document if Key does not exist, and OtherFile the file with its
	// content.
	OtherKey  string `json:"otherKey,omitempty"`
	OtherFile string `json:"otherFile,omitempty"`
	// AnyForm accepts user data that cloud-init would ignore.
	AnyForm bool `json:"anyForm,omitempty"`
	// ContentDigest is the [ContentDigest] of the content, by which changes are detected; empty if
	// unknown.
	ContentDigest string `json:"contentDigest,omitempty"`
}

// Sources are the existing sources of meta-data, user data and network configuration, in this
// order.
func (c *CloudInit) Sources() []**CloudInitSource {
	if c == nil {
		return nil
	}
	return slices.DeleteFunc([]**CloudInitSource{&c.MetaDataFrom, &c.UserDataFrom, &c.NetworkConfigFrom},
		func(s **CloudInitSource) bool { return *s == nil })
}

// Sysprep has the answer files of Windows' setup, at least one of them.
type Sysprep struct {
	Unattend     *CloudInitSource `json:"unattend,omitempty"`
	Autounattend *CloudInitSource `json:"autounattend,omitempty"`
}

// Sources are the existing sources, unattend.xml first.
func (s *Sysprep) Sources() []**CloudInitSource {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc([]**CloudInitSource{&s.Unattend, &s.Autounattend},
		func(s **CloudInitSource) bool { return *s == nil })
}

// Sources are all documents of a machine that are in Secrets.
func (r *Runner) Sources() []**CloudInitSource {
	return append(r.CloudInit.Sources(), r.Sysprep.Sources()...)
}

// ContentDigest is the digest of a document's content.
func ContentDigest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// VM describes the machine.
type VM struct {
	Name string `json:"name"`
	// UUID is the SMBIOS UUID; empty lets the runner generate and keep one.
	UUID     string `json:"uuid,omitempty"`
	UseTPM   bool   `json:"useTpm"`
	Firmware string `json:"firmware,omitempty"`
	// PanicDevice is one of limits.PanicDevices; empty is none. VM-Operator has no such key.
	PanicDevice string `json:"panicDevice,omitempty"`
	BootMenu    bool   `json:"bootMenu"`
	// PowerdownTimeout is the time in seconds that the guest gets to shut down.
	PowerdownTimeout *int64 `json:"powerdownTimeout,omitempty"`
	CPUModel         string `json:"cpuModel,omitempty"`
	MaximumCPUs      int    `json:"maximumCpus,omitempty"`
	Sockets          int    `json:"sockets,omitempty"`
	DiesPerSocket    int    `json:"diesPerSocket,omitempty"`
	CoresPerDie      int    `json:"coresPerDie,omitempty"`
	ThreadsPerCore   int    `json:"threadsPerCore,omitempty"`
	// CurrentCPUs is the number of CPUs to be plugged; 0 means 1. Without KVM, a lower number takes
	// effect with the next start.
	CurrentCPUs int `json:"currentCpus,omitempty"`
	// MaximumRAM is the size of the RAM in bytes, CurrentRAM what the balloon
	// leaves of it (0: everything).
	MaximumRAM Bytes `json:"maximumRam,omitempty"`
	CurrentRAM Bytes `json:"currentRam,omitempty"`
	// PendingCPUs and PendingRAM (bytes) are what the manifest wants instead of CurrentCPUs and
	// CurrentRAM, and its pod has not been resized for; 0 if there is nothing of that kind.
	PendingCPUs int   `json:"pendingCpus,omitempty"`
	PendingRAM  Bytes `json:"pendingRam,omitempty"`
	// Accelerator is auto, kvm, tcg or none (QEMU's own choice, as in VM-Operator); empty means
	// auto.
	Accelerator string `json:"accelerator,omitempty"`
	// MachineType pins QEMU's versioned machine type.
	MachineType string `json:"machineType,omitempty"`
	RTCBase     string `json:"rtcBase,omitempty"`
	RTCClock    string `json:"rtcClock,omitempty"`
	// BootOrder is the order of boot devices if no drive has a boot index: [BootOrderList] (also if
	// empty) or [BootOrderFirmware].
	BootOrder string `json:"bootOrder,omitempty"`
	// CPUOrder is the order in which free slots get plugged CPUs: [CPUOrderLowest] (also if empty)
	// or [CPUOrderHighest].
	CPUOrder   string      `json:"cpuOrder,omitempty"`
	KernelBoot *KernelBoot `json:"kernelBoot,omitempty"`
	// Serial connects the first serial port, also if it is nil.
	Serial *bool `json:"serial,omitempty"`
	// Network and Drives are null in VM-Operator's files when the list is empty.
	Network []Network `json:"network"`
	Drives  []Drive   `json:"drives"`
	// Shares are folders for the guest; VM-Operator has no such key.
	Shares []Share `json:"shares,omitempty"`
	// Attachments are disks that come and go while the machine runs: exported by other pods,
	// plugged only after the start; or at a path, present when the guest boots. VM-Operator has no
	// such key.
	Attachments []Attachment `json:"attachments,omitempty"`
	// USBDevices are devices of the host; VM-Operator has no such key.
	USBDevices []USBDevice `json:"usbDevices,omitempty"`
	Display    *Display    `json:"display,omitempty"`
}

// KernelBoot starts a Linux kernel without a boot loader. The files are paths.
type KernelBoot struct {
	Kernel string `json:"kernel"`
	Initrd string `json:"initrd,omitempty"`
	Args   string `json:"args,omitempty"`
}

// Boot orders.
const (
	// BootOrderList is the order of the drives.
	BootOrderList = "list"
	// BootOrderFirmware leaves it to the firmware and its variables, as VM-Operator does.
	BootOrderFirmware = "firmware"
)

// Orders in which CPUs are plugged into their slots. In both, the highest one is unplugged first.
const (
	// CPUOrderLowest begins with the first free slot of the topology.
	CPUOrderLowest = "lowest"
	// CPUOrderHighest begins with the last one, as VM-Operator does.
	CPUOrderHighest = "highest"
)

// Network types.
const (
	NetworkTap  = "tap"
	NetworkUser = "user"
)

// Network is one interface.
type Network struct {
	// Type is tap (also if empty) or user.
	Type string `json:"type"`
	// Bridge is the host's bridge of a tap interface.
	Bridge string `json:"bridge,omitempty"`
	// Device is QEMU's device model; empty means virtio-net.
	Device string `json:"device,omitempty"`
	// MAC is the interface's address; empty derives one from the machine's UUID
	// and the interface's position.
	MAC string `json:"mac,omitempty"`
	// Net is the guest's network of a user interface, as CIDR.
	Net          string        `json:"net,omitempty"`
	HostForwards []HostForward `json:"hostForwards,omitempty"`
}

// HostForward forwards a port of the host to the guest of a user interface.
type HostForward struct {
	Protocol    string `json:"protocol,omitempty"`
	HostAddress string `json:"hostAddress,omitempty"`
	HostPort    int    `json:"hostPort"`
	GuestPort   int    `json:"guestPort"`
}

// Drive types.
const (
	DriveRaw = "raw"
	DriveCD  = "ide-cd"
)

// Drive is a disk (raw) or a CD drive (ide-cd).
type Drive struct {
	// Type is raw (also if empty) or ide-cd.
	Type string `json:"type"`
	// Name identifies the disk for users; VM-Operator has no such key.
	Name string `json:"name,omitempty"`
	// Resource is a path that is a disk image if it is a regular file and a block device otherwise;
	// File and Device are for a path of known kind.
	Resource string `json:"resource,omitempty"`
	File     string `json:"file,omitempty"`
	Device   string `json:"device,omitempty"`
	// Size is the size in bytes of the image that is created at File if it does not exist. An
	// existing image is never changed. 0 creates nothing.
	Size Bytes `json:"size,omitempty"`
	// GrowTo is the size in bytes to which a smaller image at File is enlarged, at the start and
	// while the machine runs; if a block device has grown to it, the guest is notified. It creates
	// nothing. VM-Operator has no such key.
	GrowTo Bytes `json:"growTo,omitempty"`
	// NewImage allows an image to be created although the machine has had another one under this
	// name. VM-Operator has no such key.
	NewImage bool `json:"newImage,omitempty"`
	// Image is the source of File if that does not exist, instead of an empty image of Size.
	// VM-Operator has no such key.
	Image *DriveImage `json:"image,omitempty"`
	// ReadOnly means that neither the guest nor QEMU writes to the disk, so that several machines
	// can share it. On a CD drive it means that the medium is not changed while the machine runs.
	// VM-Operator has no such key.
	ReadOnly bool `json:"readOnly,omitempty"`
	// BootIndex orders boot devices, lowest first.
	BootIndex *int `json:"bootindex,omitempty"`
}

// DriveImage is the image that a disk is a copy of.
type DriveImage struct {
	// Source is its location, see [limits.ImageSource]; a file's path is absolute.
	Source string `json:"source"`
	// Path is the disk's path in a container image.
	Path string `json:"path,omitempty"`
	// Checksum is sha256:HEX or sha512:HEX of the source's content.
	Checksum string `json:"checksum,omitempty"`
	// CABundle are additional certificates (PEM) by which to trust the server.
	CABundle string `json:"caBundle,omitempty"`
	// PullPolicy is Always, IfNotPresent or Never, where images are cached.
	PullPolicy string `json:"pullPolicy,omitempty"`
	// Ephemeral creates the disk anew at each start, and removes it at the end.
	Ephemeral bool `json:"ephemeral,omitempty"`
}

// Share is a folder that the guest can mount.
type Share struct {
	// Tag is the name by which the guest mounts it.
	Tag string `json:"tag"`
	// Dir is the folder, an absolute path.
	Dir      string `json:"dir"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Protocol is virtiofs (also if empty) or 9p.
	Protocol string `json:"protocol,omitempty"`
}

// Attachment is a disk that comes and goes while the machine runs.
type Attachment struct {
	// UID is the attachment's; the machine's device is named after it.
	UID string `json:"uid"`
	// Name is the disk's serial number in the guest.
	Name string `json:"name"`
	// Place is the place for plugged disks that it has had in the guest before, counted from 1, and
	// gets again. 0 takes any free one.
	Place int `json:"place,omitempty"`
	// Path is the image or block device of a disk that no other pod exports.
	Path string `json:"path,omitempty"`
	// GrowTo is the size in bytes to which a smaller image at Path is enlarged when it is plugged;
	// none is shrunk.
	GrowTo Bytes `json:"growTo,omitempty"`
	// Address is the exporter's, HOST:PORT; empty while it has none.
	Address string `json:"address,omitempty"`
	// Fingerprint is the fingerprint of the exporter's key, in hexadecimal digits.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Detach unplugs the disk from the guest.
	Detach bool `json:"detach,omitempty"`
}

// USBDevice is a USB device of the host, by the identifiers that lsusb prints.
type USBDevice struct {
	Vendor  string `json:"vendor"`
	Product string `json:"product"`
}
