package qemucmd

import "github.com/vmop/sdk/vmop/limits"

// Machine describes one virtual machine completely: together with a [Host] it determines every
// argument of the QEMU command line. All strings are literal; commas, quotes and equals signs in
// them never become options.
//
// The zero value of an optional part means that the machine has no such part.
type Machine struct {
	// Name is shown by QEMU (window titles, query-name) and in process lists.
	Name string `json:"name"`
	// UUID is the SMBIOS system UUID in canonical form (RFC 9562 text).
	UUID string `json:"uuid"`
	// Type is the requested machine type, for example "pc-q35-7.2". Empty or "q35" requests no
	// particular version; see [ChooseMachineType].
	Type string `json:"type,omitempty"`
	// RecordedType is the versioned type of the last start ([Command.MachineType]), "" at the first
	// one. It is kept unless Type names another version, so that an upgrade of QEMU does not change
	// the guest's hardware.
	RecordedType string `json:"recordedType,omitempty"`
	// AddressMap selects the guest addresses of devices: 1 (also if 0) is the original map, 2 has
	// root ports for hot-plugged devices. The caller records the map of the first start
	// ([AddressMapFor]), which a machine keeps for ever.
	AddressMap int `json:"addressMap,omitempty"`
	// FirstDiskSlot is the slot of the first disk of a machine that VM-Operator created: the one
	// behind the network cards it had then ([DiskSlotFor]), by which its firmware remembers its
	// boot devices. 0 is the slot of the AddressMap. The caller records it with the AddressMap.
	FirstDiskSlot int `json:"firstDiskSlot,omitempty"`
	// GenerationID is a UUID that changes only when a guest is started from a copy of another
	// guest's state. Empty derives one from UUID. The original map has no device for it.
	GenerationID string `json:"generationID,omitempty"`
	// Accelerator chooses between hardware virtualization and software emulation.
	Accelerator Accelerator `json:"accelerator,omitempty"`
	// TranslationCache bounds QEMU's translation cache under software emulation, in MiB. 0 means
	// 128: QEMU's default is 1 GiB per machine.
	TranslationCache int64       `json:"translationCache,omitempty"`
	CPU              CPU         `json:"cpu"`
	Memory           Memory      `json:"memory"`
	Firmware         Firmware    `json:"firmware"`
	BootMenu         bool        `json:"bootMenu,omitempty"`
	KernelBoot       *KernelBoot `json:"kernelBoot,omitempty"`
	RTC              RTC         `json:"rtc"`
	TPM              *TPM        `json:"tpm,omitempty"`
	// PanicDevice is the device by which the guest reports a panic, one of [limits.PanicDevices];
	// empty is none. It moves no other device.
	PanicDevice string    `json:"panicDevice,omitempty"`
	Networks    []Network `json:"networks,omitempty"`
	// CDDrives are IDE CD-ROM drives cd0, cd1, … in this order; at most six.
	CDDrives []CDDrive `json:"cdDrives,omitempty"`
	// Disks are virtio block devices in this order. Their guest addresses depend on the position
	// and the AddressMap only.
	Disks []Disk `json:"disks,omitempty"`
	// Shares are folders of the host that the guest mounts by their tags, at most
	// [limits.MaxShares]. They need the newest AddressMap. With a virtiofs share, the guest's
	// memory is shared with the process that serves it.
	Shares []Share `json:"shares,omitempty"`
	// USBDevices are devices of the host, at most [limits.MaxUSBDevices]. An absent one is passed
	// to the guest when it is connected.
	USBDevices []USBDevice `json:"usbDevices,omitempty"`
	// Seed is the NoCloud image, a disk at an address of its own.
	Seed *Seed `json:"seed,omitempty"`
	// AnswerCD is the image with the answer files of Windows setup, in a CD-ROM drive of its own.
	AnswerCD *AnswerCD `json:"answerCD,omitempty"`
	// Display is nil for a machine without a display server. It always has a graphics adapter.
	Display *Display `json:"display,omitempty"`
	// Outputs is the number of monitors of the graphics adapter; 0 means 1.
	Outputs int `json:"outputs,omitempty"`
	// Serial is the first serial port; nil leaves it unconnected.
	Serial *Socket `json:"serial,omitempty"`
	// Monitor is the QMP control socket, on which QEMU listens. If it is passed as a descriptor, QEMU
	// waits for its client, and says so at its standard error, before it goes on to start.
	Monitor Socket `json:"monitor"`
	// ToolMonitor is a second QMP socket, for users and their tools: a monitor serves one client at
	// a time, and the first is the supervisor's.
	ToolMonitor *Socket `json:"toolMonitor,omitempty"`
	// GuestAgent and VMOPAgent are the virtio-serial channels org.qemu.guest_agent.0 and
	// org.jdrupes.vmop_agent.0.
	GuestAgent *Socket `json:"guestAgent,omitempty"`
	VMOPAgent  *Socket `json:"vmopAgent,omitempty"`
}

// CPU describes the virtual processors; see [Build] for the rule of the topology.
type CPU struct {
	// Model is a model of QEMU's -cpu, with features: "host" (also if empty), "max", "EPYC,+avx2".
	// "host" becomes "max" under software emulation, which has no "host". The levels x86-64-v2, -v3
	// and -v4 are spelled out, because QEMU has no such models. It is the one string that is QEMU
	// syntax rather than literal, restricted to letters, digits and "_.,+=-".
	Model string `json:"model"`
	// Maximum is the number of CPU slots. The machine starts with one CPU; the others are
	// hot-plugged. 0 takes it from the topology, or means 1 without one.
	Maximum int `json:"maximum,omitempty"`
	// Sockets, Dies, Cores and Threads are the topology, 0 where not given: dies per socket, cores
	// per die, threads per core.
	Sockets int `json:"sockets,omitempty"`
	Dies    int `json:"dies,omitempty"`
	Cores   int `json:"cores,omitempty"`
	Threads int `json:"threads,omitempty"`
}

// Memory is the guest's RAM.
type Memory struct {
	// Size in bytes. It is rounded up to a multiple of 1 MiB, QEMU's unit.
	Size int64 `json:"size"`
}

// FirmwareKind names the guest firmware.
type FirmwareKind string

// The firmware kinds of the VirtualMachine resource. The 4M forms demand the 4 MiB flash layout;
// the others take what the host has.
const (
	FirmwareBIOS     FirmwareKind = "bios"
	FirmwareUEFI     FirmwareKind = "uefi"
	FirmwareUEFI4M   FirmwareKind = "uefi-4m"
	FirmwareSecure   FirmwareKind = "secure"
	FirmwareSecure4M FirmwareKind = "secure-4m"
)

// Firmware is what the machine boots with.
type Firmware struct {
	// Kind is uefi if empty.
	Kind FirmwareKind `json:"kind"`
	// VarsPath is the machine's own copy of the UEFI variables. The caller creates it from
	// [File.CopyFrom] if it does not exist, and never overwrites it. Not used with BIOS.
	VarsPath string `json:"varsPath,omitempty"`
	// VarsFD is the descriptor of VarsPath in the QEMU process, opened for reading and writing; 0
	// lets QEMU open the file.
	VarsFD int `json:"varsFD,omitempty"`
	// Code overrides the host's ROM file, to keep the ROM that fits existing variables. Not used
	// with BIOS.
	Code string `json:"code,omitempty"`
}

// KernelBoot starts a Linux kernel without a boot loader, before every boot device.
type KernelBoot struct {
	// Kernel and Initrd are files on the host.
	Kernel string `json:"kernel"`
	Initrd string `json:"initrd,omitempty"`
	// KernelFD and InitrdFD are their descriptors in the QEMU process, opened for reading; 0 lets
	// QEMU open the file.
	KernelFD int `json:"kernelFD,omitempty"`
	InitrdFD int `json:"initrdFD,omitempty"`
	// Args is the kernel command line.
	Args string `json:"args,omitempty"`
}

// RTC is the real-time clock.
type RTC struct {
	// Base is where the clock starts: "utc" (also if empty), "localtime", or a date like
	// "2006-01-02T15:04:05" or "2006-01-02".
	Base string `json:"base,omitempty"`
	// Clock is what drives it: "rt" (also if empty), "host" or "vm".
	Clock string `json:"clock,omitempty"`
}

// TPM is an emulated TPM 2.0, served by swtpm.
type TPM struct {
	// Socket is where swtpm listens. Neither path may contain a comma, which swtpm cannot quote.
	Socket string `json:"socket"`
	// SocketFD is the descriptor in the swtpm process of a listening socket that the caller created
	// at Socket; 0 lets swtpm create it.
	SocketFD int `json:"socketFD,omitempty"`
	// StateDir is the directory of the TPM's state.
	StateDir string `json:"stateDir"`
}

// Network is one network interface; exactly one of Tap and User is set.
type Network struct {
	// Device is QEMU's device model, "virtio-net" if empty. It must be a PCI device.
	Device string `json:"device,omitempty"`
	// MAC is the address that the guest sees. It is required: QEMU's default is the same in every
	// machine. See [StableMAC].
	MAC  string       `json:"mac"`
	Tap  *TapNetwork  `json:"tap,omitempty"`
	User *UserNetwork `json:"user,omitempty"`
}

// TapNetwork attaches an interface to a bridge of the host.
type TapNetwork struct {
	// Bridge is passed to QEMU's bridge helper; empty means its default, br0. It is not used with
	// FDs.
	Bridge string `json:"bridge,omitempty"`
	// FDs are the queues of an open tap device, as descriptors in the QEMU process, one per pair of
	// queues; more than one needs a virtio network card. None lets QEMU run the bridge helper,
	// which needs a sandbox that allows it to start processes.
	FDs []int `json:"fds,omitempty"`
	// VhostFDs are open /dev/vhost-net, as many as FDs; without them QEMU moves the packets itself.
	VhostFDs []int `json:"vhostFDs,omitempty"`
	// MTU is that of the bridge, in bytes; 0 is unknown. A virtio network card reports it to the
	// guest if it is not Ethernet's 1500.
	MTU int `json:"mtu,omitempty"`
}

// UserNetwork is QEMU's user-mode network. It needs no privileges; the guest can connect out, and
// only HostForwards lead in.
type UserNetwork struct {
	// Net is the guest's IPv4 network, "10.0.2.0/24" if empty; the prefix has 4 to 29 bits.
	Net          string        `json:"net,omitempty"`
	HostForwards []HostForward `json:"hostForwards,omitempty"`
}

// HostForward forwards a port of the host to the guest.
type HostForward struct {
	// Protocol is "tcp" (also if empty) or "udp".
	Protocol string `json:"protocol,omitempty"`
	// HostAddress is an IPv4 address; empty means 127.0.0.1.
	HostAddress string `json:"hostAddress,omitempty"`
	// HostPort and GuestPort are 1…65535.
	HostPort  int `json:"hostPort"`
	GuestPort int `json:"guestPort"`
}

// CDDrive is a CD-ROM drive.
type CDDrive struct {
	// Image is a file, or an http or https URL without a user or password (it is visible in the
	// process list); empty is an empty drive.
	Image string `json:"image,omitempty"`
	// FD is the descriptor of a file in the QEMU process, opened for reading; 0 lets QEMU open the
	// file.
	FD int `json:"fd,omitempty"`
	// BootIndex orders boot devices, lowest first; nil means not bootable.
	BootIndex *int `json:"bootIndex,omitempty"`
}

// DiskFormat is the format of a disk's content.
type DiskFormat string

// The formats that a machine's disks may have.
const (
	DiskFormatRaw   DiskFormat = "raw"
	DiskFormatQCOW2 DiskFormat = "qcow2"
)

// Disk is a writable disk. Exactly one of File and Device is set.
type Disk struct {
	// File is a disk image in a file system.
	File string `json:"file,omitempty"`
	// Device is a block device of the host.
	Device string `json:"device,omitempty"`
	// FD is the descriptor of File or Device in the QEMU process, opened for reading and writing,
	// or for reading if ReadOnly: QEMU then uses exactly what the caller checked. 0 lets QEMU open
	// the file or device.
	FD int `json:"fd,omitempty"`
	// ReadOnly opens it for reading only, which several machines may do at a time; the guest sees a
	// read-only disk.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Format is raw if empty. QEMU never probes it: a guest could write another format's header
	// into its raw disk.
	Format DiskFormat `json:"format,omitempty"`
	// Serial identifies the disk in the guest (/dev/disk/by-id/virtio-<serial>): at most 20 bytes,
	// which is all that virtio transports, and unique. Empty is no serial.
	Serial string `json:"serial,omitempty"`
	// BootIndex orders boot devices, lowest first; nil means not bootable.
	BootIndex *int `json:"bootIndex,omitempty"`
}

// ShareProtocol is the protocol by which a folder reaches the guest.
type ShareProtocol string

// The protocols of shares.
const (
	// ShareVirtioFS is served by virtiofsd, a separate process.
	ShareVirtioFS ShareProtocol = limits.ShareVirtioFS
	// Share9P is served by QEMU itself.
	Share9P ShareProtocol = limits.Share9P
)

// Share is a folder of the host that the guest can mount.
type Share struct {
	// Tag is the name by which the guest mounts it; see [limits.ShareTag].
	Tag string `json:"tag"`
	// Dir is the folder, an absolute path.
	Dir string `json:"dir"`
	// ReadOnly has the server refuse all writes, whatever the guest does.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Protocol is virtiofs if empty.
	Protocol ShareProtocol `json:"protocol,omitempty"`
	// Socket is where virtiofsd listens, and SocketFD the descriptor in its process of a listening
	// socket that the caller created there; 0 lets virtiofsd create it.
	Socket   string `json:"socket,omitempty"`
	SocketFD int    `json:"socketFD,omitempty"`
	// Contained is true if the machine has a container of its own, so that virtiofsd may run
	// without namespaces.
	Contained bool `json:"contained,omitempty"`
}

// USBDevice is a USB device of the host, by the identifiers that lsusb prints, four hexadecimal
// digits each. If several devices have them, the guest gets one.
type USBDevice struct {
	Vendor  string `json:"vendor"`
	Product string `json:"product"`
}

// Seed is a NoCloud image, attached read-only.
type Seed struct {
	File string `json:"file"`
}

// AnswerCD is the image of a CD, which stays in its drive.
type AnswerCD struct {
	File string `json:"file"`
}
