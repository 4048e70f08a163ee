package spec

// ShouldRun reports whether a machine should run, as far as the operator has
// acted on it: by its run policy and what came of that, or by spec.vm.state if it
// has none.
func (vm *VirtualMachine) ShouldRun() bool {
	policy, p := vm.Spec.RunPolicy, vm.Status.Power
	switch policy {
	case "":
		return vm.Spec.VM.State == StateRunning
	case RunPolicyAlwaysOn, RunPolicyAlwaysOff:
		return policy == RunPolicyAlwaysOn
	}
	if p != nil {
		return p.State == StateRunning
	}
	return policy == RunPolicyAlwaysOnUnlessStoppedManually
}

// GuestShutdownIsFinal reports whether a machine stays stopped whose guest has
// powered itself off.
func (s *VirtualMachineSpec) GuestShutdownIsFinal() bool {
	if s.RunPolicy == "" {
		return s.GuestShutdownStops
	}
	return s.RunPolicy != RunPolicyAlwaysOn
}

// RestartsAutomatically reports whether changes that need a restart cause it.
func (s *VirtualMachineSpec) RestartsAutomatically() bool {
	return s.Disruptions != nil && s.Disruptions.RestartApprovalMode == RestartAutomatic
}
