package qemucmd

import (
	"strconv"

	"github.com/vmop/sdk/vmop/limits"
)

// USBHostDriver is QEMU's device for a USB device of the host.
const USBHostDriver = "usb-host"

// usbDevices passes USB devices of the host to the guest. QEMU finds them by itself, also while the
// machine runs. Their ports are counted from the last one down, so as not to collide with
// redirection channels.
func (b *builder) usbDevices() {
	if n := len(b.m.USBDevices); n > limits.MaxUSBDevices {
		b.errorf("usbDevices", "%d devices: want at most %d", n, limits.MaxUSBDevices)
		return
	}
	redirects := 0
	if d := b.m.Display; d != nil && d.SPICE != nil {
		redirects = d.SPICE.USBRedirects
	}
	if err := limits.USBPorts(len(b.m.USBDevices), redirects); err != nil && limits.USBRedirects(int64(redirects)) == nil {
		b.errorf("usbDevices", "%v", err)
		return
	}
	ids := map[string]string{}
	for i, d := range b.m.USBDevices {
		field := "usbDevices[" + strconv.Itoa(i) + "]"
		vendor, okVendor := b.usbID(field+".vendor", d.Vendor)
		product, okProduct := b.usbID(field+".product", d.Product)
		if !okVendor || !okProduct {
			continue
		}
		id := USBDeviceID(d.Vendor, d.Product)
		if other, dup := ids[id]; dup {
			b.errorf(field, "%s:%s is also %s", d.Vendor, d.Product, other)
			continue
		}
		ids[id] = field
		b.device(field, USBHostDriver, id, "a USB device of the host; the guest gets it as soon as it is plugged there",
			append(usbPort(usbPorts-i), Prop{"vendorid", Int(vendor)}, Prop{"productid", Int(product)})...)
	}
}

func (b *builder) usbID(field, text string) (int64, bool) {
	if !b.invalid(field, text, limits.USBID(text)) {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 16, 16)
	return int64(n), err == nil
}
