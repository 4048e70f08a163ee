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

// USBDevice is one that is plugged into this host.
type USBDevice struct {
	// Vendor and Product are four hexadecimal digits each, in small letters.
	Vendor, Product string
	// Node is what a program opens to use the device, such as /dev/bus/usb/001/004; Denied is why
	// this process may not, "" if it may.
	Node, Denied string
}

// USBDevices finds the USB devices of this host, in the order of their nodes. root is
// "/", or a directory with the sys and dev of another one. A host without USB has none.
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
		// Interfaces are in there too, and have none of these files; so has what was
		// unplugged since.
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
