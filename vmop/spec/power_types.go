package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +kubebuilder:validation:Enum=AlwaysOn;AlwaysOff;Manual;AlwaysOnUnlessStoppedManually

// RunPolicy says when a machine runs. The names and their meaning are those of
// Deckhouse Virtualization.
type RunPolicy string

// The run policies.
const (
	// RunPolicyAlwaysOn: it runs, and is started again however it ends.
	RunPolicyAlwaysOn RunPolicy = "AlwaysOn"
	// RunPolicyAlwaysOff: it does not run.
	RunPolicyAlwaysOff RunPolicy = "AlwaysOff"
	// RunPolicyManual: it is started and stopped on request, and stays stopped
	// however it ends, other than by a reboot of its guest.
	RunPolicyManual RunPolicy = "Manual"
	// RunPolicyAlwaysOnUnlessStoppedManually: it runs and is started again, unless
	// somebody stops it or its guest powers itself off.
	RunPolicyAlwaysOnUnlessStoppedManually RunPolicy = "AlwaysOnUnlessStoppedManually"
)

// Power is what a run policy has come to: whether the machine should run, which
// is kept here and not in the specification, so that a manifest that is kept
// elsewhere stays as it is.
type Power struct {
	// +optional

	// policy is the run policy that this is about; it is missing if the machine has
	// none any more.
	Policy RunPolicy `json:"policy,omitempty"`

	// +kubebuilder:validation:Required

	// state is Running if the machine should run, else Stopped.
	State MachineState `json:"state"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=64

	// reason is one word that says why.
	Reason string `json:"reason"`

	// +kubebuilder:validation:Required

	// since is when state or reason last changed.
	Since metav1.Time `json:"since"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// request is the last request to start, stop or restart the machine that was
	// answered (annotation vmoperator.jdrupes.org/power-request).
	Request string `json:"request,omitempty"`

	// +optional

	// podUID is the pod in which the guest was last seen to execute; it is missing
	// when that pod is about to be replaced.
	PodUID types.UID `json:"podUID,omitempty"`
}

// Reasons of a [Power].
const (
	// PowerPolicy: the policy itself says so.
	PowerPolicy = "RunPolicy"
	// PowerRequested: somebody has asked for it.
	PowerRequested = "Requested"
	// PowerGuestShutdown: the guest has powered itself off.
	PowerGuestShutdown = "GuestShutdown"
	// PowerMachineEnded: the machine has ended otherwise, see lastEnd.
	PowerMachineEnded = "MachineEnded"
	// PowerPodDeleted: somebody has deleted its pod.
	PowerPodDeleted = "PodDeleted"
)

// Disruptions say what may interrupt a machine that runs.
type Disruptions struct {
	// +optional

	// restartApprovalMode says what becomes of changes that need a restart: with
	// Manual, which is the default, they wait for one; with Automatic, they cause
	// one, for which the guest is asked to shut down, as soon as a next pod could
	// start.
	RestartApprovalMode RestartApprovalMode `json:"restartApprovalMode,omitempty"`
}

// +kubebuilder:validation:Enum=Manual;Automatic

// RestartApprovalMode says who approves a restart.
type RestartApprovalMode string

// The modes.
const (
	// RestartManual: somebody restarts the machine.
	RestartManual RestartApprovalMode = "Manual"
	// RestartAutomatic: nobody need approve it.
	RestartAutomatic RestartApprovalMode = "Automatic"
)
