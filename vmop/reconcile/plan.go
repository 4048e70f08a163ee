package reconcile

import (
	"time"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is all that a decision about one machine depends on. A pointer that
// is nil means known to be absent: whoever could not read an object has an error
// and makes no snapshot. Nothing in it is changed.
type Snapshot struct {
	// VM is the machine as it is stored.
	VM *spec.VirtualMachine
	// Settings are the operator's.
	Settings Settings
	// Now is the time of the observation.
	Now time.Time
	// Pod is the pod that has the machine's name, whoever made it.
	Pod *corev1.Pod
	// OtherPods are further pods of the namespace that carry the machine's
	// labels or use a claim of it.
	OtherPods []corev1.Pod
	// ConfigMap and Service are the objects of the machine's name.
	ConfigMap *corev1.ConfigMap
	Service   *corev1.Service
	// DisplaySecrets are the secrets with the labels of a display secret of the
	// machine, under whatever names.
	DisplaySecrets []corev1.Secret
	// Claims are the claims with the machine's labels, those that its disks
	// refer to and those that have a name by which the operator would make one.
	Claims []corev1.PersistentVolumeClaim
	// Pool is the pool that the machine is assigned from.
	Pool *spec.VmPool
	// Failures are writes that the API server refused since the last time that
	// the same write succeeded.
	Failures []Failure
	// Password is a random password that becomes that of the display if the
	// machine needs one.
	Password string
}

// Failure is a write that was refused.
type Failure struct {
	// Verb and Kind say what was tried, as in create and Pod; Name on which
	// object.
	Verb, Kind, Name string
	// Reason is the API server's, as in Forbidden; Message is its explanation.
	Reason, Message string
	// Count is how often in a row, Last when.
	Count int
	Last  time.Time
}

// Plan is what is to be done now. Its actions are executed in their order, up to
// the first that fails, and the statuses are written in any case. What was
// executed shows in the next snapshot; a plan for a snapshot in which all is as
// it should be has no actions, no statuses and no events.
type Plan struct {
	Actions []Action
	// Statuses has an entry for each owner of status fields whose part differs
	// from what is stored.
	Statuses []StatusApply
	Events   []Event
	// Wake is when to look again though nothing changed; zero means never.
	Wake time.Time
}

// Action is one write. The set of actions is closed: there is none that deletes
// or shrinks a volume claim or changes a secret.
type Action interface{ isAction() }

// The actions.
type (
	// Apply writes an object by server-side apply, by force, as [FieldManager].
	Apply struct{ Object Object }

	// Create makes an object that must not exist yet. AlreadyExists means that
	// the snapshot was old, and ends the execution of the plan.
	Create struct{ Object Object }

	// UpdateClaim sets labels and annotations of a claim and lets it grow.
	UpdateClaim struct {
		Name string
		// UID and ResourceVersion are those of the claim that was observed.
		UID             types.UID
		ResourceVersion string
		Labels          map[string]string
		Annotations     map[string]string
		// Storage is the new request; nil leaves it. It is never less than the
		// old one.
		Storage *resource.Quantity
		// VolumeAttributesClassName is the new class; nil leaves it.
		VolumeAttributesClassName *string
	}

	// AnnotatePod sets annotations of the pod.
	AnnotatePod struct {
		Name        string
		UID         types.UID
		Annotations map[string]string
	}

	// DeletePod deletes the pod with its own grace period, if it still has the
	// UID. NotFound is success.
	DeletePod struct {
		Name string
		UID  types.UID
	}

	// DeleteService deletes the service if it still has the UID. NotFound is
	// success.
	DeleteService struct {
		Name string
		UID  types.UID
	}

	// SetState writes spec.vm.state, if the machine still has the resource
	// version.
	SetState struct {
		State           spec.MachineState
		ResourceVersion string
	}
)

func (Apply) isAction()         {}
func (Create) isAction()        {}
func (UpdateClaim) isAction()   {}
func (AnnotatePod) isAction()   {}
func (DeletePod) isAction()     {}
func (DeleteService) isAction() {}
func (SetState) isAction()      {}

const (
	// FieldManager owns the fields of the objects that are applied. It is the
	// name under which VM-Operator wrote them, so that a field that is no longer
	// wanted goes away after a takeover.
	FieldManager = "kubernetes-java-kubectl-apply"
	// OperatorStatusManager owns the operator's fields of the status.
	OperatorStatusManager = "vmop-operator"
	// RunnerStatusManager owns the runner's fields of the status. The operator
	// writes in its name what a runner that is gone can no longer report.
	RunnerStatusManager = "vmop-runner"
	// AnnotationApplied is a digest of what was last applied to an object. With
	// another digest there may be fields to remove, which only another apply
	// does.
	AnnotationApplied = GroupPrefix + "applied"
)

// StatusApply is one writer's part of the status.
type StatusApply struct {
	// Manager is OperatorStatusManager or RunnerStatusManager.
	Manager string
	// Status is the whole part, as JSON values: what it lacks is removed if the
	// manager alone owned it.
	Status map[string]any
}

// Event is a Kubernetes event about the machine.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is a word in CamelCase, Action what was being done.
	Reason, Action string
	Note           string
}
