package qemucmd

import (
	"regexp"
)

// explanations are what QEMU says when it gives up a start, in the words of its
// source (error texts of QEMU 7.2 to 10.1), and what that means to whoever wrote the
// manifest. $1 and so on are what the expression found.
var explanations = []struct {
	said  *regexp.Regexp
	means string
}{
	{regexp.MustCompile(`(?m)^Is another process using the image \[(.+)\]\?$`),
		"the disk image $1 is used by another process: no two machines may write to one image"},
	{regexp.MustCompile(`(?m)-blockdev .*: Could not open '(.+)': Permission denied$`),
		"the disk image $1 may not be opened: its owner and mode, and those of its directories, must let this user read it, and write it unless it is read-only"},
	{regexp.MustCompile(`(?m)-blockdev .*: Could not open '(.+)': Read-only file system$`),
		"the disk image $1 is on a file system that is mounted read-only"},
	{regexp.MustCompile(`(?m)-blockdev .*: Could not open '(.+)': No such file or directory$`),
		"the disk image $1 does not exist"},
	{regexp.MustCompile(`(?m)Could not set up host forwarding rule '(tcp|udp):([^:]*):([0-9]+)-`),
		"a port of hostForwards cannot be had: $1 port $3 of the address $2 is taken or not this user's; choose another hostPort"},
	{regexp.MustCompile(`(?m)-vnc .*: Failed to find an available port: Address already in use$`),
		"the port of display.vnc is taken: choose another port or websocket"},
	{regexp.MustCompile(`(?m)binding socket to (.*):([0-9]+) failed$`),
		"the port of display.spice cannot be had: port $2 of the address $1 is taken or not this user's; choose another port"},
	{regexp.MustCompile(`(?m)unable to find CPU model '(.+)'$`),
		"QEMU has no CPU model $1: qemu-system-x86_64 -cpu help lists those that cpuModel may name"},
	{regexp.MustCompile(`(?m)unsupported machine type`),
		"this QEMU does not have the machine type: qemu-system-x86_64 -machine help lists those that machineType may name"},
	{regexp.MustCompile(`(?m)could not open kernel file '(.+)': (.+)$`),
		"the kernel $1 of kernelBoot cannot be opened: $2"},
	{regexp.MustCompile(`(?m)cannot set up guest memory '.*': Cannot allocate memory$`),
		"the host cannot give the guest its memory: less maximumRam, or fewer machines"},
	{regexp.MustCompile(`(?m)phys-bits too low \(([0-9]+)\)`),
		"maximumRam is more than the processor can address with $1 bits"},
	{regexp.MustCompile(`(?m)usb-host.*: failed to init libusb$`),
		"the devices of usbDevices cannot be had: this host shows no USB devices to this user (/dev/bus/usb)"},
	{regexp.MustCompile(`(?m)Could not access KVM kernel module: (.+)$`),
		"KVM cannot be used: /dev/kvm: $1; accelerator: auto does without"},
}

// Explain says what the output of a QEMU that did not start means in the words of
// a manifest, "" if it is not known. What QEMU said has more details.
func Explain(output string) string {
	for _, e := range explanations {
		if m := e.said.FindStringSubmatchIndex(output); m != nil {
			return string(e.said.ExpandString(nil, e.means, output, m))
		}
	}
	return ""
}
