package spec

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

func validateUSBDevices(m *Machine, path spot) field.ErrorList {
	var errs field.ErrorList
	if n := len(m.USBDevices); n > limits.MaxUSBDevices {
		errs = append(errs, tooManyAt(path, n, limits.MaxUSBDevices))
	}
	if d := m.Display; d != nil && d.Spice != nil && d.Spice.UsbRedirects != nil && limits.USBRedirects(int64(*d.Spice.UsbRedirects)) == nil {
		if err := limits.USBPorts(len(m.USBDevices), int(*d.Spice.UsbRedirects)); err != nil {
			errs = append(errs, forbiddenAt(path, err.Error()))
		}
	}
	seen := map[string]spot{}
	for i, u := range m.USBDevices {
		at := path.Index(i)
		var bad field.ErrorList
		for _, f := range []struct{ name, value string }{{"vendor", u.Vendor}, {"product", u.Product}} {
			if f.value == "" {
				bad = append(bad, requiredAt(at.Child(f.name), "lsusb prints it (ID VENDOR:PRODUCT)"))
			} else {
				bad = append(bad, limited(at.Child(f.name), f.value, limits.USBID(f.value))...)
			}
		}
		errs = append(errs, bad...)
		if len(bad) > 0 {
			continue
		}
		id := strings.ToLower(u.Vendor + ":" + u.Product)
		if other, dup := seen[id]; dup {
			errs = append(errs, invalidAt(at, id, "is also "+other.String()))
		}
		seen[id] = at
	}
	return errs
}
