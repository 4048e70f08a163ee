package kubevirt

import "github.com/vmop/sdk/vmop/spec"

// power translates whether the machine runs. What a power-off from inside of the
// guest means follows from the run strategy.
func (m *machine) power() {
	m.vm.Spec.VM.State = spec.StateRunning
	running, strategy := m.root.Get("spec", "running"), m.root.Get("spec", "runStrategy")
	if on, ok := running.Bool(); ok && !on {
		m.vm.Spec.VM.State = spec.StateStopped
	}
	switch name := strategy.String(); name {
	case "":
		if m.root.Object().Kind == kindInstance {
			m.vm.Spec.GuestShutdownStops = true // an instance ends for good
		}
	case "Always":
	case "Halted":
		m.vm.Spec.VM.State = spec.StateStopped
	case "RerunOnFailure":
		m.vm.Spec.GuestShutdownStops = true
	case "Once":
		m.vm.Spec.GuestShutdownStops = true
		strategy.Note("a machine that fails is started again here; a power-off from inside of the guest stops it for good")
	case "Manual":
		m.vm.Spec.VM.State, m.vm.Spec.GuestShutdownStops = spec.StateStopped, true
		strategy.Note("the machine is stopped until somebody starts it; a machine that fails is started again here")
	default:
		strategy.Note("is %q, which has no counterpart; the machine runs", name)
	}
	if grace := m.instance.Get("terminationGracePeriodSeconds"); grace.Is() {
		if seconds, ok := grace.Int(); ok && seconds >= 0 {
			m.vm.Spec.VM.PowerdownTimeout = &seconds
		}
	}
}
