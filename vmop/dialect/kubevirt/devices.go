package kubevirt

import "github.com/vmop/sdk/vmop/spec"

// devices translates those that are neither disks nor networks.
func (m *machine) devices() {
	devices, preferred := m.instance.Get("domain", "devices"), m.preference.Get("devices")
	// Its graphics are reached through KubeVirt's API, never by a port.
	m.vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{UnixSocket: true}}
	if graphics, ok := either(devices.Get("autoattachGraphicsDevice"), preferred.Get("preferredAutoattachGraphicsDevice")).Bool(); ok && !graphics {
		m.vm.Spec.VM.Display = nil
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
	attached := either(devices.Get("autoattachMemBalloon"), preferred.Get("preferredAutoattachMemBalloon"))
	if balloon, ok := attached.Bool(); ok && !balloon {
		attached.Note("every machine has a memory balloon here")
	}
	if attach, ok := devices.Get("autoattachVSOCK").Bool(); ok && !attach {
		devices.Get("autoattachVSOCK").Read()
	}
}
