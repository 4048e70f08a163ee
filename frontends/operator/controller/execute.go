package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type executor struct {
	client client.Client
	writes *writeCounter
	now    func() time.Time
	leads  func() bool
	// together calls functions that do not depend on each other and returns when all have; nil:
	// concurrently.
	together func(tasks []func())
}

// execute executes the actions of a batch in a namespace, all of them whatever fails, and records
// in the memory what the caches have yet to show. It returns what became of each.
func (e *executor) execute(ctx context.Context, namespace string, batch []reconcile.Action, memory *subjectMemory) []executed {
	out := make([]executed, len(batch))
	tasks := make([]func(), len(batch))
	for i, a := range batch {
		out[i].action = a
		tasks[i] = func() { out[i].answer, out[i].err = e.attempt(ctx, namespace, a) }
	}
	if e.together != nil {
		e.together(tasks)
	} else {
		together(tasks)
	}
	for i := range out {
		e.record(namespace, &out[i], memory)
	}
	return out
}

// executed is an action with the object of the API server's answer, if there is one, or with what
// failed.
type executed struct {
	action reconcile.Action
	answer client.Object
	err    error
}

func (e *executor) attempt(ctx context.Context, namespace string, a reconcile.Action) (client.Object, error) {
	if !e.leads() {
		return nil, errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := e.send(ctx, namespace, a)
	t := a.Target()
	e.writes.count(t.Verb, t.Kind, err)
	return answer, err
}

func (e *executor) record(namespace string, x *executed, memory *subjectMemory) {
	t := x.action.Target()
	if apierrors.IsNotFound(x.err) && mayBeGone(x.action) && !unknownResource(x.err) {
		x.answer, x.err = nil, nil
		return
	}
	if x.err != nil {
		if apierrors.IsAlreadyExists(x.err) {
			memory.doubt(object{t.Kind, t.Name})
		}
		x.answer, x.err = nil, fmt.Errorf("%s in namespace %s: %w", t, namespace, x.err)
		return
	}
	delete(memory.failures, t)
	w := written{at: e.now()}
	if d := deletionOf(namespace, x.action); d != nil {
		w.uid = d.uid
	} else {
		w.uid, w.version = x.answer.GetUID(), x.answer.GetResourceVersion()
	}
	kind, _, _ := strings.Cut(t.Kind, "/") // without the subresource
	memory.wrote(object{kind, t.Name}, w)
}

func mayBeGone(a reconcile.Action) bool {
	switch a.(type) {
	case reconcile.AnnotatePod, reconcile.AdoptPod, reconcile.SetFinalizers, reconcile.ResizePod:
		return true
	}
	return deletionOf("", a) != nil
}

type deletion struct {
	object client.Object
	uid    types.UID
	// version is the expected resource version. It may be empty only with anyVersion.
	version    string
	anyVersion bool
	options    []client.DeleteOption
}

func deletionOf(namespace string, a reconcile.Action) *deletion {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: a.Target().Name}
	switch a := a.(type) {
	case reconcile.DeletePod:
		grace := client.GracePeriodSeconds(a.GraceSeconds)
		return &deletion{object: &corev1.Pod{ObjectMeta: meta}, uid: a.UID, version: a.ResourceVersion, anyVersion: true, options: []client.DeleteOption{grace}}
	case reconcile.DeleteService:
		return &deletion{object: &corev1.Service{ObjectMeta: meta}, uid: a.UID, anyVersion: true}
	case reconcile.DeleteClaim:
		return &deletion{object: &corev1.PersistentVolumeClaim{ObjectMeta: meta}, uid: a.UID, version: a.ResourceVersion}
	case reconcile.DeleteSecret:
		return &deletion{object: &corev1.Secret{ObjectMeta: meta}, uid: a.UID, version: a.ResourceVersion}
	case reconcile.DeleteConfigMap:
		return &deletion{object: &corev1.ConfigMap{ObjectMeta: meta}, uid: a.UID, version: a.ResourceVersion}
	case reconcile.DeleteOperation:
		return &deletion{object: ownKind(namespace, names.KindOperation, a.Name), uid: a.UID, version: a.ResourceVersion}
	case reconcile.DeleteAttachment:
		return &deletion{object: ownKind(namespace, names.KindAttachment, a.Name), uid: a.UID, version: a.ResourceVersion}
	}
	return nil
}

func (e *executor) delete(ctx context.Context, t reconcile.Target, d *deletion) error {
	only, decidedOn := client.Preconditions{UID: &d.uid}, map[string]any{"uid": d.uid}
	if d.version != "" || !d.anyVersion {
		only.ResourceVersion, decidedOn["resourceVersion"] = &d.version, d.version
	}
	if err := bound(t, decidedOn); err != nil {
		return err
	}
	return e.client.Delete(ctx, d.object, append(d.options, only)...)
}

// bound refuses a write that is not bound to the object it was decided on: the API server ignores
// an empty UID or version in a patch, so that it would apply to any object of that name.
func bound(t reconcile.Target, metadata map[string]any) error {
	uid, named := metadata["uid"]
	version, versioned := metadata["resourceVersion"]
	var empty []string
	if uid == types.UID("") || !named && !versioned {
		empty = append(empty, "metadata.uid")
	}
	if version == "" {
		empty = append(empty, "metadata.resourceVersion")
	}
	if len(empty) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s must be that of the object that was decided about, and is empty", t, strings.Join(empty, " and "))
}

// unknownResource reports whether the API server does not know the resource, as opposed to the
// object: its answer then names no object, or is not an API status, which client-go reports as an
// unexpected server error.
func unknownResource(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d == nil || d.Name == "" || slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

func (e *executor) send(ctx context.Context, namespace string, a reconcile.Action) (client.Object, error) {
	manager := client.FieldOwner(names.FieldManager)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: a.Target().Name}
	if d := deletionOf(namespace, a); d != nil {
		return nil, e.delete(ctx, a.Target(), d)
	}
	switch a := a.(type) {
	case reconcile.Apply:
		u, err := applied(a.Object)
		if err != nil {
			return nil, err
		}
		err = e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), manager, client.ForceOwnership)
		return u, err
	case reconcile.Create:
		if a.Object.GetObjectKind().GroupVersionKind().Group == spec.GroupName {
			// The scheme has no types for them, so they are stored as the user wrote them.
			u, err := applied(a.Object)
			if err != nil {
				return nil, err
			}
			return u, e.client.Create(ctx, u, manager)
		}
		o, ok := a.Object.DeepCopyObject().(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T cannot be created", a.Object)
		}
		if secret, is := o.(*corev1.Secret); is && a.Certificate != nil {
			data, err := displaycert.Make(a.Certificate)
			if err != nil {
				return nil, err
			}
			secret.Data = data
		}
		return o, e.client.Create(ctx, o, manager)
	case reconcile.UpdateClaim:
		o := &corev1.PersistentVolumeClaim{ObjectMeta: meta}
		return o, e.merge(ctx, a, o, claimPatch(a))
	case reconcile.AnnotatePod:
		o := &corev1.Pod{ObjectMeta: meta}
		return o, e.merge(ctx, a, o, a.Body())
	case reconcile.AdoptPod:
		o := &corev1.Pod{ObjectMeta: meta}
		return o, e.merge(ctx, a, o, a.Body())
	case reconcile.AnnotateConfigMap:
		o := &corev1.ConfigMap{ObjectMeta: meta}
		return o, e.merge(ctx, a, o, map[string]any{
			"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.ResourceVersion, "annotations": a.Annotations},
		})
	case reconcile.ResizePod:
		o := &corev1.Pod{ObjectMeta: meta}
		return o, e.patch(ctx, patch{action: a, object: o, subresource: "resize", strategic: true, owner: names.FieldManager}, map[string]any{
			"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.ResourceVersion},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": a.Container, "resources": map[string]any{"requests": a.Requests},
			}}},
		})
	case reconcile.SetFinalizers:
		o := ownMetadata(namespace, a.Kind, a.Name)
		return o, e.patch(ctx, patch{action: a, object: o, owner: names.OperatorStatusManager}, a.Body())
	case reconcile.Patch:
		o := ownMetadata(namespace, a.Kind, a.Name)
		return o, e.patch(ctx, patch{action: a, object: o, subresource: a.Subresource, owner: a.Manager}, a.Body())
	}
	return nil, fmt.Errorf("unknown action %T", a)
}

func ownKind(namespace, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(spec.GroupVersion().WithKind(kind))
	if !spec.ClusterScoped(kind) {
		o.SetNamespace(namespace)
	}
	o.SetName(name)
	return o
}

// ownMetadata is an object of this API group of which only the metadata is requested as the answer,
// for its version: the whole object is larger than the request.
func ownMetadata(namespace, kind, name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.SetGroupVersionKind(spec.GroupVersion().WithKind(kind))
	if !spec.ClusterScoped(kind) {
		o.Namespace = namespace
	}
	return o
}

type patch struct {
	action      reconcile.Action
	object      client.Object
	subresource string
	// strategic: items of lists are merged by name instead of replacing the list.
	strategic bool
	owner     string
}

// patch sends the fields, whose metadata identify the object.
func (e *executor) patch(ctx context.Context, p patch, fields map[string]any) error {
	metadata, _ := fields["metadata"].(map[string]any)
	if err := bound(p.action.Target(), metadata); err != nil {
		return err
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	t := types.MergePatchType
	if p.strategic {
		t = types.StrategicMergePatchType
	}
	raw, owner := client.RawPatch(t, data), client.FieldOwner(p.owner)
	if p.subresource != "" {
		return e.client.SubResource(p.subresource).Patch(ctx, p.object, raw, owner)
	}
	return e.client.Patch(ctx, p.object, raw, owner)
}

func (e *executor) merge(ctx context.Context, a reconcile.Action, o client.Object, fields map[string]any) error {
	return e.patch(ctx, patch{action: a, object: o, owner: names.FieldManager}, fields)
}

func claimPatch(a reconcile.UpdateClaim) map[string]any {
	metadata := map[string]any{"uid": a.UID, "resourceVersion": a.ResourceVersion}
	if a.Labels != nil {
		metadata["labels"] = a.Labels
	}
	if a.Annotations != nil {
		metadata["annotations"] = a.Annotations
	}
	patch := map[string]any{"metadata": metadata}
	if a.Storage != nil {
		patch["spec"] = map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": a.Storage.String()}}}
	}
	return patch
}

// applied is an object to be applied, without the fields that only the API server writes.
func applied(o reconcile.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("%T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

func (e *executor) report(ctx context.Context, namespace string, s reconcile.StatusApply, memory *subjectMemory) error {
	if !e.leads() {
		return errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	t, o := s.Target(), ownMetadata(namespace, s.Kind, s.Name)
	body := ownKind(namespace, s.Kind, s.Name)
	body.SetUID(s.UID)
	body.SetResourceVersion(s.ResourceVersion)
	body.Object["status"] = s.Status
	data, err := json.Marshal(body.Object)
	if err != nil {
		return fmt.Errorf("status of %s/%s for %s: %w", namespace, s.Name, s.Manager, err)
	}
	err = e.client.Status().Patch(ctx, o, client.RawPatch(types.ApplyYAMLPatchType, data), client.FieldOwner(s.Manager), client.ForceOwnership)
	e.writes.count(t.Verb, t.Kind, err)
	if err != nil {
		return fmt.Errorf("status of %s/%s for %s: %w", namespace, s.Name, s.Manager, err)
	}
	delete(memory.failures, t)
	memory.wrote(object{s.Kind, s.Name}, written{o.GetUID(), o.GetResourceVersion(), e.now()})
	return nil
}
