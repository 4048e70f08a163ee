package kubevirt

import (
	"regexp"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// versioned matches a machine type of upstream QEMU; distributions have others.
var versioned = regexp.MustCompile(`^pc-(q35|i440fx)-[0-9]+\.[0-9]+$`)

func (m *machine) firmware() {
	domain := m.instance.Get("domain")
	firmware := domain.Get("firmware")
	m.vm.Spec.VM.MachineUUID = firmware.Get("uuid").String()
	m.vm.Spec.VM.Firmware = spec.FirmwareBIOS // KubeVirt's default
	m.bootloader(firmware.Get("bootloader"), m.preference.Get("firmware"))
	own := domain.Get("machine", "type")
	if own.String() == "" {
		own = nil
	}
	kind := either(own, m.preference.Get("machine", "preferredMachineType"))
	switch name := kind.String(); {
	case name == "" || name == "q35" || name == "pc-q35":
	case versioned.MatchString(name) && name[:6] == "pc-q35":
		m.vm.Spec.VM.MachineType = name
	default:
		kind.Note("is %q; the machine gets the newest q35 of the QEMU that starts it first, and keeps it", name)
	}
	domain.Get("machine").Read()
	clock := domain.Get("clock")
	if preferred := m.preference.Get("clock", "preferredClockOffset"); clock.Get("utc") != nil || clock.Get("timezone").Is() {
		preferred.ReadAll()
	} else if preferred != nil {
		clock = preferred
	}
	switch {
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

func (m *machine) bootloader(own, preferred *tree.Node) {
	efi, bios := own.Get("efi"), own.Get("bios")
	uefi, _ := preferred.Get("preferredUseEfi").Bool()
	secure, hasSecure := preferred.Get("preferredUseSecureBoot").Bool()
	preferredBIOS, _ := preferred.Get("preferredUseBios").Bool()
	preferred.Get("preferredUseBiosSerial").Read() // its output is on the serial console anyway
	switch other := preferred.Get("preferredEfi"); {
	case efi != nil || bios != nil || preferredBIOS:
		uefi = efi != nil
		other.ReadAll()
	case other != nil:
		efi, uefi, hasSecure = other, true, false
	}
	bios.Get("useSerial").Read()
	bios.Read()
	if !uefi {
		return
	}
	m.vm.Spec.VM.Firmware = spec.FirmwareSecure
	if of, ok := efi.Get("secureBoot").Bool(); ok && !of || !ok && hasSecure && !secure {
		m.vm.Spec.VM.Firmware = spec.FirmwareUEFI
	}
	if kept, ok := efi.Get("persistent").Bool(); ok && !kept {
		efi.Get("persistent").Note("UEFI variables are always kept here")
	}
	efi.Read()
}
