package qemucmd

import (
	"strconv"
	"strings"
)

// HotPlugPorts is the number of root ports for hot-plugged devices of any kind, from PortID(0) on.
const HotPlugPorts = 6

// IDs of devices, as used over QMP. They are VM-Operator's where it has the device, and never
// change: a running machine has those of the version that started it. The IDs of lists are
// [DiskID], [CDID], [NICID] and [CPUID].
const (
	BalloonID = "balloon0"
	VideoID   = "video0"
	SeedID    = "seed"
	// AnswerCDID is the drive with [Machine.AnswerCD].
	AnswerCDID = "answers"
	// GenerationDeviceID is the device with [Machine.GenerationID].
	GenerationDeviceID = "generation0"
	// PanicPortID is the ISA device by which the guest reports a panic.
	PanicPortID = "panicport0"
	// SCSIControllerID is the controller of hot-plugged disks, at [SCSIPort].
	SCSIControllerID = "scsi0"
)

// The channels of the agents: the ID of the port in the guest, which events contain, and the label
// of the character device behind it.
const (
	GuestAgentChannel = "channel0"
	VMOPAgentChannel  = "channel1"
	SPICEAgentChannel = "channel2"

	GuestAgentChardev = "guest-agent-socket"
	VMOPAgentChardev  = "vmop-agent-socket"
	SPICEAgentChardev = "vdagentdev"
)

const displayTLS = "displaytls"

// Prefixes of the IDs of lists. Numbers count from 0, those of CPUs from 1: the first CPU is part
// of the machine and has no ID.
const (
	diskPrefix = "disk"
	cdPrefix   = "cd"
	nicPrefix  = "net"
	cpuPrefix  = "cpu-"
	portPrefix = "port"

	sharePrefix = "share"

	pluggedPrefix = "plugged-"

	usbDevicePrefix = "usbdev-"

	overlayPrefix = "vmop-overlay-"
)

// PortID is the ID of the i-th PCI Express root port, and of the bus behind it. Machines with the
// original map have none.
func PortID(i int) string { return portPrefix + strconv.Itoa(i) }

// DiskID is the id of the i-th of [Machine.Disks].
func DiskID(i int) string { return diskPrefix + strconv.Itoa(i) }

// IsDisk reports whether an id has the form of [DiskID].
func IsDisk(id string) bool { return isNumbered(id, diskPrefix) }

// CDID is the id of the i-th of [Machine.CDDrives].
func CDID(i int) string { return cdPrefix + strconv.Itoa(i) }

// IsCD reports whether an id has the form of [CDID].
func IsCD(id string) bool { return isNumbered(id, cdPrefix) }

// NICID is the id of the i-th of [Machine.Networks].
func NICID(i int) string { return nicPrefix + strconv.Itoa(i) }

// CPUID is the ID of the n-th hot-plugged CPU, n counting from 1.
func CPUID(n int) string { return cpuPrefix + strconv.Itoa(n) }

// IsCPU reports whether an id has the form of [CPUID].
func IsCPU(id string) bool { return isNumbered(id, cpuPrefix) }

func isNumbered(id, prefix string) bool {
	number, found := strings.CutPrefix(id, prefix)
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// DiskNode is the block node with the content of the i-th disk.
func DiskNode(i int) string { return "drive-" + strconv.Itoa(i) + "-backend" }

func diskFileNode(i int) string { return "drive-" + strconv.Itoa(i) + "-host-resource" }

// OverlayNode is the block node that a guest writes to while one of its disks is copied; i counts
// the disks being copied.
func OverlayNode(i int) string { return overlayPrefix + strconv.Itoa(i) }

// OverlayFileNode is the node of the file below [OverlayNode].
func OverlayFileNode(i int) string { return OverlayNode(i) + "-file" }

// IsOverlay reports whether a node is an [OverlayNode].
func IsOverlay(node string) bool { return isNumbered(node, overlayPrefix) }

// PluggedID is the ID of a hot-plugged disk, by the name of the disk.
func PluggedID(disk string) string { return pluggedPrefix + disk }

// PluggedDisk is the inverse of [PluggedID].
func PluggedDisk(id string) (disk string, ok bool) { return strings.CutPrefix(id, pluggedPrefix) }

// PluggedNode is the block node with the content of the disk plugged into the root port [PortID].
// QEMU limits node names to 31 bytes.
func PluggedNode(port int) string { return pluggedPrefix + strconv.Itoa(port) + "-backend" }

// PluggedFileNode is the node of the file below [PluggedNode].
func PluggedFileNode(port int) string { return pluggedPrefix + strconv.Itoa(port) + "-file" }

const attachedPrefix = "attached-"

// AttachedID is the ID of the disk of an attachment, by the attachment's UID.
func AttachedID(uid string) string { return attachedPrefix + uid }

// AttachedDisk is the inverse of [AttachedID].
func AttachedDisk(id string) (uid string, ok bool) { return strings.CutPrefix(id, attachedPrefix) }

// AttachedNode is the block node of the attached disk at the root port [PortID].
func AttachedNode(port int) string { return attachedPrefix + strconv.Itoa(port) }

// AttachedFileNode is the node below [AttachedNode] if the disk is not exported: that of the file
// or block device.
func AttachedFileNode(port int) string { return attachedPrefix + strconv.Itoa(port) + "-file" }

// AttachedPort is the inverse of [AttachedNode] and [AttachedFileNode].
func AttachedPort(node string) (port int, ok bool) {
	for port := range HotPlugPorts {
		if node == AttachedNode(port) || node == AttachedFileNode(port) {
			return port, true
		}
	}
	return 0, false
}

// AttachedSocketName is the name of the socket in a machine's runtime directory by which QEMU
// reaches the exporter of the disk at a root port.
func AttachedSocketName(port int) string { return "attached-" + strconv.Itoa(port) + ".sock" }

// MediumNode is the block node with the medium that a CD drive has at the start. Deleting it after
// a change of the medium closes the file.
func MediumNode(cdID string) string { return cdID + "-backend" }

func shareID(i int) string { return sharePrefix + strconv.Itoa(i) }

// USBDeviceID is the ID of one of [Machine.USBDevices]. It does not depend on the position in the
// list, nor on whether the device was plugged or present at the start.
func USBDeviceID(vendor, product string) string {
	return usbDevicePrefix + strings.ToLower(vendor+"-"+product)
}

// IsUSBDevice reports whether an id has the form of [USBDeviceID].
func IsUSBDevice(id string) bool {
	rest, found := strings.CutPrefix(id, usbDevicePrefix)
	return found && len(rest) == len("0951-1666")
}

const shareSocket = "virtiofs-sock"

// ShareSocketName is the name of the socket in a machine's runtime directory on which the server of
// the i-th share listens.
func ShareSocketName(i int) string { return shareSocket + strconv.Itoa(i) }

func netdevID(i int) string { return "hostnet" + strconv.Itoa(i) }

// Peripheral is the path in QEMU's object model below which devices with an ID are.
const Peripheral = "/machine/peripheral"

// DevicePath is the path of a device in QEMU's object model.
func DevicePath(id string) string { return Peripheral + "/" + id }

// DeviceID returns the ID in QEMU's name of a device or a part of it: a path such as
// "/machine/peripheral/disk0/virtio-backend", or the ID alone. It is "" for a device without an ID.
func DeviceID(name string) string {
	rest, found := strings.CutPrefix(name, Peripheral+"/")
	if !found {
		if strings.Contains(name, "/") {
			return ""
		}
		return name
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// SeedFileName is the name of the NoCloud image in a machine's runtime directory.
const SeedFileName = "cloud-init.img"

// AnswerCDFileName is the name of [Machine.AnswerCD] in a machine's runtime directory.
const AnswerCDFileName = "sysprep.iso"

// USBBus is the bus of the machine's USB controller.
const USBBus = "usb.0"
