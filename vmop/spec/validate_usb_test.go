package spec

import (
	"slices"
	"strings"
	"testing"
)

func TestUSBDevices(t *testing.T) {
	stick := USBDevice{Vendor: "0951", Product: "1666"}
	for _, c := range []struct {
		name      string
		devices   []USBDevice
		redirects int64
		want      string // field and a part of the message; "" if nothing is wrong
	}{
		{"two", []USBDevice{stick, {Vendor: "046D", Product: "c31c"}}, 2, ""},
		{"no vendor", []USBDevice{{Product: "1666"}}, 2, "usbDevices[0].vendor: lsusb"},
		{"no product", []USBDevice{{Vendor: "0951"}}, 2, "usbDevices[0].product: lsusb"},
		{"a prefix", []USBDevice{{Vendor: "0x951", Product: "1666"}}, 2, "usbDevices[0].vendor: four hexadecimal digits"},
		{"three digits", []USBDevice{{Vendor: "951", Product: "1666"}}, 2, "usbDevices[0].vendor: in quotes"},
		{"an option", []USBDevice{{Vendor: "0951", Product: "1,a="}}, 2, "usbDevices[0].product: four hexadecimal digits"},
		{"any vendor", []USBDevice{{Vendor: "0000", Product: "1666"}}, 2, "usbDevices[0].vendor: any device"},
		{"any product", []USBDevice{{Vendor: "0951", Product: "0000"}}, 2, "usbDevices[0].product: any device"},
		{"one twice", []USBDevice{{Vendor: "046d", Product: "C31c"}, {Vendor: "046D", Product: "c31C"}}, 2, "usbDevices[1]: is also spec.vm.usbDevices[0]"},
		{"nine", slices.Repeat([]USBDevice{stick}, 9), 2, "usbDevices: 8"},
		{"more than ports", []USBDevice{stick, {Vendor: "046d", Product: "c31c"}}, 13, "usbDevices: 2 USB devices and 13 usbRedirects are more than the 14 ports"},
	} {
		vm := NewVirtualMachine("lab", "web")
		one := int32(1)
		vm.Spec.VM.MaximumCPUs = &one
		redirects := int32(c.redirects)
		vm.Spec.VM.Display = &Display{Spice: &Spice{UsbRedirects: &redirects}}
		vm.Spec.VM.USBDevices = c.devices
		var found []string
		for _, e := range Validate(vm) {
			found = append(found, e.Error())
		}
		field, text, _ := strings.Cut(c.want, ": ")
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%s: %v", c.name, found)
		case c.want != "" && (len(found) == 0 || !strings.Contains(found[0], field+": ") || !strings.Contains(strings.Join(found, "\n"), text)):
			t.Errorf("%s: %v, want %s", c.name, found, c.want)
		}
	}
}

// What YAML takes for a number is told, with quotes as the way out.
func TestUSBDevicesNeedQuotes(t *testing.T) {
	_, err := Load("vm.yaml", []byte(`apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm:
    maximumCpus: 1
    maximumRam: 128Mi
    networks: []
    display: {}
    usbDevices:
    - {vendor: 0951, product: "1666"}
`), Options{Default: true, Validate: true})
	if err == nil || !strings.Contains(err.Error(), "vm.yaml:11") || !strings.Contains(err.Error(), "quotes") {
		t.Errorf("%v", err)
	}
}
