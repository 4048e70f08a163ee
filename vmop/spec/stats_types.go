package spec

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Stats are what the operator has noted of the times of a machine. The names are
// those of Deckhouse Virtualization; its durations are texts, and here numbers of
// seconds, as Kubernetes' conventions have it.
// +structType=atomic
type Stats struct {
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional

	// phasesTransitions are the phases that the status has had last, the newest at
	// the end, of which there are ten at most. What lasted so short that the status
	// has never told of it is not among them.
	PhasesTransitions []PhaseTransition `json:"phasesTransitions,omitempty"`

	// +optional

	// launchTimeDuration is how long the steps of the present start took, or of that
	// of the run that the machine is in; it is missing while the machine is stopped.
	LaunchTimeDuration *LaunchTimeDuration `json:"launchTimeDuration,omitempty"`

	// +optional

	// lastStartTime is when the guest began to execute the last time.
	LastStartTime *metav1.Time `json:"lastStartTime,omitempty"`
}

// MaxPhasesTransitions is how many phases [Stats] have at most.
const MaxPhasesTransitions = 10

// PhaseTransition is the beginning of a phase.
type PhaseTransition struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=64

	// phase is the phase that began.
	Phase string `json:"phase"`

	// +kubebuilder:validation:Required

	// time is when it was found to have begun.
	Time metav1.Time `json:"time"`
}

// LaunchTimeDuration is how long the steps of a start took. What is not known is
// missing.
type LaunchTimeDuration struct {
	// +kubebuilder:validation:Minimum=0
	// +optional

	// waitingForDependenciesSeconds is the time in seconds from when the machine
	// was to run until a node took its pod: for volume claims, quota, the end of
	// another pod, room on a node.
	WaitingForDependenciesSeconds *int64 `json:"waitingForDependenciesSeconds,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +optional

	// virtualMachineStartingSeconds is the time in seconds from then until the guest
	// executed.
	VirtualMachineStartingSeconds *int64 `json:"virtualMachineStartingSeconds,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +optional

	// guestOSAgentStartingSeconds is the time in seconds from then until the guest
	// agent answered. It is noted with the next report after that; until then the
	// condition Booted tells it.
	GuestOSAgentStartingSeconds *int64 `json:"guestOSAgentStartingSeconds,omitempty"`
}
