package host

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/spec"
)

func TestUSBNotes(t *testing.T) {
	wanted := []spec.USBDevice{{Vendor: "0951", Product: "1666"}, {Vendor: "046D", Product: "C31C"}, {Vendor: "1209", Product: "0001"}}
	got := usbNotes(wanted, []hostprobe.USBDevice{
		{Vendor: "0951", Product: "1666", Node: "/dev/bus/usb/001/003", Denied: "permission denied"},
		{Vendor: "0951", Product: "1666", Node: "/dev/bus/usb/001/004"}, // one is enough
		{Vendor: "046d", Product: "c31c", Node: "/dev/bus/usb/002/011", Denied: "permission denied"},
	})
	want := []string{
		`USB device 046D:C31C (spec.vm.usbDevices[1]) may not be used: /dev/bus/usb/002/011: permission denied; a rule of udev can give it to you: SUBSYSTEM=="usb", ATTR{idVendor}=="046d", ATTR{idProduct}=="c31c", TAG+="uaccess"`,
		`USB device 1209:0001 (spec.vm.usbDevices[2]) is not plugged into this host: the guest gets it when it is`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	if got := USBNotes(&spec.VirtualMachine{}); got != nil {
		t.Errorf("%q", got)
	}
}
