package host

// FindingStatus is the effect of a finding on the machines of this host.
type FindingStatus string

// The values of FindingStatus.
const (
	// FindingOK needs no action.
	FindingOK FindingStatus = "OK"
	// FindingLimited prevents certain machines from starting, or makes all of them slow.
	FindingLimited FindingStatus = "Limited"
	// FindingBroken prevents every machine from starting.
	FindingBroken FindingStatus = "Broken"
)

// Finding is something that machines need and that this host has or lacks.
type Finding struct {
	// Subject is what it is about, such as KVM.
	Subject string        `json:"subject"`
	Status  FindingStatus `json:"status"`
	// Found is the state; Do is the remedy, "" if none is needed. It may also be set with
	// FindingOK.
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}
