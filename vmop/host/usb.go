package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/spec"
)

// USBNotes report which of a machine's USB devices its guest does not have yet, with the remedies.
// A machine starts without them: QEMU goes on looking for them.
func USBNotes(vm *spec.VirtualMachine) []string {
	if vm == nil || len(vm.Spec.VM.USBDevices) == 0 {
		return nil
	}
	found, err := hostprobe.USBDevices("/")
	if err != nil {
		return []string{fmt.Sprintf("USB devices: %v", err)}
	}
	return usbNotes(vm.Spec.VM.USBDevices, found)
}

func usbNotes(wanted []spec.USBDevice, found []hostprobe.USBDevice) []string {
	var out []string
	for i, w := range wanted {
		name := fmt.Sprintf("USB device %s:%s (spec.vm.usbDevices[%d])", w.Vendor, w.Product, i)
		same := slices.DeleteFunc(slices.Clone(found), func(d hostprobe.USBDevice) bool {
			return d.Vendor != strings.ToLower(w.Vendor) || d.Product != strings.ToLower(w.Product)
		})
		switch usable := slices.ContainsFunc(same, func(d hostprobe.USBDevice) bool { return d.Denied == "" }); {
		case len(same) == 0:
			out = append(out, name+" is not plugged into this host: the guest gets it when it is")
		case !usable:
			out = append(out, fmt.Sprintf("%s may not be used: %s: %s; a rule of udev can give it to you: SUBSYSTEM==\"usb\", ATTR{idVendor}==\"%s\", ATTR{idProduct}==\"%s\", TAG+=\"uaccess\"",
				name, same[0].Node, same[0].Denied, same[0].Vendor, same[0].Product))
		}
	}
	return out
}
