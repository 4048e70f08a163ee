package spec

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Stats are what the operator has noted of the times of a machine. The names are
// those of Deckhouse Virtualization; its durations are texts, and here numbers of
// seconds, as Kubernetes' conventions have it.
type Stats struct {
	// phasesTransitions are the phases that the status has had last, the newest at
	// the end, of which there are ten at most. What lasted so short that the status
	// has never told of it is not among them.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	PhasesTransitions []PhaseTransition `json:"phasesTransitions,omitempty"`
	// launchTimeDuration is how long the steps of the present start took, or of that
	// of the run that the machine is in; it is missing while the machine is stopped.
	// +optional
	LaunchTimeDuration *LaunchTimeDuration `json:"launchTimeDuration,omitempty"`
	// lastStartTime is when the guest began to execute the last time.
	// +optional
	LastStartTime *metav1.Time `json:"lastStartTime,omitempty"`
}

// MaxPhasesTransitions is how many phases [Stats] have at most.
const MaxPhasesTransitions = 10

// PhaseTransition is the beginning of a phase.
type PhaseTransition struct {
	// phase is the phase that began.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=64
	Phase string `json:"phase"`
	// time is when it was found to have begun.
	// +kubebuilder:validation:Required
	Time metav1.Time `json:"time"`
}

// LaunchTimeDuration is how long the steps of a start took. What is not known is
// missing.
type LaunchTimeDuration struct {
	// waitingForDependenciesSeconds is the time in seconds from when the machine
	// was to run until a node took its pod: for volume claims, quota, the end of
	// another pod, room on a node.
	// +kubebuilder:validation:Minimum=0
	// +optional
	WaitingForDependenciesSeconds *int64 `json:"waitingForDependenciesSeconds,omitempty"`
	// virtualMachineStartingSeconds is the time in seconds from then until the guest
	// executed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	VirtualMachineStartingSeconds *int64 `json:"virtualMachineStartingSeconds,omitempty"`
	// guestOSAgentStartingSeconds is the time in seconds from then until the guest
	// agent answered. It is noted with the next report after that; until then the
	// condition Booted tells it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	GuestOSAgentStartingSeconds *int64 `json:"guestOSAgentStartingSeconds,omitempty"`
}
