package reconcile

import (
	"time"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
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
	// labels or share a disk with it, see [SharesDisks].
	OtherPods []corev1.Pod
	// ConfigMap and Service are the objects of the machine's name.
	ConfigMap *corev1.ConfigMap
	Service   *corev1.Service
	// DisplaySecrets are the secrets with the labels of a display secret of the
	// machine, under whatever names.
	DisplaySecrets []corev1.Secret
	// Claims are those of the machine's [ClaimNames] that there are.
	Claims []corev1.PersistentVolumeClaim
	// Pool is the pool that the machine is assigned from.
	Pool *spec.VmPool
	// Failures are writes that the API server refused, until the same write
	// succeeds. Conflicts and objects that exist already or no more are none:
	// they mean that the snapshot was old.
	Failures []Failure
	// Password is a random password that becomes that of the display if the
	// machine needs one.
	Password string
}

// Failure is a write that was refused.
type Failure struct {
	// Target is what was tried: that of the action.
	Target Target
	// Reason is the API server's, as in Forbidden; Message is its explanation.
	Reason, Message string
	// Count is how often in a row, Last when.
	Count int
	Last  time.Time
}

// Plan is what is to be done now. Its actions are executed in their order, up to
// the first that fails. If all succeed, the statuses are written, and the events
// told: they describe what then is. What was executed shows in the next
// snapshot, and what was refused does as a [Failure], so that its plan leaves
// the refused action out for a while and explains it in the status. A plan for
// a snapshot in which all is as it should be has no actions, no statuses and no
// events.
type Plan struct {
	Actions []Action
	// Statuses has an entry for each owner of status fields whose part differs
	// from what is stored.
	Statuses []StatusApply
	Events   []Event
	// Wake is when to look again though nothing changed; zero means never.
	Wake time.Time
}

// StartsPod tells whether the plan creates the machine's pod. Whoever executes
// such a plan makes sure first that the snapshot's OtherPods are all that there
// are, also those that no watch shows, and that no other machine gets a pod at
// the same time; and decides anew with them.
func (p Plan) StartsPod() bool {
	for _, a := range p.Actions {
		if t := a.Target(); t.Verb == "create" && t.Kind == kindPod {
			return true
		}
	}
	return false
}

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
	// does. On a pod it is a digest of what was created.
	AnnotationApplied = GroupPrefix + "applied"
	// AnnotationContent on the ConfigMap is a digest of its content as it was
	// applied.
	AnnotationContent = GroupPrefix + "content"
	// AnnotationResetRequest on a machine asks for a reset of its guest. Each
	// new value, such as the time, is one reset. On the ConfigMap it is the
	// last value that was counted.
	AnnotationResetRequest = GroupPrefix + "reset-request"
	// AnnotationResetCounter on the ConfigMap is its resetCounter.
	AnnotationResetCounter = GroupPrefix + "reset-counter"
	// AnnotationGeneration on the ConfigMap is the generation of the machine
	// that it was made from. It stays behind while the machine is stopped.
	AnnotationGeneration = GroupPrefix + "generation"
	// AnnotationGuestResetEnds on the ConfigMap is its guestResetEnds, if that is
	// true. It stays behind while the machine is stopped.
	AnnotationGuestResetEnds = GroupPrefix + "guest-reset-ends"
	// AnnotationInstanceID on the ConfigMap is the last instance-id in it; see
	// [RunnerConfig].
	AnnotationInstanceID = GroupPrefix + "instance-id"
	// AnnotationStarted on a pod is the part of the machine's specification
	// that it was started with and cannot follow, as JSON with the generation.
	// The documents for cloud-init are in it as digests only.
	AnnotationStarted = GroupPrefix + "started"
)

// StatusApply is one writer's part of the status.
type StatusApply struct {
	// Manager is OperatorStatusManager or RunnerStatusManager.
	Manager string
	// ResourceVersion is that of the machine which the decision is about. A
	// report in the runner's name must not overwrite a newer one of a runner;
	// empty asks for no check.
	ResourceVersion string
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
	// Related is what the machine waits for, or nil. Events of one reason about
	// two of them are two.
	Related *corev1.ObjectReference
}
