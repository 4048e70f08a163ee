package hostprobe

// KVM is whether KVM works.
type KVM struct {
	Works bool
	// Reason is why it does not, as a reason of the condition [conditions.Accelerated]; Message is
	// for display.
	Reason, Message string
}
