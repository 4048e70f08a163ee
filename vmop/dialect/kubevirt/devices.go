package kubevirt

import "github.com/vmop/sdk/vmop/spec"

// devices translates those that are neither disks nor networks.
func (m *machine) devices() {
	devices := m.instance.Get("domain", "devices")
	// Its graphics are reached through KubeVirt's API, never by a port.
	m.vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{UnixSocket: true}}
	if graphics, ok := devices.Get("autoattachGraphicsDevice").Bool(); ok && !graphics {
		m.vm.Spec.VM.Display = nil
	}
	if serial, ok := devices.Get("autoattachSerialConsole").Bool(); ok && !serial {
		m.vm.Spec.VM.Serial = &spec.SerialConsole{Enabled: new(false)}
	}
	if tpm := devices.Get("tpm"); tpm != nil {
		m.vm.Spec.VM.UseTPM = true
		if enabled, ok := tpm.Get("enabled").Bool(); ok && !enabled {
			m.vm.Spec.VM.UseTPM = false
		}
		if kept, ok := tpm.Get("persistent").Bool(); ok && !kept || !ok && m.vm.Spec.VM.UseTPM {
			tpm.Note("the TPM's state is always kept here")
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
	if balloon, ok := devices.Get("autoattachMemBalloon").Bool(); ok && !balloon {
		devices.Get("autoattachMemBalloon").Note("every machine has a memory balloon here")
	}
	if attach, ok := devices.Get("autoattachVSOCK").Bool(); ok && !attach {
		devices.Get("autoattachVSOCK").Read()
	}
}
