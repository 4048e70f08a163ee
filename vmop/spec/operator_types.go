package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The phases of a machine. Each sums up the conditions.
const (
	// PhasePending means that the machine should run and waits for something
	// that keeps it from being started; the conditions say what.
	PhasePending = "Pending"
	// PhaseStarting means that it is being started.
	PhaseStarting = "Starting"
	// PhaseRunning means that the guest executes.
	PhaseRunning = "Running"
	// PhasePaused means that QEMU runs and the guest does not execute: somebody
	// paused it, or its disk is full.
	PhasePaused = "Paused"
	// PhaseStopping means that it is being stopped.
	PhaseStopping = "Stopping"
	// PhaseStopped means that it does not run and should not.
	PhaseStopped = "Stopped"
	// PhaseTerminating means that the resource is being deleted.
	PhaseTerminating = "Terminating"
)

// The types of condition that the operator adds. They are present as soon as
// it has looked at the machine. Their names are Deckhouse's where it has them.
const (
	// ConditionConfigurationApplied is True while the specification is valid
	// and the objects of the machine are as it says.
	ConditionConfigurationApplied = "ConfigurationApplied"
	// ConditionBlockDevicesReady is True while the volume claims of all disks
	// are there and bound.
	ConditionBlockDevicesReady = "BlockDevicesReady"
	// ConditionPodReady is True while the machine's pod runs. Its reason says
	// what the machine waits for.
	ConditionPodReady = "PodReady"
	// ConditionAwaitingRestart is True while changes wait for the next start.
	ConditionAwaitingRestart = "AwaitingRestartToApplyConfiguration"
	// ConditionGuestExecuting is the runner's; False while the guest of a
	// running machine is paused.
	ConditionGuestExecuting = "GuestExecuting"
)

// OperatorConditionTypes returns the types of condition that the operator adds
// to those of [ConditionTypes], in their order.
func OperatorConditionTypes() []string {
	return []string{
		ConditionConfigurationApplied, ConditionBlockDevicesReady,
		ConditionPodReady, ConditionAwaitingRestart,
	}
}

// Reasons of the operator's conditions. Those of PodReady that begin with a
// cause of an end or come from the kubelet are not listed.
const (
	// ReasonConfigurationApplied: the objects are as the specification says.
	ReasonConfigurationApplied = "ConfigurationApplied"
	// ReasonConfigurationNotApplied: an object is yet to be written.
	ReasonConfigurationNotApplied = "ConfigurationNotApplied"
	// ReasonInvalidSpecification: the specification is refused, see the message.
	ReasonInvalidSpecification = "InvalidSpecification"
	// ReasonNameTaken: an object of the needed name belongs to somebody else.
	ReasonNameTaken = "NameTaken"
	// ReasonWriteRefused: the API server refused a write.
	ReasonWriteRefused = "WriteRefused"
	// ReasonShrinkRefused: the specification asks for less storage than a
	// volume has.
	ReasonShrinkRefused = "ShrinkRefused"

	// ReasonBlockDevicesReady: all claims are there and bound.
	ReasonBlockDevicesReady = "BlockDevicesReady"
	// ReasonBlockDevicesNotReady: a claim is yet to be made or bound.
	ReasonBlockDevicesNotReady = "BlockDevicesNotReady"
	// ReasonClaimNotFound: a claim that a disk refers to is missing.
	ReasonClaimNotFound = "ClaimNotFound"
	// ReasonClaimOfOtherMachine: a claim of the needed name is another
	// machine's.
	ReasonClaimOfOtherMachine = "ClaimOfOtherMachine"
	// ReasonClaimTerminating: a claim is being deleted.
	ReasonClaimTerminating = "ClaimTerminating"
	// ReasonClaimLost: a claim's volume is gone.
	ReasonClaimLost = "ClaimLost"

	// ReasonPodRunning: the pod runs.
	ReasonPodRunning = "PodRunning"
	// ReasonPodNotStarted: the pod waits for its node or its container.
	ReasonPodNotStarted = "PodNotStarted"
	// ReasonPodNotFound: there is no pod yet.
	ReasonPodNotFound = "PodNotFound"
	// ReasonPodTerminating: the pod is being deleted.
	ReasonPodTerminating = "PodTerminating"
	// ReasonPodFinished: the pod has ended.
	ReasonPodFinished = "PodFinished"
	// ReasonNodeLost: the pod's node does not answer.
	ReasonNodeLost = "NodeLost"
	// ReasonRestartDelayed: the machine failed and is started again later.
	ReasonRestartDelayed = "RestartDelayed"
	// ReasonDisksInUse: another pod uses the machine's disks.
	ReasonDisksInUse = "DisksInUse"
	// ReasonQuotaExceeded: a quota does not allow the pod.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonMachineStopped: the machine should not run.
	ReasonMachineStopped = "MachineStopped"
	// ReasonMachineDeleted: the machine is being deleted.
	ReasonMachineDeleted = "MachineDeleted"

	// ReasonChangesPendingRestart: changes wait for the next start.
	ReasonChangesPendingRestart = "ChangesPendingRestart"
	// ReasonNoRestartRequired: the running machine is as specified.
	ReasonNoRestartRequired = "NoRestartRequired"
	// ReasonUnexpectedState: it is not known with what the machine was started.
	ReasonUnexpectedState = "UnexpectedState"
)

// MachineEnd is how a pod of the machine ended. The operator writes it down
// before it acts on it, so that an end is never forgotten and counted once.
type MachineEnd struct {
	// podUID is the pod that ended.
	// +kubebuilder:validation:Required
	PodUID types.UID `json:"podUID"`
	// cause is one word that says why.
	// +kubebuilder:validation:Required
	Cause string `json:"cause"`
	// message says why to people.
	// +optional
	Message string `json:"message,omitempty"`
	// time is when it ended.
	// +kubebuilder:validation:Required
	Time metav1.Time `json:"time"`
	// observedGeneration is that of the specification when the end was noticed.
	// A later specification is tried without delay.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// failures counts the ends in a row that were failures, this one included.
	// The delay before the next start grows with it.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}
