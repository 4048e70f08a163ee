package live

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// usbDevices plugs the configured USB devices of the host, and unplugs its others. Those that a
// viewer has redirected, or that were plugged by hand under another id, are left alone.
func (d *decider) usbDevices() {
	wanted := map[string]bool{}
	var problems []string
	pending := false
	try := func(step Step) {
		exhausted, problem := d.attempt(d.goal(step.part()), step)
		pending = pending || !exhausted
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	missing := 0
	for _, u := range d.in.Config.Runner.VM.USBDevices {
		id := qemucmd.USBDeviceID(u.Vendor, u.Product)
		wanted[id] = true
		if slices.Contains(d.in.Observed.USBDevices, id) {
			continue
		}
		missing++
		vendor, err1 := strconv.ParseUint(u.Vendor, 16, 16)
		product, err2 := strconv.ParseUint(u.Product, 16, 16)
		if err1 == nil && err2 == nil { // the configuration is valid
			try(PlugUSBDevice{ID: id, Vendor: uint16(vendor), Product: uint16(product)})
		}
	}
	surplus := 0
	for _, id := range slices.Sorted(slices.Values(d.in.Observed.USBDevices)) {
		if qemucmd.IsUSBDevice(id) && !wanted[id] {
			surplus++
			try(UnplugUSBDevice{ID: id})
		}
	}
	why := because(strings.Join(problems, "; "))
	switch {
	case len(wanted) == 0 && surplus == 0:
	case missing == 0 && surplus == 0:
		d.asConfigured(USBDevicesAttached)
	case pending:
		d.condition(USBDevicesAttached, False, ReasonAdjusting, "plugging %d USB devices, unplugging %d%s", missing, surplus, why)
	default:
		d.condition(USBDevicesAttached, False, ReasonRefused, "%d USB devices are missing, %d are too many%s", missing, surplus, why)
	}
}
