package qemucmd

// Accelerator selects what executes guest code.
type Accelerator string

const (
	// AcceleratorAuto uses KVM where [Host.KVM] is true, software emulation otherwise. The empty
	// string means the same.
	AcceleratorAuto Accelerator = "auto"
	// AcceleratorKVM demands hardware virtualization.
	AcceleratorKVM Accelerator = "kvm"
	// AcceleratorTCG is software emulation.
	AcceleratorTCG Accelerator = "tcg"
)
