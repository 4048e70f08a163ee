package reconcile

import (
	"fmt"
	"maps"
	"time"

	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a Kubernetes object. All of them have apiVersion and kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// Action is one write. The set of actions is closed, and shared by all kinds: none shrinks a
// volume claim or changes a secret, one each deletes a claim, a secret and an operation, and
// those that delete or overwrite something have the UID or the resource version that the decision
// was made on. A kind that needs another write adds it here.
type Action interface {
	isAction()
	// Target is the verb and the object of the action, as in a [Failure] of it.
	Target() Target
}

// Certificate is a server's certificate to generate, with a certificate authority for it alone.
type Certificate struct {
	// CommonName is that of the subject.
	CommonName string
	// Hosts are the names and addresses of the server.
	Hosts []string
	// NotBefore and NotAfter are its validity.
	NotBefore, NotAfter time.Time
}

// Target is a verb, as a role grants it, and an object.
type Target struct{ Verb, Kind, Name string }

func (t Target) String() string { return t.Verb + " " + t.Kind + " " + t.Name }

// The actions.
type (
	// Apply writes an object by server-side apply, by force, as [names.FieldManager]. If the
	// object has a resource version, the API server writes it only if the stored one still has
	// it.
	Apply struct{ Object Object }

	// Create creates an object that must not exist yet, as [names.FieldManager]. AlreadyExists
	// means that the snapshot was old, and ends the execution of the plan.
	Create struct {
		Object Object
		// Certificate, if not nil, is what the executor of the plan generates as the data of the
		// Secret.
		Certificate *Certificate
	}

	// UpdateClaim sets labels and annotations of a claim and lets it grow.
	UpdateClaim struct {
		Name string
		// UID and ResourceVersion are those of the observed claim.
		UID             types.UID
		ResourceVersion string
		// Labels and Annotations are those that are missing or differ.
		Labels      map[string]string
		Annotations map[string]string
		// Storage is the new, larger request; nil leaves it.
		Storage *resource.Quantity
	}

	// DeleteClaim deletes a volume claim, and the data with it, if it still has the UID and the
	// resource version: it was created for a machine that is being deleted and whose manifest
	// asks for this, or for a disk as a clone and never had a volume. NotFound is success.
	DeleteClaim struct {
		Name string
		UID  types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
	}

	// DeleteSecret deletes a secret if it still has the UID and the resource version: a
	// display's, under the conditions of DeleteClaim. NotFound is success.
	DeleteSecret struct {
		Name string
		UID  types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
	}

	// DeleteConfigMap deletes an empty ConfigMap if it still has the UID and the resource
	// version: one that owns a Secret, which is deleted with it. NotFound is success.
	DeleteConfigMap struct {
		Name string
		UID  types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
	}

	// AnnotatePod sets annotations and labels of the pod, if it still has the UID; nil removes
	// one. NotFound is success.
	AnnotatePod struct {
		Name        string
		UID         types.UID
		Annotations map[string]*string
		Labels      map[string]*string
	}

	// AdoptPod makes a machine the owner of a pod without one, and sets annotations, of which nil
	// removes one, if the pod still has the UID and the resource version. NotFound is success.
	AdoptPod struct {
		Name string
		UID  types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
		// Owner becomes the only owner.
		Owner       metav1.OwnerReference
		Annotations map[string]*string
	}

	// AnnotateConfigMap sets annotations of a ConfigMap, which may be another operator's, if it
	// still has the UID and the resource version.
	AnnotateConfigMap struct {
		Name            string
		UID             types.UID
		ResourceVersion string
		Annotations     map[string]string
	}

	// ResizePod changes requests of a container of a running pod, by the subresource resize, if
	// it still has the UID and the resource version. NotFound means that the pod was deleted, or
	// as a [Failure] that the API server does not have the subresource.
	ResizePod struct {
		Name            string
		UID             types.UID
		ResourceVersion string
		Container       string
		// Requests are those that change.
		Requests corev1.ResourceList
	}

	// DeletePod deletes the pod if it still has the UID. NotFound is success. A terminating pod
	// can be deleted again to shorten its grace period.
	DeletePod struct {
		Name string
		UID  types.UID
		// ResourceVersion is that of a pod that must not have started by now; empty deletes it
		// unconditionally.
		ResourceVersion string
		// GraceSeconds is the grace period: the machine's powerdownTimeout may have changed since
		// the pod was created.
		GraceSeconds int64
	}

	// DeleteService deletes the service if it still has the UID. NotFound is success.
	DeleteService struct {
		Name string
		UID  types.UID
	}

	// DeleteAttachment deletes an attachment that a machine owns, if it still has the UID and the
	// resource version: a user may have taken it over. NotFound is success.
	DeleteAttachment struct {
		Name string
		UID  types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
	}

	// SetFinalizers writes the finalizers of an object of this API group, if it still has the UID
	// and the resource version. NotFound is success.
	SetFinalizers struct {
		Kind, Name string
		UID        types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
		// Finalizers is the complete new list.
		Finalizers []string
		// Releases: the object is being deleted, and no finalizer of this API group remains. See
		// [Plan.Releases].
		Releases bool
	}

	// Patch writes fields of an object of this API group by a JSON merge patch, if it still has
	// the UID and the resource version: of two writers that observed the same object one gets a
	// conflict. See [Patch.Body].
	Patch struct {
		// Kind and Name are the object's; Subresource is empty or "status".
		Kind, Name, Subresource string
		UID                     types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
		// Manager owns the fields from then on.
		Manager string
		// Fields are top-level fields of the object other than metadata; null removes one below
		// them.
		Fields map[string]any
		// Annotations are set as well; nil removes one.
		Annotations map[string]any
	}

	// DeleteOperation deletes an operation if it still has the UID and the resource version.
	// NotFound is success.
	DeleteOperation struct {
		Name string
		UID  types.UID
		// ResourceVersion is never empty.
		ResourceVersion string
	}
)

func (Apply) isAction()             {}
func (Create) isAction()            {}
func (UpdateClaim) isAction()       {}
func (DeleteClaim) isAction()       {}
func (DeleteSecret) isAction()      {}
func (DeleteConfigMap) isAction()   {}
func (AnnotatePod) isAction()       {}
func (AdoptPod) isAction()          {}
func (DeletePod) isAction()         {}
func (DeleteService) isAction()     {}
func (DeleteAttachment) isAction()  {}
func (SetFinalizers) isAction()     {}
func (Patch) isAction()             {}
func (AnnotateConfigMap) isAction() {}
func (ResizePod) isAction()         {}
func (DeleteOperation) isAction()   {}

// Target implements [Action].
func (a Apply) Target() Target {
	return Target{"patch", kindOf(a.Object), a.Object.GetName()}
}

// Target implements [Action].
func (a Create) Target() Target {
	return Target{"create", kindOf(a.Object), a.Object.GetName()}
}

// Target implements [Action].
func (a UpdateClaim) Target() Target { return Target{"patch", names.KindClaim, a.Name} }

// Target implements [Action].
func (a DeleteClaim) Target() Target { return Target{"delete", names.KindClaim, a.Name} }

// Target implements [Action].
func (a DeleteSecret) Target() Target { return Target{"delete", names.KindSecret, a.Name} }

// Target implements [Action].
func (a DeleteConfigMap) Target() Target { return Target{"delete", names.KindConfigMap, a.Name} }

// Target implements [Action].
func (a AnnotatePod) Target() Target { return Target{"patch", names.KindPod, a.Name} }

// Target implements [Action].
func (a AdoptPod) Target() Target { return Target{"patch", names.KindPod, a.Name} }

// Body returns the merge patch (application/merge-patch+json) as it is sent.
func (a AdoptPod) Body() map[string]any {
	return map[string]any{"metadata": map[string]any{
		"uid": a.UID, "resourceVersion": a.ResourceVersion, "ownerReferences": []metav1.OwnerReference{a.Owner}, "annotations": a.Annotations,
	}}
}

// Body returns the merge patch (application/merge-patch+json) as it is sent.
func (a AnnotatePod) Body() map[string]any {
	metadata := map[string]any{"uid": a.UID}
	if len(a.Annotations) > 0 {
		metadata["annotations"] = a.Annotations
	}
	if len(a.Labels) > 0 {
		metadata["labels"] = a.Labels
	}
	return map[string]any{"metadata": metadata}
}

// Target implements [Action].
func (a AnnotateConfigMap) Target() Target { return Target{"patch", names.KindConfigMap, a.Name} }

// Target implements [Action].
func (a ResizePod) Target() Target { return Target{"patch", names.KindPod + "/resize", a.Name} }

// Target implements [Action].
func (a DeletePod) Target() Target { return Target{"delete", names.KindPod, a.Name} }

// Target implements [Action].
func (a DeleteService) Target() Target { return Target{"delete", names.KindService, a.Name} }

// Target implements [Action].
func (a DeleteOperation) Target() Target { return Target{"delete", names.KindOperation, a.Name} }

// Target implements [Action].
func (a DeleteAttachment) Target() Target { return Target{"delete", names.KindAttachment, a.Name} }

// Target implements [Action].
func (a SetFinalizers) Target() Target { return Target{"patch", a.Kind, a.Name} }

// Body returns the merge patch (application/merge-patch+json) as it is sent.
func (a SetFinalizers) Body() map[string]any {
	finalizers := a.Finalizers
	if finalizers == nil {
		finalizers = []string{}
	}
	return map[string]any{"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.ResourceVersion, "finalizers": finalizers}}
}

// Target implements [Action].
func (a Patch) Target() Target {
	kind := a.Kind
	if a.Subresource != "" {
		kind += "/" + a.Subresource
	}
	return Target{"patch", kind, a.Name}
}

// Body returns the merge patch (application/merge-patch+json) as it is sent.
func (a Patch) Body() map[string]any {
	metadata := map[string]any{"resourceVersion": a.ResourceVersion}
	if a.UID != "" {
		metadata["uid"] = a.UID
	}
	if len(a.Annotations) > 0 {
		metadata["annotations"] = a.Annotations
	}
	body := map[string]any{"metadata": metadata}
	maps.Copy(body, a.Fields)
	return body
}

func kindOf(o Object) string { return o.GetObjectKind().GroupVersionKind().Kind }

// String returns the event in one line, for display.
func (e Event) String() string { return fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note) }
