package kubevirt

import (
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

func (m *machine) devices() {
	devices, preferred := m.instance.Get("domain", "devices"), m.preference.Get("devices")
	// KubeVirt's graphics are reached through its API, never by a port.
	m.vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{UnixSocket: true}}
	if graphics, ok := either(devices.Get("autoattachGraphicsDevice"), preferred.Get("preferredAutoattachGraphicsDevice")).Bool(); ok && !graphics {
		m.vm.Spec.VM.Display = &spec.Display{} // without one there would be a server
	}
	if serial, ok := either(devices.Get("autoattachSerialConsole"), preferred.Get("preferredAutoattachSerialConsole")).Bool(); ok && !serial {
		m.vm.Spec.VM.Serial = &spec.SerialConsole{Enabled: new(false)}
	}
	if tpm := either(devices.Get("tpm"), preferred.Get("preferredTPM")); tpm != nil {
		m.vm.Spec.VM.UseTPM = true
		if enabled, ok := tpm.Get("enabled").Bool(); ok && !enabled {
			m.vm.Spec.VM.UseTPM = false
		}
		if kept, ok := tpm.Get("persistent").Bool(); ok && !kept || !ok && m.vm.Spec.VM.UseTPM {
			tpm.Remark("the TPM's state is always kept here")
		}
		tpm.Read()
	}
	for _, input := range devices.Get("inputs").List() {
		if input.Get("type").String() == "tablet" {
			for _, key := range []string{"name", "bus"} { // a machine with a display has one
				input.Get(key).Read()
			}
		}
	}
	m.panicDevice(devices.Get("panicDevices").List(), preferred.Get("preferredPanicDeviceModel"))
	attached := either(devices.Get("autoattachMemBalloon"), preferred.Get("preferredAutoattachMemBalloon"))
	if balloon, ok := attached.Bool(); ok && !balloon {
		attached.Note("every machine has a memory balloon here")
	}
	if attach, ok := devices.Get("autoattachVSOCK").Bool(); ok && !attach {
		devices.Get("autoattachVSOCK").Read()
	}
}

var panicModels = map[string]spec.PanicDevice{"pvpanic": spec.PanicDevicePCI, "isa": spec.PanicDeviceISA}

// panicDevice translates the first supported panic device. The default model is the preferred one,
// or that of ISA, as with libvirt.
func (m *machine) panicDevice(devices []*tree.Node, preferred *tree.Node) {
	preferred.Read()
	for _, d := range devices {
		named, at := d.Get("model"), d
		if named.Is() {
			at = named
		} else {
			named = preferred
		}
		model := "isa"
		if named.Is() {
			model = named.String()
		}
		switch ours := panicModels[model]; {
		case ours == "":
			at.Note("is %q, which has no counterpart: %s and %s are what a guest can tell of its panic by here", model, spec.PanicDevicePCI, spec.PanicDeviceISA)
		case m.vm.Spec.VM.PanicDevice != "":
			at.Note("a machine has one panic device here, which is %s", m.vm.Spec.VM.PanicDevice)
		default:
			m.vm.Spec.VM.PanicDevice = ours
		}
		d.Read()
	}
}
