package kubevirt

import (
	"regexp"

	"github.com/vmop/sdk/vmop/spec"
)

// versioned is a machine type of QEMU itself; distributions have others.
var versioned = regexp.MustCompile(`^pc-(q35|i440fx)-[0-9]+\.[0-9]+$`)

// firmware translates firmware, identity, machine type and clock.
func (m *machine) firmware() {
	domain := m.instance.Get("domain")
	firmware := domain.Get("firmware")
	m.vm.Spec.VM.MachineUUID = firmware.Get("uuid").String()
	m.vm.Spec.VM.Firmware = spec.FirmwareBIOS // the default there
	switch efi := firmware.Get("bootloader", "efi"); {
	case efi != nil:
		m.vm.Spec.VM.Firmware = spec.FirmwareSecure
		if secure, ok := efi.Get("secureBoot").Bool(); ok && !secure {
			m.vm.Spec.VM.Firmware = spec.FirmwareUEFI
		}
		if kept, ok := efi.Get("persistent").Bool(); ok && !kept {
			efi.Get("persistent").Note("UEFI variables are always kept here")
		}
		efi.Read()
	case firmware.Get("bootloader", "bios") != nil:
		firmware.Get("bootloader", "bios").Get("useSerial").Read() // its output is on the serial console anyway
		firmware.Get("bootloader").Read()
	}
	kind := domain.Get("machine", "type")
	switch name := kind.String(); {
	case name == "" || name == "q35" || name == "pc-q35":
	case versioned.MatchString(name) && name[:6] == "pc-q35":
		m.vm.Spec.VM.MachineType = name
	default:
		kind.Note("is %q; the machine gets the newest q35 of the QEMU that starts it first, and keeps it", name)
	}
	domain.Get("machine").Read()
	switch clock := domain.Get("clock"); {
	case clock.Get("utc") != nil:
		m.vm.Spec.VM.RTCBase = "utc"
		if offset := clock.Get("utc", "offsetSeconds"); offset.Is() {
			offset.Note("the clock has no offset here")
		}
		clock.Get("utc").Read()
	case clock.Get("timezone").Is():
		m.vm.Spec.VM.RTCBase = "localtime"
		clock.Get("timezone").Note("the clock has the local time of the host or pod")
	}
}
