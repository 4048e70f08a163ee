package kubevirt

import "github.com/vmop/sdk/vmop/spec"

func (m *machine) power() {
	m.vm.Spec.VM.State = spec.StateRunning
	running, strategy := m.root.Get("spec", "running"), m.root.Get("spec", "runStrategy")
	if on, ok := running.Bool(); ok && !on {
		m.vm.Spec.VM.State = spec.StateStopped
	}
	switch name := strategy.String(); name {
	case "":
		if m.alone {
			m.vm.Spec.GuestShutdownStops = true // an instance ends for good
		}
	case "Always":
		m.vm.Spec.RunPolicy = spec.RunPolicyAlwaysOn
	case "Halted":
		m.vm.Spec.VM.State = spec.StateStopped
		m.vm.Spec.RunPolicy = spec.RunPolicyAlwaysOff
	case "RerunOnFailure":
		m.vm.Spec.RunPolicy = spec.RunPolicyAlwaysOnUnlessStoppedManually
	case "Once":
		m.vm.Spec.RunPolicy = spec.RunPolicyAlwaysOnUnlessStoppedManually
		strategy.Note("a machine that fails is started again here; a power-off from inside of the guest stops it for good")
	case "Manual":
		m.vm.Spec.VM.State = spec.StateStopped
		m.vm.Spec.RunPolicy = spec.RunPolicyManual
	default:
		strategy.Note("is %q, which has no counterpart; the machine runs", name)
	}
	if grace := either(m.instance.Get("terminationGracePeriodSeconds"), m.preference.Get("preferredTerminationGracePeriodSeconds")); grace.Is() {
		if seconds, ok := grace.Int(); ok && seconds >= 0 {
			m.vm.Spec.VM.PowerdownTimeout = &seconds
		}
	}
}
