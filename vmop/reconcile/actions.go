package reconcile

import (
	"fmt"

	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Action is one write. The set of actions is closed: there is none that deletes
// or shrinks a volume claim or changes a secret.
type Action interface {
	isAction()
	// Target is what the action does to which object, in words that a
	// [Failure] of it has too.
	Target() Target
}

// Target is a verb, as a role grants it, and an object.
type Target struct{ Verb, Kind, Name string }

func (t Target) String() string { return t.Verb + " " + t.Kind + " " + t.Name }

// The actions.
type (
	// Apply writes an object by server-side apply, by force, as [FieldManager].
	// If the object has a resource version, it is only written if the stored
	// one still has it; the API server checks that.
	Apply struct{ Object Object }

	// Create makes an object that must not exist yet, as [FieldManager].
	// AlreadyExists means that the snapshot was old, and ends the execution of
	// the plan.
	Create struct{ Object Object }

	// UpdateClaim sets labels and annotations of a claim and lets it grow.
	UpdateClaim struct {
		Name string
		// UID and ResourceVersion are those of the claim that was observed.
		UID             types.UID
		ResourceVersion string
		// Labels and Annotations are those that are missing or differ.
		Labels      map[string]string
		Annotations map[string]string
		// Storage is the new request; nil leaves it. It is more than the old
		// one.
		Storage *resource.Quantity
	}

	// AnnotatePod sets annotations of the pod, if it still has the UID.
	// NotFound is success.
	AnnotatePod struct {
		Name        string
		UID         types.UID
		Annotations map[string]string
	}

	// DeletePod deletes the pod if it still has the UID. NotFound is success.
	DeletePod struct {
		Name string
		UID  types.UID
		// GraceSeconds is the grace period: the machine's powerdownTimeout may
		// have changed since the pod was made.
		GraceSeconds int64
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
		Name            string
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

// Target implements [Action].
func (a Apply) Target() Target {
	return Target{"patch", kindOf(a.Object), a.Object.GetName()}
}

// Target implements [Action].
func (a Create) Target() Target {
	return Target{"create", kindOf(a.Object), a.Object.GetName()}
}

// Target implements [Action].
func (a UpdateClaim) Target() Target { return Target{"patch", kindClaim, a.Name} }

// Target implements [Action].
func (a AnnotatePod) Target() Target { return Target{"patch", kindPod, a.Name} }

// Target implements [Action].
func (a DeletePod) Target() Target { return Target{"delete", kindPod, a.Name} }

// Target implements [Action].
func (a DeleteService) Target() Target { return Target{"delete", kindService, a.Name} }

// Target implements [Action].
func (a SetState) Target() Target { return Target{"patch", spec.KindVirtualMachine, a.Name} }

// The kinds of objects that actions are about.
const (
	kindPod       = "Pod"
	kindClaim     = "PersistentVolumeClaim"
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
	kindService   = "Service"
	// kindNode is that of no action's object.
	kindNode = "Node"
)

func kindOf(o Object) string { return o.GetObjectKind().GroupVersionKind().Kind }

// String is the event in one line for people.
func (e Event) String() string { return fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note) }
