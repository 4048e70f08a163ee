package hostprobe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// USBDevice is a USB device of this host.
type USBDevice struct {
	// Vendor and Product are four lower-case hexadecimal digits each.
	Vendor, Product string
	// Node is the device file, such as /dev/bus/usb/001/004; Denied is why this process may not use
	// it, "" if it may.
	Node, Denied string
}

// USBDevices lists the USB devices of this host, in the order of their nodes. root is "/", or a
// directory with the sys and dev of another host. A host without USB has none.
func USBDevices(root string) ([]USBDevice, error) {
	dir := filepath.Join(root, "sys/bus/usb/devices")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []USBDevice
	for _, e := range entries {
		// Interfaces are listed too but lack these files, as does a device that was just unplugged.
		value := func(name string) string {
			data, err := os.ReadFile(filepath.Join(dir, e.Name(), name))
			if err != nil {
				return ""
			}
			return strings.ToLower(strings.TrimSpace(string(data)))
		}
		d := USBDevice{Vendor: value("idVendor"), Product: value("idProduct")}
		bus, errBus := strconv.Atoi(value("busnum"))
		number, errNumber := strconv.Atoi(value("devnum"))
		if d.Vendor == "" || d.Product == "" || errBus != nil || errNumber != nil {
			continue
		}
		d.Node = fmt.Sprintf("/dev/bus/usb/%03d/%03d", bus, number)
		if err := unix.Access(filepath.Join(root, d.Node), unix.R_OK|unix.W_OK); err != nil {
			d.Denied = err.Error()
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b USBDevice) int { return strings.Compare(a.Node, b.Node) })
	return out, nil
}
