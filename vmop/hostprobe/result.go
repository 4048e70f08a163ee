package hostprobe

// KVM is the result of the check of KVM.
type KVM struct {
	Works bool
	// Reason is why it does not work, as a reason of the condition [conditions.Accelerated];
	// Message is for display.
	Reason, Message string
}
