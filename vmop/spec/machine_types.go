package spec

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// Machine is the hardware of the machine and whether it runs.
//
// What VM-Operator has stored and the rules refuse is tolerated while it stays
// as it is; see [Amend]. A rule without oldSelf has this from the API server, but
// only for a field of which nothing changes.
//
// +kubebuilder:validation:XValidation:rule="has(self.maximumCpus) != has(self.cpuTopology)",message="give exactly one of maximumCpus and cpuTopology"
// +kubebuilder:validation:XValidation:rule="!has(self.currentCpus) || !has(self.maximumCpus) || self.currentCpus <= self.maximumCpus || (self.currentCpus == oldSelf.?currentCpus.orValue(0) && self.maximumCpus == oldSelf.?maximumCpus.orValue(0))",message="currentCpus must not be greater than maximumCpus",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="!has(self.currentRam) || !has(self.maximumRam) || [self.currentRam, self.maximumRam].exists(q, string(q).size() > 32 || string(q).matches('[eE][+-]?0*[1-9][0-9]{2}')) || quantity(string(self.currentRam)).compareTo(quantity(string(self.maximumRam))) <= 0 || (self.currentRam == oldSelf.?currentRam.orValue(0) && self.maximumRam == oldSelf.?maximumRam.orValue(0))",message="currentRam must not be greater than maximumRam",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="!has(self.maximumRam) || string(self.maximumRam).size() > 32 || string(self.maximumRam).matches('[eE][+-]?0*[1-9][0-9]{2}') || quantity(string(self.maximumRam)).compareTo(quantity('4Mi')) >= 0 || self.maximumRam == oldSelf.?maximumRam.orValue(0)",message="maximumRam must be at least 4Mi; sizes are bytes unless they have a suffix such as Mi or Gi",optionalOldSelf=true
type Machine struct {
	// state says whether the machine should run.
	// +kubebuilder:default=Stopped
	// +optional
	State MachineState `json:"state,omitempty"`
	// machineUuid is the UUID that the guest sees. Without it the runner makes
	// one at the first start and keeps it with the machine's data.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
	// +kubebuilder:validation:MaxLength=36
	// +optional
	MachineUUID string `json:"machineUuid,omitempty"`
	// useTpm gives the machine a TPM 2.0, emulated by swtpm.
	// +kubebuilder:default=false
	// +optional
	UseTPM bool `json:"useTpm,omitempty"`
	// firmware is what the machine boots with.
	// +kubebuilder:default=uefi
	// +optional
	Firmware Firmware `json:"firmware,omitempty"`
	// bootMenu shows the firmware's boot menu.
	// +kubebuilder:default=false
	// +optional
	BootMenu bool `json:"bootMenu,omitempty"`
	// kernelBoot starts a Linux kernel directly, without a boot loader on a
	// disk. (Added by vmop.)
	// +optional
	KernelBoot *KernelBoot `json:"kernelBoot,omitempty"`
	// powerdownTimeout is how long a guest may take to shut down, in seconds.
	// After it QEMU is told to quit.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483
	// +optional
	PowerdownTimeout *int32 `json:"powerdownTimeout,omitempty"`
	// accelerator chooses what runs the guest's instructions: kvm (the
	// processor), tcg (software) or auto, which is kvm where the host has it
	// and tcg elsewhere. (Added by vmop.)
	// +kubebuilder:default=auto
	// +optional
	Accelerator Accelerator `json:"accelerator,omitempty"`
	// machineType is the versioned QEMU machine type, such as pc-q35-7.2. It
	// pins the hardware that the guest sees; changing it is the only way to
	// move it. Without it, or with q35, the type of the last start is kept,
	// and the first start takes the newest. (Added by vmop.)
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	MachineType string `json:"machineType,omitempty"`
	// cpuModel is QEMU's name of the CPU model, possibly followed by
	// features: "host", "qemu64", "max,-avx2". x86-64-v2, x86-64-v3 and x86-64-v4 are
	// what the processors of that level have in common (added by vmop).
	// +kubebuilder:default=host
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	CPUModel string `json:"cpuModel,omitempty"`
	// maximumCpus is the number of CPUs that the machine can have. Exactly one
	// of maximumCpus and cpuTopology is given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional
	MaximumCPUs *int32 `json:"maximumCpus,omitempty"`
	// cpuTopology gives the number of CPUs by sockets, dies, cores and threads.
	// +optional
	CPUTopology *CPUTopology `json:"cpuTopology,omitempty"`
	// currentCpus is the number of CPUs that the machine has now. It can be
	// changed while the machine runs; without KVM, fewer take effect with the
	// next start. Without it the machine has one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional
	CurrentCPUs *int32 `json:"currentCpus,omitempty"`
	// maximumRam is the size of the machine's memory as a quantity of bytes:
	// 8Gi is 2^33 bytes, 1G is 10^9 bytes.
	// +kubebuilder:default="1G"
	// +optional
	MaximumRAM *resource.Quantity `json:"maximumRam,omitempty"`
	// currentRam is the memory that the guest may use now, as a quantity of
	// bytes. It can be changed while the machine runs. Without it the guest
	// uses all of maximumRam.
	// +optional
	CurrentRAM *resource.Quantity `json:"currentRam,omitempty"`
	// rtcBase is what the machine's clock starts with: utc, localtime or an
	// instant such as 2026-06-17T16:01:21 or 2026-06-17.
	// +kubebuilder:default=utc
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RTCBase string `json:"rtcBase,omitempty"`
	// rtcClock is what drives the machine's clock: host (the host's clock), rt
	// (the host's monotonic clock) or vm (the guest's, which stands while the
	// machine is paused).
	// +kubebuilder:default=rt
	// +optional
	RTCClock RTCClock `json:"rtcClock,omitempty"`
	// networks are the machine's network interfaces. An empty list means that
	// the machine has no network interface at all (in VM-Operator it left one
	// that QEMU adds on its own).
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Networks []Network `json:"networks,omitempty"`
	// disks are the machine's disks and CD drives. Their order is the order in
	// which the guest sees them and, if no disk has a bootindex, the order in
	// which it tries to boot.
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=118
	// +kubebuilder:validation:XValidation:rule="self.all(d, !has(d.volumeClaimTemplate) || d.volumeClaimTemplate.?spec.?resources.?requests[?'storage'].hasValue())",message="each volumeClaimTemplate needs a size in spec.resources.requests.storage, such as 40Gi"
	// +kubebuilder:validation:XValidation:rule="self.filter(d, d.?volumeClaimTemplate.?metadata.?name.hasValue() && d.volumeClaimTemplate.metadata.name != '').map(d, d.volumeClaimTemplate.metadata.name).all(n, self.filter(d, d.?volumeClaimTemplate.?metadata.?name.hasValue() && d.volumeClaimTemplate.metadata.name != '').map(d, d.volumeClaimTemplate.metadata.name).exists_one(m, m == n))",message="volumeClaimTemplates must have different metadata.names: each is the name of a disk"
	// +kubebuilder:validation:XValidation:rule="self.filter(d, has(d.persistentVolumeClaim)).map(d, d.persistentVolumeClaim.claimName).all(n, self.filter(d, has(d.persistentVolumeClaim)).map(d, d.persistentVolumeClaim.claimName).exists_one(m, m == n))",message="a persistentVolumeClaim can be one disk of a machine only"
	// +listType=atomic
	// +optional
	Disks []Disk `json:"disks,omitempty"`
	// shares are folders of the host, or volumes of the cluster, that the guest can
	// mount while it runs. (Added by vmop.)
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(s, self.exists_one(o, o.tag == s.tag))",message="shares must have different tags"
	// +listType=atomic
	// +optional
	Shares []Share `json:"shares,omitempty"`
	// usbDevices are USB devices of the one host that the machine runs on, which come
	// and go while it runs. Clusters refuse them. (Added by vmop.)
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	USBDevices []USBDevice `json:"usbDevices,omitempty"`
	// serial is the machine's serial console. (Added by vmop.)
	// +kubebuilder:default={}
	// +optional
	Serial *SerialConsole `json:"serial,omitempty"`
	// display is the machine's graphics adapter and how it is reached.
	// +kubebuilder:default={spice: {port: 5900, usbRedirects: 2}}
	// +optional
	Display *Display `json:"display,omitempty"`
}

// MachineState says whether a machine should run.
//
// +kubebuilder:validation:Enum=Stopped;Running
type MachineState string

// The wanted states of a machine.
const (
	// StateStopped means that the machine should not run.
	StateStopped MachineState = "Stopped"
	// StateRunning means that it should.
	StateRunning MachineState = "Running"
)

// Firmware names the firmware that a machine boots with.
//
// +kubebuilder:validation:Enum=bios;uefi;uefi-4m;secure;secure-4m
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

// Accelerator names what runs the guest's instructions.
//
// +kubebuilder:validation:Enum=auto;kvm;tcg
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

// RTCClock names what drives the machine's clock (QEMU's -rtc clock=).
//
// +kubebuilder:validation:Enum=host;rt;vm
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
	// sockets is the number of CPU sockets.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional
	Sockets int32 `json:"sockets,omitempty"`
	// diesPerSocket is the number of dies in a socket; 0 means one.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional
	DiesPerSocket int32 `json:"diesPerSocket,omitempty"`
	// coresPerDie is the number of cores on a die; 0 means one.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional
	CoresPerDie int32 `json:"coresPerDie,omitempty"`
	// threadsPerCore is the number of threads of a core; 0 means one.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	// +optional
	ThreadsPerCore int32 `json:"threadsPerCore,omitempty"`
}

// KernelBoot starts a Linux kernel directly (QEMU's -kernel). The files are
// named like those of CD images: by a path relative to the image repository,
// or by an absolute path.
type KernelBoot struct {
	// kernel is the file of the kernel.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Kernel string `json:"kernel"`
	// initrd is the file of the initial RAM disk.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Initrd string `json:"initrd,omitempty"`
	// args is the kernel's command line.
	// +kubebuilder:validation:MaxLength=2047
	// +optional
	Args string `json:"args,omitempty"`
}

// SerialConsole is the machine's first serial port, connected to a socket in
// the runner's directory.
type SerialConsole struct {
	// enabled says whether the machine has a serial console.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}
