package limits

import (
	"errors"
	"regexp"
)

// usbID is the form in which lsusb prints the identifiers of vendors and products.
var usbID = regexp.MustCompile(`^[0-9A-Fa-f]{4}$`)

// USBID checks a USB vendor or product identifier. QEMU takes 0 for any, so the guest would get
// whatever device is plugged into the host.
func USBID(s string) error {
	if !usbID.MatchString(s) {
		return errors.New("must be four hexadecimal digits, as lsusb prints them (ID 0951:1666); write them in quotes")
	}
	if s == "0000" {
		return errors.New("must not be 0000, which QEMU takes for any device")
	}
	return nil
}
