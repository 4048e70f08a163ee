package qemucmd

import (
	"regexp"
	"strconv"
)

// about holds the numbers of an expression's groups; 0 is none.
type about struct {
	image                   int
	inUse                   bool
	field                   string
	protocol, address, port int
}

// explanations maps QEMU's messages when it fails to start (error texts of QEMU 7.2 to 10.1) to
// explanations for the author of the manifest, in which $1 and so on refer to the expression's
// groups.
var explanations = []struct {
	said  *regexp.Regexp
	means string
	about
}{
	{regexp.MustCompile(`(?m)^Is another process using the image \[(.+)\]\?$`),
		"the disk image $1 is used by another process: no two machines may write to one image", about{image: 1, inUse: true}},
	{regexp.MustCompile(`(?m)-blockdev .*: Could not open '(.+)': Permission denied$`),
		"the disk image $1 may not be opened: its owner and mode, and those of its directories, must let this user read it, and write it unless it is read-only", about{image: 1}},
	{regexp.MustCompile(`(?m)-blockdev .*: Could not open '(.+)': Read-only file system$`),
		"the disk image $1 is on a file system that is mounted read-only", about{image: 1}},
	{regexp.MustCompile(`(?m)-blockdev .*: Could not open '(.+)': No such file or directory$`),
		"the disk image $1 does not exist", about{image: 1}},
	{regexp.MustCompile(`(?m)Could not set up host forwarding rule '(tcp|udp):([^:]*):([0-9]+)-`),
		"$1 port $3 of the address $2 is taken or not this user's: choose another hostPort", about{protocol: 1, address: 2, port: 3}},
	{regexp.MustCompile(`(?m)-vnc .*: Failed to find an available port: Address already in use$`),
		"the port of display.vnc is taken: choose another port or websocket", about{field: "vm.display.vnc"}},
	{regexp.MustCompile(`(?m)binding socket to (.*):([0-9]+) failed$`),
		"port $2 of the address $1 is taken or not this user's: choose another port of display.spice", about{field: "vm.display.spice.port", address: 1, port: 2}},
	{regexp.MustCompile(`(?m)unable to find CPU model '(.+)'$`),
		"QEMU has no CPU model $1: qemu-system-x86_64 -cpu help lists those that cpuModel may name", about{field: "vm.cpuModel"}},
	{regexp.MustCompile(`(?m)unsupported machine type`),
		"this QEMU does not have the machine type: qemu-system-x86_64 -machine help lists those that machineType may name", about{field: "vm.machineType"}},
	{regexp.MustCompile(`(?m)could not open kernel file '(.+)': (.+)$`),
		"the kernel $1 of kernelBoot cannot be opened: $2", about{field: "vm.kernelBoot.kernel"}},
	{regexp.MustCompile(`(?m)cannot set up guest memory '.*': Cannot allocate memory$`),
		"the host cannot give the guest its memory: less maximumRam, or fewer machines", about{field: "vm.maximumRam"}},
	{regexp.MustCompile(`(?m)phys-bits too low \(([0-9]+)\)`),
		"maximumRam is more than the processor can address with $1 bits", about{field: "vm.maximumRam"}},
	{regexp.MustCompile(`(?m)usb-host.*: failed to init libusb$`),
		"the devices of usbDevices cannot be had: this host shows no USB devices to this user (/dev/bus/usb)", about{field: "vm.usbDevices"}},
	{regexp.MustCompile(`(?m)Could not access KVM kernel module: (.+)$`),
		"KVM cannot be used: /dev/kvm: $1; accelerator: auto does without", about{field: "vm.accelerator"}},
}

// Explanation is the meaning of a message of QEMU.
type Explanation struct {
	// Message is in the words of a manifest.
	Message string
	// Image is the disk image that the message is about, if any. ImageInUse is true if another
	// process has it open.
	Image      string
	ImageInUse bool
	// Field is the key of the runner's configuration that the message is about, such as
	// "vm.cpuModel"; empty if it could be several, as with images and forwards.
	Field string
	// Port is the port of the host that is not available on Address, as far as QEMU reports them,
	// and Protocol that of a forward: tcp or udp. A port of 0 is none.
	Protocol, Address string
	Port              int
}

// Understand returns the explanation of the output of a QEMU that did not start; false if it is not
// known.
func Understand(output string) (Explanation, bool) {
	for _, e := range explanations {
		m := e.said.FindStringSubmatchIndex(output)
		if m == nil {
			continue
		}
		group := func(n int) string {
			if n == 0 {
				return ""
			}
			return output[m[2*n]:m[2*n+1]]
		}
		x := Explanation{
			Message: string(e.said.ExpandString(nil, e.means, output, m)), ImageInUse: e.inUse, Field: e.field,
			Image: group(e.image), Protocol: group(e.protocol), Address: group(e.address),
		}
		x.Port, _ = strconv.Atoi(group(e.port)) // digits; 0 if out of range
		return x, true
	}
	return Explanation{}, false
}

// Explain returns the Message of [Understand], or "". It does not replace QEMU's output, which has
// more details.
func Explain(output string) string {
	x, _ := Understand(output)
	return x.Message
}
