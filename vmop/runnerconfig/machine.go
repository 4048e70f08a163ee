package runnerconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// FirmwareVars is the file name of the machine's UEFI variables in the data directory.
const FirmwareVars = "fw-vars.fd"

// Facts are the inputs of [Machine] beside a configuration.
type Facts struct {
	// UUID is the machine's UUID if the configuration has none.
	UUID string
	// MachineType is the recorded machine type, which is kept unless the
	// configuration names another; "" at the first start.
	MachineType string
	// AddressMap is the recorded map of PCI addresses, [qemucmd.NewestAddressMap] at the first
	// start.
	AddressMap int
	// FirstDiskSlot is the recorded qemucmd.Machine.FirstDiskSlot.
	FirstDiskSlot int
	// FirmwareCode is the ROM that belongs to existing UEFI variables; "" selects the host's first
	// choice.
	FirmwareCode string
	// FirmwareVars is the name of the UEFI variables' file in DataDir; empty
	// means [FirmwareVars].
	FirmwareVars string
	// FirmwareVarsFD, KernelFD and InitrdFD are the descriptors of these files in the
	// QEMU process; 0 lets QEMU open them.
	FirmwareVarsFD, KernelFD, InitrdFD int
	// DataDir and RuntimeDir are the machine's directories.
	DataDir    string
	RuntimeDir string
	// Drives has an entry for each drive of the configuration.
	Drives []DriveFacts
	// DisplayPassword reports whether there is a display password. QEMU decides at the start
	// whether its display needs one.
	DisplayPassword bool
	// MonitorFD is the descriptor of the monitor's listening socket in the QEMU process; 0 lets
	// QEMU create the socket.
	MonitorFD int
	// TPMFD is the descriptor of swtpm's listening socket in the swtpm process; 0 lets swtpm create
	// the socket.
	TPMFD int
	// ShareFD is the descriptor of the listening socket in the process that serves a share; 0 lets
	// it create the socket.
	ShareFD int
	// Contained reports whether the machine is in a container of its own.
	Contained bool
	// TLSDir replaces the configuration's directory of the display's certificates if that has none
	// of an authority; empty otherwise. See qemucmd.Display.TLSWithoutAuthority.
	TLSDir string
	// Taps are the open tap devices by the network's index.
	Taps map[int]Tap
}

// Tap is an open tap device; see qemucmd.TapNetwork.
type Tap struct {
	// FDs are the descriptors of its queues in the QEMU process; VhostFDs as many of
	// /dev/vhost-net, or none.
	FDs, VhostFDs []int
	// MTU is its bridge's, in bytes.
	MTU int
}

// maxTapQueues bounds the pairs of queues of a network card: more gain little, and each takes
// memory of the guest.
const maxTapQueues = 8

// TapQueues is the number of pairs of queues of a network's tap device: one for each possible CPU,
// if the network card supports several. It is 0 for an index without a network.
func (vm *VM) TapQueues(network int) int {
	if network < 0 || network >= len(vm.Network) {
		return 0
	}
	switch vm.Network[network].Device {
	case "", "virtio-net", "virtio-net-pci", "virtio-net-pci-transitional", "virtio-net-pci-non-transitional":
		return min(vm.cpuSlots(), maxTapQueues)
	}
	return 1
}

// DriveFacts describe the file or device of a drive of the configuration.
type DriveFacts struct {
	// Device reports whether a resource is a block device rather than a file.
	Device bool
	// Format is the format of an image file; raw if empty.
	Format qemucmd.DiskFormat
	// FD is the descriptor of an image or block device in the QEMU process, opened
	// for reading and writing, or for reading if it is a CD or read-only; 0 lets QEMU open it.
	FD int
}

// Machine converts a configuration, defaulted and valid, to the machine that it describes.
func Machine(c *Config, f Facts) (qemucmd.Machine, error) {
	if c == nil {
		return qemucmd.Machine{}, errNoConfig
	}
	vm := &c.Runner.VM
	if len(f.Drives) != len(vm.Drives) {
		return qemucmd.Machine{}, fmt.Errorf("machine %s: facts about %d drives for %d drives", vm.Name, len(f.Drives), len(vm.Drives))
	}
	m := vm.hardware(&f)
	if c.Runner.CloudInit != nil {
		m.Seed = &qemucmd.Seed{File: path.Join(f.RuntimeDir, qemucmd.SeedFileName)}
	}
	if c.Runner.Sysprep != nil {
		m.AnswerCD = &qemucmd.AnswerCD{File: path.Join(f.RuntimeDir, qemucmd.AnswerCDFileName)}
	}
	return m, vm.connect(&m, &f)
}

// hardware is the machine without its sockets and without the disks that the runner makes.
func (vm *VM) hardware(f *Facts) qemucmd.Machine {
	m := qemucmd.Machine{
		Name:          vm.Name,
		UUID:          first(vm.UUID, f.UUID),
		Type:          vm.MachineType,
		RecordedType:  f.MachineType,
		AddressMap:    f.AddressMap,
		FirstDiskSlot: f.FirstDiskSlot,
		Accelerator:   qemucmd.Accelerator(vm.Accelerator),
		CPU: qemucmd.CPU{
			Model:   vm.CPUModel,
			Maximum: vm.cpuSlots(),
			Sockets: vm.Sockets, Dies: vm.DiesPerSocket, Cores: vm.CoresPerDie, Threads: vm.ThreadsPerCore,
		},
		Memory:      qemucmd.Memory{Size: int64(vm.MaximumRAM)},
		Firmware:    qemucmd.Firmware{Kind: qemucmd.FirmwareKind(vm.Firmware), Code: f.FirmwareCode},
		PanicDevice: vm.PanicDevice,
		BootMenu:    vm.BootMenu,
		RTC:         qemucmd.RTC{Base: vm.RTCBase, Clock: vm.RTCClock},
		Outputs:     1,
		Shares:      shares(vm.Shares, f),
	}
	if vm.Accelerator == "none" {
		m.Accelerator = qemucmd.AcceleratorTCG // QEMU's default without -accel
	}
	if m.Firmware.Kind != qemucmd.FirmwareBIOS {
		m.Firmware.VarsPath = path.Join(f.DataDir, first(f.FirmwareVars, FirmwareVars))
		m.Firmware.VarsFD = f.FirmwareVarsFD
	}
	if k := vm.KernelBoot; k != nil {
		m.KernelBoot = &qemucmd.KernelBoot{Kernel: k.Kernel, Initrd: k.Initrd, KernelFD: f.KernelFD, InitrdFD: f.InitrdFD, Args: k.Args}
	}
	m.Networks = networks(vm.Network, m.UUID, f.Taps)
	m.CDDrives, m.Disks = drives(vm.Drives, f.Drives, vm.BootOrder != BootOrderFirmware)
	for _, u := range vm.USBDevices {
		m.USBDevices = append(m.USBDevices, qemucmd.USBDevice(u))
	}
	if d := vm.Display; d != nil {
		m.Outputs, m.Display = d.Outputs, d.machine(f)
	}
	return m
}

// connect gives the machine its sockets. The error names each whose path is too long.
func (vm *VM) connect(m *qemucmd.Machine, f *Facts) error {
	var errs []error
	socket := func(purpose qemucmd.SocketPurpose) *qemucmd.Socket {
		p := path.Join(f.RuntimeDir, purpose.FileName())
		if len(p) > limits.MaxSocketPath {
			errs = append(errs, fmt.Errorf("machine %s: the socket path %q is longer than %d bytes: choose a shorter runtime directory", vm.Name, p, limits.MaxSocketPath))
		}
		return &qemucmd.Socket{Path: p}
	}
	m.Monitor = *socket(qemucmd.SocketMonitor)
	m.Monitor.FD = f.MonitorFD
	m.GuestAgent = socket(qemucmd.SocketGuestAgent)
	m.VMOPAgent = socket(qemucmd.SocketVMOPAgent)
	m.ToolMonitor = socket(qemucmd.SocketToolMonitor)
	if vm.Serial == nil || *vm.Serial {
		m.Serial = socket(qemucmd.SocketSerial)
	}
	if vm.UseTPM {
		m.TPM = &qemucmd.TPM{Socket: socket(qemucmd.SocketTPM).Path, SocketFD: f.TPMFD, StateDir: f.DataDir}
	}
	return errors.Join(errs...)
}

func (d *Display) machine(f *Facts) *qemucmd.Display {
	out := &qemucmd.Display{}
	if d.TLS != nil {
		out.TLSDir, out.TLSWithoutAuthority = first(f.TLSDir, d.TLS.Dir), f.TLSDir != ""
	}
	for s := range d.servers {
		s.machine(out, listens(s, f.DisplayPassword), f.DisplayPassword)
	}
	return out
}

func shares(all []Share, f *Facts) []qemucmd.Share {
	var out []qemucmd.Share
	for i, s := range all {
		share := qemucmd.Share{Tag: s.Tag, Dir: s.Dir, ReadOnly: s.ReadOnly, Protocol: qemucmd.ShareProtocol(s.Protocol), Contained: f.Contained}
		if s.Protocol != limits.Share9P {
			share.Socket, share.SocketFD = path.Join(f.RuntimeDir, qemucmd.ShareSocketName(i)), f.ShareFD
		}
		out = append(out, share)
	}
	return out
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func networks(nets []Network, uuid string, taps map[int]Tap) []qemucmd.Network {
	var out []qemucmd.Network
	for i, n := range nets {
		q := qemucmd.Network{Device: n.Device, MAC: first(n.MAC, qemucmd.StableMAC(uuid, i))}
		if n.Type == NetworkUser {
			q.User = &qemucmd.UserNetwork{Net: n.Net}
			for _, h := range n.HostForwards {
				q.User.HostForwards = append(q.User.HostForwards, qemucmd.HostForward(h))
			}
		} else {
			t := taps[i]
			q.Tap = &qemucmd.TapNetwork{Bridge: n.Bridge, FDs: t.FDs, VhostFDs: t.VhostFDs, MTU: t.MTU}
		}
		out = append(out, q)
	}
	return out
}

// drives takes the order of the list as the boot order if ordered and no drive has a boot index.
func drives(list []Drive, facts []DriveFacts, ordered bool) (cds []qemucmd.CDDrive, disks []qemucmd.Disk) {
	for _, d := range list {
		ordered = ordered && d.BootIndex == nil
	}
	serials := map[string]bool{}
	for i, d := range list {
		boot := d.BootIndex
		if ordered {
			boot = &i
		}
		if d.Type == DriveCD {
			cds = append(cds, qemucmd.CDDrive{Image: d.File, FD: facts[i].FD, BootIndex: boot})
			continue
		}
		q := qemucmd.Disk{Serial: serial(d, serials), Format: facts[i].Format, FD: facts[i].FD, BootIndex: boot, ReadOnly: d.ReadOnly}
		if d.Device != "" || d.Resource != "" && facts[i].Device {
			q.Device = d.Where()
		} else {
			q.File = d.Where()
		}
		disks = append(disks, q)
	}
	return cds, disks
}

// DiskSerials are the drives' serial numbers in the guest; empty for CDs.
func DiskSerials(list []Drive) []string {
	taken := map[string]bool{}
	out := make([]string, len(list))
	for i, d := range list {
		if d.Type != DriveCD {
			out[i] = serial(d, taken)
		}
	}
	return out
}

// AttachmentSerial is an attachment's serial number in the guest: its name, unless that is too long
// or is another disk's.
func (vm *VM) AttachmentSerial(uid string) string {
	taken := map[string]bool{}
	for _, d := range vm.Drives {
		if d.Type != DriveCD {
			serial(d, taken)
		}
	}
	for _, a := range vm.Attachments {
		if s := serial(Drive{Name: a.Name, File: a.UID}, taken); a.UID == uid {
			return s
		}
	}
	return ""
}

// maxSerial is virtio's limit of a disk's serial number (virtio 1.2, §5.2.6.1), in bytes.
const maxSerial = 20

// serial depends on the disks before it only if two disks have one name.
func serial(d Drive, taken map[string]bool) string {
	s := first(d.Name, path.Base(d.Where()))
	if len(s) > maxSerial || taken[s] {
		sum := sha256.Sum256([]byte(s + "\x00" + d.Where()))
		digest := hex.EncodeToString(sum[:])
		if d.Name != "" && !taken[s] { // a name does not change when the file is moved
			sum = sha256.Sum256([]byte(s))
			digest = hex.EncodeToString(sum[:])
		}
		s = digest[:maxSerial]
	}
	taken[s] = true
	return s
}

// MemoryOverhead is the host's memory that the machine of a configuration, defaulted and valid,
// needs beside its guest's RAM; see [qemucmd.MemoryOverhead]. Images of unknown format count as
// raw.
func MemoryOverhead(c *Config, h qemucmd.Host) (qemucmd.Overhead, error) {
	if c == nil {
		return qemucmd.Overhead{}, errNoConfig
	}
	m, err := Machine(c, Facts{Drives: make([]DriveFacts, len(c.Runner.VM.Drives))})
	if err != nil {
		return qemucmd.Overhead{}, err
	}
	return qemucmd.MemoryOverhead(m, h), nil
}

// Disks is the number of drives that are not CD drives.
func (vm *VM) Disks() (n int) {
	for _, d := range vm.Drives {
		if d.Type != DriveCD {
			n++
		}
	}
	return n
}
