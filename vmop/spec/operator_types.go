package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmop/sdk/vmop/conditions"
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
	// PhaseDegraded means that QEMU runs and the guest cannot execute because of an
	// error, about which somebody has to do something: of a disk, of QEMU, or of the
	// guest, which has panicked or not served its watchdog.
	PhaseDegraded = "Degraded"
	// PhaseStopping means that it is being stopped.
	PhaseStopping = "Stopping"
	// PhaseStopped means that it does not run and should not.
	PhaseStopped = "Stopped"
	// PhaseTerminating means that the resource is being deleted.
	PhaseTerminating = "Terminating"
	// PhaseMigrating is reserved for a machine that moves to another pod while its guest
	// executes. None does yet, and no machine has this phase.
	PhaseMigrating = "Migrating"
	// PhaseUnknown means that the node of the machine does not report: it may run
	// there or not.
	PhaseUnknown = "Unknown"
)

// The types of condition that the operator adds. They are present as soon as
// it has looked at the machine. Their names are Deckhouse's where it has them.
const (
	// ConditionConfigurationApplied is True while the specification is valid
	// and the objects of the machine are as it says.
	ConditionConfigurationApplied = conditions.ConfigurationApplied
	// ConditionBlockDevicesReady is True while the volume claims of all disks
	// are there and bound.
	ConditionBlockDevicesReady = conditions.BlockDevicesReady
	// ConditionPodReady is True while the machine's pod runs. Its reason says
	// what the machine waits for.
	ConditionPodReady = conditions.PodReady
	// ConditionAccelerated is True while the guest executes on the processors of
	// its node, False while it is emulated in software, and Unknown while it does
	// not run.
	ConditionAccelerated = conditions.Accelerated
	// ConditionAwaitingRestart is True while changes wait for the next start.
	ConditionAwaitingRestart = conditions.AwaitingRestart
	// ConditionReady is True while the guest executes and its runner and its node
	// report; Unknown while the node does not. Its reason sums up the others.
	ConditionReady = conditions.Ready
	// ConditionRunnerUpToDate is False while the machine runs with another image of
	// the runner than its next start would have.
	ConditionRunnerUpToDate = conditions.RunnerUpToDate
	// ConditionSoleOperator is False while two operators feel responsible for the
	// machine.
	ConditionSoleOperator = conditions.SoleOperator
	// ConditionProvisioningReady is True while what the guest is provisioned by is
	// there, and Unknown while nobody looks, because the machine does not start.
	ConditionProvisioningReady = conditions.ProvisioningReady
	// ConditionVirtualMachineClassReady is True while the class of the machine is there
	// and valid. Only a machine that has a class has it.
	ConditionVirtualMachineClassReady = conditions.VirtualMachineClassReady
	// ConditionSizingPolicyMatched is True while the class of the machine allows its
	// size. Only a machine that has a class has it.
	ConditionSizingPolicyMatched = conditions.SizingPolicyMatched
	// ConditionGuestExecuting is the runner's; False while the guest of a
	// running machine is paused, and Unknown instead of True while the node of its pod
	// does not report.
	ConditionGuestExecuting = conditions.GuestExecuting
	// ConditionCPUsAdjusted is the runner's; True while the guest has the CPUs
	// that it is to have. Its generation is the one that the runner follows.
	ConditionCPUsAdjusted = conditions.CPUsAdjusted
)

// OperatorConditionTypes returns the types of condition that the operator adds
// to those of [ConditionTypes], in their order. The last two are about the machine's
// class, and only those that have one have them; all others every machine has.
func OperatorConditionTypes() []string {
	return []string{
		ConditionConfigurationApplied, ConditionBlockDevicesReady,
		ConditionPodReady, ConditionAwaitingRestart, ConditionReady, ConditionAccelerated,
		ConditionRunnerUpToDate, ConditionSoleOperator, ConditionProvisioningReady,
		ConditionVirtualMachineClassReady, ConditionSizingPolicyMatched,
	}
}

// Reasons of the operator's conditions. Those of PodReady that begin with a
// cause of an end or come from the kubelet are not listed.
const (
	// ReasonConfigurationApplied: the objects are as the specification says.
	ReasonConfigurationApplied = conditions.ReasonConfigurationApplied
	// ReasonConfigurationNotApplied: an object is yet to be written.
	ReasonConfigurationNotApplied = conditions.ReasonConfigurationNotApplied
	// ReasonInvalidSpecification: the specification is refused, see the message.
	ReasonInvalidSpecification = conditions.ReasonInvalidSpecification
	// ReasonRunnerUnsuitable: the image cannot run in the machine's pod.
	ReasonRunnerUnsuitable = conditions.ReasonRunnerUnsuitable
	// ReasonNotAllowed: the specification asks for what the administrator does not
	// allow; the message names the setting.
	ReasonNotAllowed = conditions.ReasonNotAllowed
	// ReasonTLSSecretMissing: the Secret with the certificate of the display is not
	// there or lacks a key; the message names them.
	ReasonTLSSecretMissing = conditions.ReasonTLSSecretMissing
	// ReasonProvisioningReady: the Secrets that the guest is provisioned from are
	// there.
	ReasonProvisioningReady = conditions.ReasonProvisioningReady
	// ReasonProvisioningNotReady: a Secret is missing or has another type; the
	// message names it.
	ReasonProvisioningNotReady = conditions.ReasonProvisioningNotReady
	// ReasonProvisioningReadyWithWarnings: cloud-init will make nothing of the user
	// data.
	ReasonProvisioningReadyWithWarnings = conditions.ReasonProvisioningReadyWithWarnings
	// ReasonPodAdopted: the pod of the former machine of the name is taken over.
	ReasonPodAdopted = conditions.ReasonPodAdopted
	// ReasonPodNotAdopted: the pod of the former machine of the name runs on, and is
	// another machine by its UUID or its disks.
	ReasonPodNotAdopted = conditions.ReasonPodNotAdopted
	// ReasonNameTaken: an object of the needed name belongs to somebody else.
	ReasonNameTaken = conditions.ReasonNameTaken
	// ReasonWriteRefused: the API server refused a write.
	ReasonWriteRefused = conditions.ReasonWriteRefused
	// ReasonShrinkRefused: the specification asks for less storage than a
	// volume has.
	ReasonShrinkRefused = conditions.ReasonShrinkRefused

	// ReasonVirtualMachineClassReady: the class of the machine is there.
	ReasonVirtualMachineClassReady = conditions.ReasonVirtualMachineClassReady
	// ReasonVirtualMachineClassNotFound: there is no class of the name.
	ReasonVirtualMachineClassNotFound = conditions.ReasonVirtualMachineClassNotFound
	// ReasonVirtualMachineClassNotReady: the class cannot be read, or is not valid.
	ReasonVirtualMachineClassNotReady = conditions.ReasonVirtualMachineClassNotReady
	// ReasonSizingPolicyMatched: the class allows the size of the machine.
	ReasonSizingPolicyMatched = conditions.ReasonSizingPolicyMatched
	// ReasonSizingPolicyNotMatched: the class does not allow it.
	ReasonSizingPolicyNotMatched = conditions.ReasonSizingPolicyNotMatched

	// ReasonBlockDevicesReady: all claims are there and bound.
	ReasonBlockDevicesReady = conditions.ReasonBlockDevicesReady
	// ReasonBlockDevicesNotReady: a claim is yet to be made or bound.
	ReasonBlockDevicesNotReady = conditions.ReasonBlockDevicesNotReady
	// ReasonClaimNotFound: a claim that a disk or a shared folder refers to is missing.
	ReasonClaimNotFound = conditions.ReasonClaimNotFound
	// ReasonClaimOfImage: a claim is that of a VirtualImage, which no machine writes to.
	ReasonClaimOfImage = conditions.ReasonClaimOfImage
	// ReasonClaimOfOtherMachine: a claim of the needed name is another
	// machine's.
	ReasonClaimOfOtherMachine = conditions.ReasonClaimOfOtherMachine
	// ReasonClaimTerminating: a claim is being deleted.
	ReasonClaimTerminating = conditions.ReasonClaimTerminating
	// ReasonClaimLost: a claim's volume is gone.
	ReasonClaimLost = conditions.ReasonClaimLost
	// ReasonClaimGone: a claim that the machine has run with is gone, and nobody has
	// said that a new disk is wanted.
	ReasonClaimGone = conditions.ReasonClaimGone

	// ReasonPodRunning: the pod runs.
	ReasonPodRunning = conditions.ReasonPodRunning
	// ReasonRestartPending: the pod runs, and the restart that was asked for waits for what passes
	// by itself.
	ReasonRestartPending = conditions.ReasonRestartPending
	// ReasonRestartBlocked: the pod runs, and the restart that was asked for waits for what somebody
	// has to repair.
	ReasonRestartBlocked = conditions.ReasonRestartBlocked
	// ReasonPodNotStarted: the pod waits for its node or its container.
	ReasonPodNotStarted = conditions.ReasonPodNotStarted
	// ReasonPodNotFound: there is no pod yet.
	ReasonPodNotFound = conditions.ReasonPodNotFound
	// ReasonPodTerminating: the pod is being deleted.
	ReasonPodTerminating = conditions.ReasonPodTerminating
	// ReasonPodFinished: the pod has ended.
	ReasonPodFinished = conditions.ReasonPodFinished
	// ReasonNodeLost: the pod's node does not answer.
	ReasonNodeLost = conditions.ReasonNodeLost
	// ReasonRestartDelayed: the machine failed and is started again later.
	ReasonRestartDelayed = conditions.ReasonRestartDelayed
	// ReasonDisksInUse: another pod uses the machine's disks.
	ReasonDisksInUse = conditions.ReasonDisksInUse
	// ReasonQuotaExceeded: a quota does not allow the pod.
	ReasonQuotaExceeded = conditions.ReasonQuotaExceeded
	// ReasonConfigurationPending: the runner does not know of a change yet.
	ReasonConfigurationPending = conditions.ReasonConfigurationPending
	// ReasonResizing: the pod is being resized for a guest that grows.
	ReasonResizing = conditions.ReasonResizing
	// ReasonResizeDeferred: the pod's node has no room for a guest that grows now.
	ReasonResizeDeferred = conditions.ReasonResizeDeferred
	// ReasonResizeInfeasible: the pod's node can never have it.
	ReasonResizeInfeasible = conditions.ReasonResizeInfeasible
	// ReasonMemoryLimitTooLow: the pod's limit of memory is below what the
	// machine needs, and its QEMU may be killed for it.
	ReasonMemoryLimitTooLow = conditions.ReasonMemoryLimitTooLow
	// ReasonMachineStopped: the machine should not run.
	ReasonMachineStopped = conditions.ReasonMachineStopped
	// ReasonMachineDeleted: the machine is being deleted.
	ReasonMachineDeleted = conditions.ReasonMachineDeleted

	// ReasonRunning: the guest executes.
	ReasonRunning = conditions.ReasonRunning
	// ReasonStarting: the pod runs, and its runner has not said yet that the guest
	// executes.
	ReasonStarting = conditions.ReasonStarting
	// ReasonRunnerNotReporting: the runner of a pod that runs has not said anything.
	ReasonRunnerNotReporting = conditions.ReasonRunnerNotReporting
	// ReasonNamespaceNotPrepared: the namespace lacks what machines need.
	ReasonNamespaceNotPrepared = conditions.ReasonNamespaceNotPrepared
	// ReasonNamespaceTerminating: the namespace is being deleted, and the machine with
	// it.
	ReasonNamespaceTerminating = conditions.ReasonNamespaceTerminating
	// ReasonImageRepositoryNotFound: the namespace has no image repository.
	ReasonImageRepositoryNotFound = conditions.ReasonImageRepositoryNotFound
	// ReasonOtherImage: the machine runs with another image of the runner.
	ReasonOtherImage = conditions.ReasonOtherImage
	// ReasonUpToDate: the machine has the image that its next start would have.
	ReasonUpToDate = conditions.ReasonUpToDate
	// ReasonSoleOperator: no other operator feels responsible.
	ReasonSoleOperator = conditions.ReasonSoleOperator
	// ReasonTwoOperators: another operator feels responsible; the message names it.
	ReasonTwoOperators = conditions.ReasonTwoOperators
	// ReasonNodeReturned: the node reports again about a machine that ran before.
	ReasonNodeReturned = conditions.ReasonNodeReturned
	// ReasonStatusOfOthers: somebody has written what is not theirs into the status.
	ReasonStatusOfOthers = conditions.ReasonStatusOfOthers

	// ReasonKVM: the guest has the processors of its node.
	ReasonKVM = conditions.ReasonKVM
	// ReasonEmulationRequested: the specification asks for software emulation.
	ReasonEmulationRequested = conditions.ReasonEmulationRequested
	// ReasonNoKVMDevice: there is no /dev/kvm where the machine runs.
	ReasonNoKVMDevice = conditions.ReasonNoKVMDevice
	// ReasonKVMNotPermitted: /dev/kvm is there, and the runner may not open it.
	ReasonKVMNotPermitted = conditions.ReasonKVMNotPermitted
	// ReasonNoVirtualization: the processor has no virtualization, or its
	// firmware hides it.
	ReasonNoVirtualization = conditions.ReasonNoVirtualization
	// ReasonKVMFails: KVM is there, and no guest executes under it.
	ReasonKVMFails = conditions.ReasonKVMFails
	// ReasonEmulated: the guest is emulated, and its runner does not say why.
	ReasonEmulated = conditions.ReasonEmulated
	// ReasonNotReported: a guest executes, and its runner, which is VM-Operator's,
	// does not say on what.
	ReasonNotReported = conditions.ReasonNotReported
	// ReasonNotRunning: no guest executes.
	ReasonNotRunning = conditions.ReasonNotRunning

	// ReasonChangesPendingRestart: changes wait for the next start.
	ReasonChangesPendingRestart = conditions.ReasonChangesPendingRestart
	// ReasonNoRestartRequired: the running machine is as specified.
	ReasonNoRestartRequired = conditions.ReasonNoRestartRequired
	// ReasonUnexpectedState: it is not known with what the machine was started.
	ReasonUnexpectedState = conditions.ReasonUnexpectedState
)

// RunnerEnd is how a machine ended, as its runner reported it.
type RunnerEnd struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=64

	// cause is one word that says why.
	Cause string `json:"cause"`

	// +kubebuilder:validation:MaxLength=32768
	// +optional

	// message says why to people.
	Message string `json:"message,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// qemuStatus is QEMU's exit status, see lastEnd.
	QEMUStatus string `json:"qemuStatus,omitempty"`
}

// MachineEnd is how a pod of the machine ended. The operator writes it down
// before it acts on it, so that an end is never forgotten and counted once.
type MachineEnd struct {
	// +kubebuilder:validation:Required

	// podUID is the pod that ended.
	PodUID types.UID `json:"podUID"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096

	// cause is one word that says why.
	Cause string `json:"cause"`

	// +kubebuilder:validation:MaxLength=32768
	// +optional

	// message says why to people.
	Message string `json:"message,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// qemuStatus is QEMU's exit status as the node's system tells it, such as
	// "exit status 1" or "signal: killed"; it is missing if QEMU was not started.
	QEMUStatus string `json:"qemuStatus,omitempty"`

	// +kubebuilder:validation:Required

	// time is when it ended.
	Time metav1.Time `json:"time"`

	// +optional

	// observedGeneration is that of the specification when the end was noticed.
	// A later specification is tried without delay.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional

	// failures counts the ends in a row that were failures, this one included.
	// The delay before the next start grows with it.
	Failures int32 `json:"failures,omitempty"`
}

// Reasons of the condition GuestExecuting for errors that keep a guest from executing.
const (
	// ReasonDiskError: a disk of the machine has failed.
	ReasonDiskError = conditions.ReasonDiskError
	// ReasonGuestPanicked: the guest has panicked.
	ReasonGuestPanicked = conditions.ReasonGuestPanicked
	// ReasonWatchdog: the guest has not served its watchdog.
	ReasonWatchdog = conditions.ReasonWatchdog
	// ReasonInternalError: QEMU cannot execute the guest any further.
	ReasonInternalError = conditions.ReasonInternalError
	// ReasonQEMUNotResponding: QEMU does not answer, and the condition is Unknown.
	ReasonQEMUNotResponding = conditions.ReasonQEMUNotResponding
)
