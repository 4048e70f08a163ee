package spec

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// +kubebuilder:validation:XValidation:rule="has(self.maximumCpus) != has(self.cpuTopology)",message="give exactly one of maximumCpus and cpuTopology"
// +kubebuilder:validation:XValidation:rule="!has(self.currentCpus) || !has(self.maximumCpus) || self.currentCpus <= self.maximumCpus || (self.currentCpus == oldSelf.?currentCpus.orValue(0) && self.maximumCpus == oldSelf.?maximumCpus.orValue(0))",message="currentCpus must not be greater than maximumCpus",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="!has(self.currentRam) || !has(self.maximumRam) || [self.currentRam, self.maximumRam].exists(q, string(q).size() > 32 || string(q).matches('[eE][+-]?0*[1-9][0-9]{2}')) || quantity(string(self.currentRam)).compareTo(quantity(string(self.maximumRam))) <= 0 || (self.currentRam == oldSelf.?currentRam.orValue(0) && self.maximumRam == oldSelf.?maximumRam.orValue(0))",message="currentRam must not be greater than maximumRam",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="!has(self.maximumRam) || string(self.maximumRam).size() > 32 || string(self.maximumRam).matches('[eE][+-]?0*[1-9][0-9]{2}') || quantity(string(self.maximumRam)).compareTo(quantity('4Mi')) >= 0 || self.maximumRam == oldSelf.?maximumRam.orValue(0)",message="maximumRam must be at least 4Mi; sizes are bytes unless they have a suffix such as Mi or Gi",optionalOldSelf=true

// Machine is the hardware of the machine and whether it runs.
//
// What VM-Operator has stored and the rules refuse is tolerated while it stays
// as it is; see [Amend]. A rule without oldSelf has this from the API server, but
// only for a field of which nothing changes.
type Machine struct {
	// +kubebuilder:default=Stopped
	// +optional

	// state says whether the machine should run.
	State MachineState `json:"state,omitempty"`

	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
	// +kubebuilder:validation:MaxLength=36
	// +optional

	// machineUuid is the UUID that the guest sees. Without it the runner makes
	// one at the first start and keeps it with the machine's data.
	MachineUUID string `json:"machineUuid,omitempty"`

	// +kubebuilder:default=false
	// +optional

	// useTpm gives the machine a TPM 2.0, emulated by swtpm.
	UseTPM bool `json:"useTpm,omitempty"`

	// +kubebuilder:default=uefi
	// +optional

	// firmware is what the machine boots with.
	Firmware Firmware `json:"firmware,omitempty"`

	// +optional

	// panicDevice is how the guest's kernel tells that it has panicked: pvpanic-pci, or
	// pvpanic, which is at an I/O port (ISA). Linux and Windows have drivers for both.
	// Without it there is no such device, and of most guests nobody learns it. A guest
	// that has panicked ends its machine. (Added by vmop.)
	PanicDevice PanicDevice `json:"panicDevice,omitempty"`

	// +kubebuilder:default=false
	// +optional

	// bootMenu shows the firmware's boot menu.
	BootMenu bool `json:"bootMenu,omitempty"`

	// +optional

	// kernelBoot starts a Linux kernel directly, without a boot loader on a
	// disk. (Added by vmop.)
	KernelBoot *KernelBoot `json:"kernelBoot,omitempty"`

	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483
	// +optional

	// powerdownTimeout is how long a guest may take to shut down, in seconds.
	// After it QEMU is told to quit.
	PowerdownTimeout *int32 `json:"powerdownTimeout,omitempty"`

	// +kubebuilder:default=auto
	// +optional

	// accelerator chooses what runs the guest's instructions: kvm (the
	// processor), tcg (software) or auto, which is kvm where the host has it
	// and tcg elsewhere. (Added by vmop.)
	Accelerator Accelerator `json:"accelerator,omitempty"`

	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=63
	// +optional

	// machineType is the versioned QEMU machine type, such as pc-q35-7.2. It
	// pins the hardware that the guest sees; changing it is the only way to
	// move it. Without it, or with q35, the type of the last start is kept,
	// and the first start takes the newest. (Added by vmop.)
	MachineType string `json:"machineType,omitempty"`

	// +kubebuilder:default=host
	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// cpuModel is QEMU's name of the CPU model, possibly followed by
	// features: "host", "qemu64", "max,-avx2". x86-64-v2, x86-64-v3 and x86-64-v4 are
	// what the processors of that level have in common (added by vmop).
	CPUModel string `json:"cpuModel,omitempty"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional

	// maximumCpus is the number of CPUs that the machine can have. Exactly one
	// of maximumCpus and cpuTopology is given.
	MaximumCPUs *int32 `json:"maximumCpus,omitempty"`

	// +optional

	// cpuTopology gives the number of CPUs by sockets, dies, cores and threads.
	CPUTopology *CPUTopology `json:"cpuTopology,omitempty"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional

	// currentCpus is the number of CPUs that the machine has now. It can be
	// changed while the machine runs; without KVM, fewer take effect with the
	// next start. Without it the machine has one.
	CurrentCPUs *int32 `json:"currentCpus,omitempty"`

	// +kubebuilder:default="1G"
	// +optional

	// maximumRam is the size of the machine's memory as a quantity of bytes:
	// 8Gi is 2^33 bytes, 1G is 10^9 bytes.
	MaximumRAM *resource.Quantity `json:"maximumRam,omitempty"`

	// +optional

	// currentRam is the memory that the guest may use now, as a quantity of
	// bytes. It can be changed while the machine runs. Without it the guest
	// uses all of maximumRam.
	CurrentRAM *resource.Quantity `json:"currentRam,omitempty"`

	// +kubebuilder:default=utc
	// +kubebuilder:validation:MaxLength=64
	// +optional

	// rtcBase is what the machine's clock starts with: utc, localtime or an
	// instant such as 2026-06-17T16:01:21 or 2026-06-17.
	RTCBase string `json:"rtcBase,omitempty"`

	// +kubebuilder:default=rt
	// +optional

	// rtcClock is what drives the machine's clock: host (the host's clock), rt
	// (the host's monotonic clock) or vm (the guest's, which stands while the
	// machine is paused).
	RTCClock RTCClock `json:"rtcClock,omitempty"`

	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional

	// networks are the machine's network interfaces. An empty list means that
	// the machine has no network interface at all (in VM-Operator it left one
	// that QEMU adds on its own).
	Networks []Network `json:"networks,omitempty"`

	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=118
	// +kubebuilder:validation:XValidation:rule="self.all(d, !has(d.volumeClaimTemplate) || d.volumeClaimTemplate.?spec.?resources.?requests[?'storage'].hasValue())",message="each volumeClaimTemplate needs a size in spec.resources.requests.storage, such as 40Gi"
	// +kubebuilder:validation:XValidation:rule="self.filter(d, d.?volumeClaimTemplate.?metadata.?name.hasValue() && d.volumeClaimTemplate.metadata.name != '').map(d, d.volumeClaimTemplate.metadata.name).all(n, self.filter(d, d.?volumeClaimTemplate.?metadata.?name.hasValue() && d.volumeClaimTemplate.metadata.name != '').map(d, d.volumeClaimTemplate.metadata.name).exists_one(m, m == n))",message="volumeClaimTemplates must have different metadata.names: each is the name of a disk"
	// +kubebuilder:validation:XValidation:rule="self.filter(d, has(d.persistentVolumeClaim)).map(d, d.persistentVolumeClaim.claimName).all(n, self.filter(d, has(d.persistentVolumeClaim)).map(d, d.persistentVolumeClaim.claimName).exists_one(m, m == n))",message="a persistentVolumeClaim can be one disk of a machine only"
	// +listType=atomic
	// +optional

	// disks are the machine's disks and CD drives. Their order is the order in
	// which the guest sees them and, if no disk has a bootindex, the order in
	// which it tries to boot.
	Disks []Disk `json:"disks,omitempty"`

	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(s, self.exists_one(o, o.tag == s.tag))",message="shares must have different tags"
	// +listType=atomic
	// +optional

	// shares are folders of the host, or volumes of the cluster, that the guest can
	// mount while it runs. (Added by vmop.)
	Shares []Share `json:"shares,omitempty"`

	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional

	// usbDevices are USB devices of the one host that the machine runs on, which come
	// and go while it runs. Clusters refuse them. (Added by vmop.)
	USBDevices []USBDevice `json:"usbDevices,omitempty"`

	// +kubebuilder:default={}
	// +optional

	// serial is the machine's serial console. (Added by vmop.)
	Serial *SerialConsole `json:"serial,omitempty"`

	// +kubebuilder:default={spice: {port: 5900, usbRedirects: 2}}
	// +optional

	// display is the machine's graphics adapter and how it is reached.
	Display *Display `json:"display,omitempty"`
}

// +kubebuilder:validation:Enum=Stopped;Running

// MachineState says whether a machine should run.
type MachineState string

// The wanted states of a machine.
const (
	// StateStopped means that the machine should not run.
	StateStopped MachineState = "Stopped"
	// StateRunning means that it should.
	StateRunning MachineState = "Running"
)

// +kubebuilder:validation:Enum=bios;uefi;uefi-4m;secure;secure-4m

// Firmware names the firmware that a machine boots with.
type Firmware string

// The firmwares of a machine.
const (
	// FirmwareBIOS is SeaBIOS, QEMU's default.
	FirmwareBIOS Firmware = "bios"
	// FirmwareUEFI is OVMF with 2 MiB of flash if there is one, else with 4.
	FirmwareUEFI Firmware = "uefi"
	// FirmwareUEFI4M is OVMF with 4 MiB of flash.
	FirmwareUEFI4M Firmware = "uefi-4m"
	// FirmwareSecure is OVMF with secure boot.
	FirmwareSecure Firmware = "secure"
	// FirmwareSecure4M is OVMF with secure boot and 4 MiB of flash.
	FirmwareSecure4M Firmware = "secure-4m"
)

// +kubebuilder:validation:Enum=pvpanic-pci;pvpanic

// PanicDevice names the device by which a guest tells that it has panicked. The names
// are QEMU's.
type PanicDevice string

// The devices by which a guest can tell that it has panicked.
const (
	// PanicDevicePCI is a PCI device.
	PanicDevicePCI PanicDevice = "pvpanic-pci"
	// PanicDeviceISA is an I/O port, which ACPI announces.
	PanicDeviceISA PanicDevice = "pvpanic"
)

// +kubebuilder:validation:Enum=auto;kvm;tcg

// Accelerator names what runs the guest's instructions.
type Accelerator string

// The accelerators of a machine.
const (
	// AcceleratorAuto is KVM where the host has it and TCG elsewhere.
	AcceleratorAuto Accelerator = "auto"
	// AcceleratorKVM is the host's processor.
	AcceleratorKVM Accelerator = "kvm"
	// AcceleratorTCG is QEMU's translation in software.
	AcceleratorTCG Accelerator = "tcg"
)

// +kubebuilder:validation:Enum=host;rt;vm

// RTCClock names what drives the machine's clock (QEMU's -rtc clock=).
type RTCClock string

// The clocks that can drive a machine's clock.
const (
	// RTCClockHost follows the host's clock, adjustments included.
	RTCClockHost RTCClock = "host"
	// RTCClockRT follows the host's monotonic clock.
	RTCClockRT RTCClock = "rt"
	// RTCClockVM follows the guest's virtual time.
	RTCClockVM RTCClock = "vm"
)

// CPUTopology gives the number of CPUs by sockets, dies, cores and threads.
// The product is the maximum number of CPUs.
type CPUTopology struct {
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional

	// sockets is the number of CPU sockets.
	Sockets int32 `json:"sockets,omitempty"`

	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional

	// diesPerSocket is the number of dies in a socket; 0 means one.
	DiesPerSocket int32 `json:"diesPerSocket,omitempty"`

	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional

	// coresPerDie is the number of cores on a die; 0 means one.
	CoresPerDie int32 `json:"coresPerDie,omitempty"`

	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional

	// threadsPerCore is the number of threads of a core; 0 means one.
	ThreadsPerCore int32 `json:"threadsPerCore,omitempty"`
}

// KernelBoot starts a Linux kernel directly (QEMU's -kernel). The files are
// named like those of CD images: by a path relative to the image repository,
// or by an absolute path.
type KernelBoot struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096

	// kernel is the file of the kernel.
	Kernel string `json:"kernel"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// initrd is the file of the initial RAM disk.
	Initrd string `json:"initrd,omitempty"`

	// +kubebuilder:validation:MaxLength=2047
	// +optional

	// args is the kernel's command line.
	Args string `json:"args,omitempty"`
}

// SerialConsole is the machine's first serial port, connected to a socket in
// the runner's directory.
type SerialConsole struct {
	// +kubebuilder:default=true
	// +optional

	// enabled says whether the machine has a serial console.
	Enabled *bool `json:"enabled,omitempty"`
}
