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

// executor carries out plans.
type executor struct {
	client client.Client
	writes *writeCounter
	now    func() time.Time
	// leads reports whether this operator may write.
	leads func() bool
}

// execute does one action in a namespace and notes in the memory what the caches
// will show. It returns the object of the answer, if there is one.
func (e *executor) execute(ctx context.Context, namespace string, a reconcile.Action, memory *subjectMemory) (client.Object, error) {
	t := a.Target()
	if !e.leads() {
		return nil, errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := e.send(ctx, namespace, a)
	e.writes.count(t.Verb, t.Kind, err)
	if apierrors.IsNotFound(err) && mayBeGone(a) && !unknownResource(err) {
		return nil, nil
	}
	if err != nil {
		if apierrors.IsAlreadyExists(err) {
			memory.doubt(object{t.Kind, t.Name})
		}
		return nil, fmt.Errorf("%s in namespace %s: %w", t, namespace, err)
	}
	delete(memory.failures, t)
	w := written{at: e.now()}
	switch a := a.(type) {
	case reconcile.DeletePod:
		w.uid = a.UID
	case reconcile.DeleteService:
		w.uid = a.UID
	case reconcile.DeleteClaim:
		w.uid = a.UID
	case reconcile.DeleteSecret:
		w.uid = a.UID
	case reconcile.DeleteConfigMap:
		w.uid = a.UID
	case reconcile.DeleteOperation:
		w.uid = a.UID
	case reconcile.DeleteAttachment:
		w.uid = a.UID
	default:
		w.uid, w.version = answer.GetUID(), answer.GetResourceVersion()
	}
	kind, _, _ := strings.Cut(t.Kind, "/") // without the subresource
	memory.wrote(object{kind, t.Name}, w)
	return answer, nil
}

// mayBeGone reports whether NotFound is success.
func mayBeGone(a reconcile.Action) bool {
	switch a.(type) {
	case reconcile.DeletePod, reconcile.DeleteService, reconcile.DeleteClaim, reconcile.DeleteSecret, reconcile.DeleteConfigMap, reconcile.DeleteOperation, reconcile.DeleteAttachment, reconcile.AnnotatePod, reconcile.AdoptPod, reconcile.SetFinalizers, reconcile.ResizePod:
		return true
	}
	return false
}

// unknownResource reports whether the API server does not know what was asked for,
// rather than that there is none of the name: its answer names nothing then, or is
// none of the API at all, which client-go says.
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

// send makes the request and returns the object of the answer, if it has one.
func (e *executor) send(ctx context.Context, namespace string, a reconcile.Action) (client.Object, error) {
	manager := client.FieldOwner(names.FieldManager)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: a.Target().Name}
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
			// The scheme has no types for them: they are stored as somebody wrote them.
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
		return o, e.merge(ctx, o, claimPatch(a), manager)
	case reconcile.AnnotatePod:
		o := &corev1.Pod{ObjectMeta: meta}
		return o, e.merge(ctx, o, a.Body(), manager)
	case reconcile.AdoptPod:
		if a.UID == "" || a.ResourceVersion == "" {
			return nil, fmt.Errorf("%s: metadata.uid and metadata.resourceVersion are needed", a.Target())
		}
		o := &corev1.Pod{ObjectMeta: meta}
		return o, e.merge(ctx, o, a.Body(), manager)
	case reconcile.AnnotateConfigMap:
		o := &corev1.ConfigMap{ObjectMeta: meta}
		return o, e.merge(ctx, o, map[string]any{
			"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.ResourceVersion, "annotations": a.Annotations},
		}, manager)
	case reconcile.ResizePod:
		o := &corev1.Pod{ObjectMeta: meta}
		data, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.ResourceVersion},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": a.Container, "resources": map[string]any{"requests": a.Requests},
			}}},
		})
		if err != nil {
			return nil, err
		}
		return o, e.client.SubResource("resize").Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, data), manager)
	case reconcile.DeletePod:
		only := client.Preconditions{UID: &a.UID}
		if a.ResourceVersion != "" {
			only.ResourceVersion = &a.ResourceVersion
		}
		return nil, e.client.Delete(ctx, &corev1.Pod{ObjectMeta: meta}, only, client.GracePeriodSeconds(a.GraceSeconds))
	case reconcile.DeleteService:
		return nil, e.client.Delete(ctx, &corev1.Service{ObjectMeta: meta}, client.Preconditions{UID: &a.UID})
	case reconcile.DeleteClaim:
		if a.UID == "" || a.ResourceVersion == "" {
			return nil, fmt.Errorf("%s: metadata.uid and metadata.resourceVersion are needed", a.Target())
		}
		return nil, e.client.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: meta}, client.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion})
	case reconcile.DeleteSecret:
		if a.UID == "" || a.ResourceVersion == "" {
			return nil, fmt.Errorf("%s: metadata.uid and metadata.resourceVersion are needed", a.Target())
		}
		return nil, e.client.Delete(ctx, &corev1.Secret{ObjectMeta: meta}, client.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion})
	case reconcile.DeleteConfigMap:
		if a.UID == "" || a.ResourceVersion == "" {
			return nil, fmt.Errorf("%s: metadata.uid and metadata.resourceVersion are needed", a.Target())
		}
		return nil, e.client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: meta}, client.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion})
	case reconcile.DeleteOperation:
		if a.UID == "" || a.ResourceVersion == "" {
			return nil, fmt.Errorf("%s: metadata.uid and metadata.resourceVersion are needed", a.Target())
		}
		return nil, e.client.Delete(ctx, ownKind(namespace, names.KindOperation, a.Name), client.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion})
	case reconcile.DeleteAttachment:
		if a.UID == "" || a.ResourceVersion == "" {
			return nil, fmt.Errorf("%s: metadata.uid and metadata.resourceVersion are needed", a.Target())
		}
		return nil, e.client.Delete(ctx, ownKind(namespace, names.KindAttachment, a.Name), client.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion})
	case reconcile.SetFinalizers:
		o := ownMetadata(namespace, a.Kind, a.Name)
		return o, e.mergeVersion(ctx, o, a, "", a.ResourceVersion, a.Body(), names.OperatorStatusManager)
	case reconcile.Patch:
		o := ownMetadata(namespace, a.Kind, a.Name)
		return o, e.mergeVersion(ctx, o, a, a.Subresource, a.ResourceVersion, a.Body(), a.Manager)
	}
	return nil, fmt.Errorf("unknown action %T", a)
}

// ownKind is an object of this API group.
func ownKind(namespace, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(spec.GroupVersion().WithKind(kind))
	if !spec.ClusterScoped(kind) {
		o.SetNamespace(namespace)
	}
	o.SetName(name)
	return o
}

// ownMetadata is an object of this API group of which nothing but the metadata is wanted
// as an answer, for its version: the whole is larger than what is sent, and takes both
// ends longer.
func ownMetadata(namespace, kind, name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.SetGroupVersionKind(spec.GroupVersion().WithKind(kind))
	if !spec.ClusterScoped(kind) {
		o.Namespace = namespace
	}
	return o
}

// mergeVersion sends a merge patch that is about one version of an object.
func (e *executor) mergeVersion(ctx context.Context, o client.Object, a reconcile.Action, subresource, version string, body map[string]any, manager string) error {
	if version == "" {
		return fmt.Errorf("%s: metadata.resourceVersion is missing", a.Target())
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	patch, owner := client.RawPatch(types.MergePatchType, data), client.FieldOwner(manager)
	if subresource != "" {
		return e.client.SubResource(subresource).Patch(ctx, o, patch, owner)
	}
	return e.client.Patch(ctx, o, patch, owner)
}

func (e *executor) merge(ctx context.Context, o client.Object, fields map[string]any, manager client.FieldOwner) error {
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return e.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), manager)
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

// applied is an object as it is sent to be applied: without what only the API
// server writes.
func applied(o reconcile.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("%T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// report writes one owner's part of a status.
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
