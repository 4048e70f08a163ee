package host

// FindingStatus says what a finding means for the machines of this host.
type FindingStatus string

// The values of FindingStatus.
const (
	// FindingOK has nothing to be done about.
	FindingOK FindingStatus = "OK"
	// FindingLimited keeps certain machines from starting, or makes all
	// of them slow.
	FindingLimited FindingStatus = "Limited"
	// FindingBroken keeps every machine from starting.
	FindingBroken FindingStatus = "Broken"
)

// Finding is something that machines need and that this host has or lacks.
type Finding struct {
	// Subject is what it is about, such as KVM.
	Subject string        `json:"subject"`
	Status  FindingStatus `json:"status"`
	// Found is what there is; Do is what would help, "" if nothing has to. What is in
	// order has it where something can be done all the same.
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}
