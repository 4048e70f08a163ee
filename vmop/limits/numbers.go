package limits

import (
	"fmt"
	"math/bits"
)

// Numbers of devices and sizes.
const (
	// MaxNetworks is the number of addresses that the standard machine has for network cards,
	// rounded down.
	MaxNetworks = 64
	// MaxForwards is the number of forwarded ports of one network. QEMU has no limit; each is a
	// socket.
	MaxForwards = 256
	// MaxDisks is the number of PCI addresses for disks in the original address map; see package
	// qemucmd.
	MaxDisks = 112
	// MaxDisksBesideShares is the same in machines with root ports, one of which is for shared file
	// systems.
	MaxDisksBesideShares = 96
	// MaxShares is the number of functions behind the root port for shared file systems.
	MaxShares = 8
	// MaxAttached is the number of disks that can be attached to a running machine: one per root
	// port for hot-plugging.
	MaxAttached = 6
	// MaxInlineUserData is the maximum size of user data in a manifest's provisioning, in bytes, as
	// in Deckhouse.
	MaxInlineUserData = 2048
	// MaxCDs is the number of ports of q35's SATA controller.
	MaxCDs = 6
	// maxOutputs is VIRTIO_GPU_MAX_SCANOUTS.
	maxOutputs = 16
	// MaxUSBRedirects is the number of ports of the USB controller beside the tablet's.
	MaxUSBRedirects = 14
	// MaxUSBDevices is Deckhouse's limit of USB devices of the host per machine.
	MaxUSBDevices = 8
	// MaxCPUs is a bound that no machine type of QEMU exceeds; the type's own bound is lower, and
	// known only from the QEMU that runs it.
	MaxCPUs = 4096
	// MaxTCGAPICIDs is the number of APIC IDs under software emulation; KVM has more with an IOMMU.
	MaxTCGAPICIDs = 255
	// MaxBootIndex is the largest boot index.
	MaxBootIndex = 1<<31 - 2
	// MaxSerial is the length of a disk's serial that virtio transports, in bytes.
	MaxSerial = 20
	// MaxSocketPath is the longest path of a UNIX socket on Linux (unix(7)), in bytes, without the
	// terminating zero byte.
	MaxSocketPath = 107
	// MaxArgument is Linux's limit for one argument of a program, MAX_ARG_STRLEN, without the
	// terminating zero byte.
	MaxArgument = 32*4096 - 1
	// MaxKernelArgs is Linux's limit of a command line on x86 and arm64 (COMMAND_LINE_SIZE, without
	// the terminating zero byte); it silently truncates longer ones.
	MaxKernelArgs = 2047
	// MaxPowerdownTimeout is in seconds; as milliseconds it fits 31 bits.
	MaxPowerdownTimeout = 2147483
	// MinRAM, in bytes, is less than any firmware needs, and more than a size whose suffix was
	// forgotten.
	MinRAM = 4 << 20
	// MaxRAM, in bytes, is the largest number of whole MiB in an int64.
	MaxRAM = (1<<43 - 1) << 20
)

// Ports.
const (
	// SPICEPort is the default port of a SPICE server.
	SPICEPort = 5900
	// VNCPort is the default port of a VNC server, beside SPICE's.
	VNCPort = 5901
	// MinVNCPort is the port of display 0; QEMU has no negative displays.
	MinVNCPort = 5900
)

// Port checks a TCP or UDP port.
func Port(n int64) error { return between(n, 1, 65535) }

// VNCServerPort checks the port of a VNC server.
func VNCServerPort(n int64) error { return between(n, MinVNCPort, 65535) }

// BootIndex checks a place in the boot order.
func BootIndex(n int64) error { return between(n, 0, MaxBootIndex) }

// Outputs checks a number of monitors.
func Outputs(n int64) error { return between(n, 1, maxOutputs) }

// USBRedirects checks a number of USB redirection channels.
func USBRedirects(n int64) error { return between(n, 0, MaxUSBRedirects) }

// USBPorts checks the numbers of USB devices of the host and of redirection channels, which share
// the ports of the controller.
func USBPorts(devices, redirects int) error {
	if n := MaxUSBRedirects; devices+redirects > n {
		return fmt.Errorf("%d USB devices and %d usbRedirects are more than the %d ports for them", devices, redirects, n)
	}
	return nil
}

func between(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("must be from %d to %d", least, most)
	}
	return nil
}

// APICIDs returns how many APIC IDs the CPUs of a topology take. Each level takes whole bits, so
// that 5 cores take as many as 8. All numbers are at least 1 and at most 2^15.
func APICIDs(sockets, dies, cores, threads int) int64 {
	id := int64(sockets - 1)
	for _, n := range []int{dies, cores, threads} {
		id = id<<bits.Len(uint(n-1)) + int64(n-1)
	}
	return id + 1
}
