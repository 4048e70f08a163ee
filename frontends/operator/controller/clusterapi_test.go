package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// modelKey names an object of the model.
type modelKey struct{ kind, namespace, name string }

func (k modelKey) String() string { return k.kind + " " + k.namespace + "/" + k.name }

// modelVersion is a version of an object; a nil object is absence.
type modelVersion struct {
	serial int64
	at     time.Time
	object map[string]any
}

// modelAPI is a model of an API server with the kinds that the operator uses, each
// object with all versions that it had.
type modelAPI struct {
	now     func() time.Time
	serial  int64
	objects map[modelKey][]modelVersion
	// owners are the parts of the status of an object that managers have applied.
	owners map[types.UID]map[string]map[string]bool
	// released is told of a machine that goes because the operator lets it.
	released func(modelKey, types.UID)
	// taken is told of a machine, as it was, that the operator takes from a user.
	taken func(modelKey, map[string]any)
}

// top is the newest version; nil if there is none. It must not be changed.
func (a *modelAPI) top(k modelKey) map[string]any {
	v := a.objects[k]
	if len(v) == 0 {
		return nil
	}
	return v[len(v)-1].object
}

// copied is a deep copy of the newest version.
func (a *modelAPI) copied(k modelKey) map[string]any { return runtime.DeepCopyJSON(a.top(k)) }

// at is the version that was the newest at a serial number.
func (a *modelAPI) at(k modelKey, serial int64) map[string]any {
	v := a.objects[k]
	for i := len(v) - 1; i >= 0; i-- {
		if v[i].serial <= serial {
			return v[i].object
		}
	}
	return nil
}

// put stores a version.
func (a *modelAPI) put(k modelKey, o map[string]any) map[string]any {
	a.serial++
	if o != nil {
		u := unstructured.Unstructured{Object: o}
		u.SetResourceVersion(strconv.FormatInt(a.serial, 10))
		if u.GetUID() == "" {
			u.SetUID(types.UID("uid-" + strconv.FormatInt(a.serial, 10)))
			u.SetCreationTimestamp(metav1.NewTime(a.now()))
		}
		u.SetManagedFields(a.managed(u.GetUID()))
	}
	a.objects[k] = append(a.objects[k], modelVersion{a.serial, a.now(), o})
	return o
}

// managed says who has applied what of a status.
func (a *modelAPI) managed(uid types.UID) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, manager := range slices.Sorted(maps.Keys(a.owners[uid])) {
		status, conditions := map[string]any{}, map[string]any{}
		for part := range a.owners[uid][manager] {
			if t, is := strings.CutPrefix(part, "condition "); is {
				conditions[fmt.Sprintf(`k:{"type":%q}`, t)] = map[string]any{}
			} else {
				status["f:"+part] = map[string]any{}
			}
		}
		if len(conditions) > 0 {
			status["f:conditions"] = conditions
		}
		data, _ := json.Marshal(map[string]any{"f:status": status})
		out = append(out, metav1.ManagedFieldsEntry{Manager: manager, Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(data))})
	}
	return out
}

// keys are those of a kind's objects that are there, in order.
func (a *modelAPI) keys(kind string) []modelKey {
	var out []modelKey
	for k := range a.objects {
		if k.kind == kind && a.top(k) != nil {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(x, y modelKey) int { return strings.Compare(x.String(), y.String()) })
	return out
}

// kindOf is the kind of an object or of a list of such.
func kindOf(o runtime.Object) string {
	switch o := o.(type) {
	case *machine, *machineList:
		return spec.KindVirtualMachine
	case *pool, *poolList:
		return spec.KindVMPool
	case *storedOperation, *storedOperationList:
		return spec.KindOperation
	case *storedClass, *storedClassList:
		return spec.KindClass
	case *storedImage, *storedImageList:
		return spec.KindImage
	case *storedClusterImage, *storedClusterImageList:
		return spec.KindClusterImage
	case *storedDisk, *storedDiskList:
		return spec.KindDisk
	case *storedAttachment, *storedAttachmentList:
		return spec.KindAttachment
	case *corev1.Pod, *corev1.PodList:
		return kindPod
	case *corev1.PersistentVolumeClaim:
		return kindClaim
	case *corev1.ConfigMap, *corev1.ConfigMapList:
		return kindConfigMap
	case *corev1.Secret, *corev1.SecretList:
		return kindSecret
	case *corev1.Service:
		return kindService
	case *metav1.PartialObjectMetadataList:
		return strings.TrimSuffix(o.Kind, "List")
	case *metav1.PartialObjectMetadata:
		return o.Kind
	case *unstructured.Unstructured:
		return o.GetKind()
	}
	panic(fmt.Sprintf("the model does not know %T", o))
}

func newObject(kind string) client.Object { return kindsOf(registrations())[kind].object() }

// into decodes an object.
func into[T any](o map[string]any, to T) T {
	data, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

// content encodes an object.
func content(o any) map[string]any {
	data, err := json.Marshal(o)
	out := map[string]any{}
	if err == nil {
		err = kjson.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func resourceOf(k modelKey) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(k.kind)}
}

// modelReader reads what there was when a watch of each kind had shown so much.
type modelReader struct {
	api *modelAPI
	// seen is nil for the API server itself.
	seen map[string]int64
	// indexes are those of a cache, by kinds and names.
	indexes map[[2]string]client.IndexerFunc
	lists   int // that were asked for
}

// IndexField implements [client.FieldIndexer].
func (r *modelReader) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	r.indexes[[2]string{kindOf(o), field}] = values
	return nil
}

// object is what the reader has of an object; nil for nothing.
func (r *modelReader) object(k modelKey) client.Object {
	serial := r.api.serial
	if r.seen != nil {
		serial = r.seen[k.kind]
	}
	content := r.api.at(k, serial)
	if content == nil {
		return nil
	}
	o := into(content, newObject(k.kind))
	if r.seen == nil {
		return o
	}
	has := labels.Set(o.GetLabels())
	switch o := o.(type) {
	case *corev1.Pod:
		if labels.SelectorFromSet(podLabels()).Matches(has) {
			return machinekind.CondensePod(o)
		}
	case *corev1.ConfigMap:
		if labels.SelectorFromSet(objectLabels()).Matches(has) {
			return machinekind.CondenseConfigMap(o)
		}
	case *corev1.Service:
		if labels.SelectorFromSet(objectLabels()).Matches(has) {
			return machinekind.CondenseService(o)
		}
	case *corev1.Secret:
		if watchedSecrets().Matches(has) {
			return machinekind.CondenseSecret(o)
		}
	case *corev1.PersistentVolumeClaim:
		return machinekind.CondenseClaim(o)
	default:
		return o
	}
	return nil
}

// Get implements [client.Reader].
func (r *modelReader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	k := modelKey{kindOf(o), key.Namespace, key.Name}
	found := r.object(k)
	if found == nil {
		return apierrors.NewNotFound(resourceOf(k), k.name)
	}
	setTo(o, found)
	return nil
}

// setTo sets one object to another of its type.
func setTo(to, from client.Object) {
	switch to := to.(type) {
	case *machine:
		*to = *from.(*machine)
	case *pool:
		*to = *from.(*pool)
	case *storedOperation:
		*to = *from.(*storedOperation)
	case *storedClass:
		*to = *from.(*storedClass)
	case *corev1.Pod:
		*to = *from.(*corev1.Pod)
	case *corev1.PersistentVolumeClaim:
		*to = *from.(*corev1.PersistentVolumeClaim)
	case *corev1.ConfigMap:
		*to = *from.(*corev1.ConfigMap)
	case *corev1.Secret:
		*to = *from.(*corev1.Secret)
	case *corev1.Service:
		*to = *from.(*corev1.Service)
	}
}

// List implements [client.Reader].
func (r *modelReader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	r.lists++
	var o client.ListOptions
	o.ApplyOptions(options)
	kind := kindOf(list)
	var keys []modelKey
	for k := range r.api.objects {
		if k.kind == kind && (o.Namespace == "" || k.namespace == o.Namespace) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y modelKey) int { return strings.Compare(x.String(), y.String()) })
	for _, k := range keys {
		found := r.object(k)
		if found == nil || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(found.GetLabels())) || !r.selected(kind, found, o.FieldSelector) {
			continue
		}
		switch l := list.(type) {
		case *machineList:
			l.Items = append(l.Items, *found.(*machine))
		case *poolList:
			l.Items = append(l.Items, *found.(*pool))
		case *storedOperationList:
			l.Items = append(l.Items, *found.(*storedOperation))
		case *storedClassList:
			l.Items = append(l.Items, *found.(*storedClass))
		case *corev1.PodList:
			l.Items = append(l.Items, *found.(*corev1.Pod))
		case *corev1.ConfigMapList:
			l.Items = append(l.Items, *found.(*corev1.ConfigMap))
		case *corev1.SecretList:
			l.Items = append(l.Items, *found.(*corev1.Secret))
		case *metav1.PartialObjectMetadataList:
			l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.name}})
		}
	}
	return nil
}

// selected reports whether an object has the values of indexes, or of fields where
// the API server is asked.
func (r *modelReader) selected(kind string, o client.Object, by fields.Selector) bool {
	if by == nil {
		return true
	}
	if r.seen == nil {
		has := fields.Set{"metadata.name": o.GetName()}
		switch o := o.(type) {
		case *corev1.Pod:
			has["status.phase"] = string(o.Status.Phase)
		case *corev1.Secret:
			has["type"] = string(o.Type)
		}
		return by.Matches(has)
	}
	for _, q := range by.Requirements() {
		values := r.indexes[[2]string{kind, q.Field}]
		if values == nil {
			panic(fmt.Sprintf("%s has no index %s", kind, q.Field))
		}
		if !slices.Contains(values(o), q.Value) {
			return false
		}
	}
	return true
}

// modelClient writes to the API server.
type modelClient struct {
	client.Client // what is not used panics
	api           *modelAPI
	// before is called before each write, and may say that it fails, before or after
	// it was carried out.
	before func(verb string, k modelKey) (fails error, after bool)
}

// write carries a write out, or not.
func (c *modelClient) write(verb string, k modelKey, do func() error) error {
	fails, after := c.before(verb, k)
	if fails != nil && !after {
		return fails
	}
	return errors.Join(do(), fails)
}

// answered gives an object what the API server answers.
func answered(o client.Object, with map[string]any) {
	u := unstructured.Unstructured{Object: with}
	o.SetUID(u.GetUID())
	o.SetResourceVersion(u.GetResourceVersion())
	o.SetCreationTimestamp(u.GetCreationTimestamp())
}

func keyOf(o client.Object) modelKey {
	return modelKey{kindOf(o), o.GetNamespace(), o.GetName()}
}

// Create implements [client.Client].
func (c *modelClient) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	k := keyOf(o)
	return c.write("create", k, func() error {
		if c.api.top(k) != nil {
			return apierrors.NewAlreadyExists(resourceOf(k), k.name)
		}
		answered(o, c.api.put(k, content(o)))
		return nil
	})
}

// conflict is the answer to a write about another version of an object.
func conflict(k modelKey) error {
	return apierrors.NewConflict(resourceOf(k), k.name, errors.New("the object has been modified"))
}

// is reports whether an object is the one, and of the version, that is meant.
func is(o map[string]any, uid types.UID, version string) bool {
	u := unstructured.Unstructured{Object: o}
	return (uid == "" || u.GetUID() == uid) && (version == "" || u.GetResourceVersion() == version)
}

// Delete implements [client.Client].
func (c *modelClient) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	var d client.DeleteOptions
	d.ApplyOptions(options)
	k := keyOf(o)
	return c.write("delete", k, func() error {
		now := c.api.top(k)
		if now == nil {
			return apierrors.NewNotFound(resourceOf(k), k.name)
		}
		if p := d.Preconditions; p != nil && (p.UID != nil && !is(now, *p.UID, "") || p.ResourceVersion != nil && !is(now, "", *p.ResourceVersion)) {
			return conflict(k)
		}
		grace := int64(30)
		if d.GracePeriodSeconds != nil {
			grace = *d.GracePeriodSeconds
		}
		c.api.remove(k, grace)
		return nil
	})
}

// remove deletes an object: a pod that runs is given its time, and who has finalizers
// waits for them.
func (a *modelAPI) remove(k modelKey, grace int64) {
	if u := (&unstructured.Unstructured{Object: a.copied(k)}); len(u.GetFinalizers()) > 0 {
		if u.GetDeletionTimestamp() == nil {
			at := metav1.NewTime(a.now())
			u.SetDeletionTimestamp(&at)
			a.put(k, u.Object)
		}
		return
	}
	if k.kind != kindPod {
		a.put(k, nil)
		return
	}
	pod := into(a.top(k), &corev1.Pod{})
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		a.put(k, nil)
		return
	}
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds != nil && grace < *pod.DeletionGracePeriodSeconds {
		at := metav1.NewTime(a.now().Add(time.Duration(grace) * time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		a.put(k, content(pod))
	}
}

// merge is a JSON merge patch.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap:
			old, _ := into[key].(map[string]any)
			if old == nil {
				old = map[string]any{}
			}
			merge(old, inner)
			into[key] = old
		default:
			into[key] = value
		}
	}
}

// Patch implements [client.Client].
func (c *modelClient) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(o, patch, "")
}

func (c *modelClient) patch(o client.Object, patch client.Patch, subresource string) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	var body map[string]any
	if err := kjson.Unmarshal(data, &body); err != nil {
		return err
	}
	k := keyOf(o)
	return c.write("patch", k, func() error {
		old := c.api.top(k)
		if old == nil {
			return apierrors.NewNotFound(resourceOf(k), k.name)
		}
		u := unstructured.Unstructured{Object: runtime.DeepCopyJSON(body)}
		if !is(old, u.GetUID(), u.GetResourceVersion()) {
			return conflict(k)
		}
		next := runtime.DeepCopyJSON(old)
		merge(next, body)
		unstructured.RemoveNestedField(next, "metadata", "managedFields")
		n := unstructured.Unstructured{Object: next}
		if _, changes := body["spec"]; changes && subresource == "" {
			n.SetGeneration(n.GetGeneration() + 1)
		}
		if n.GetDeletionTimestamp() != nil && len(n.GetFinalizers()) == 0 && k.kind != kindPod {
			answered(o, next)
			if k.kind == spec.KindVirtualMachine {
				c.api.released(k, n.GetUID())
			}
			c.api.put(k, nil)
			return nil
		}
		if assigned := func(o map[string]any) bool {
			user, _, _ := unstructured.NestedString(o, "status", "assignment", "user")
			return user != ""
		}; assigned(old) && !assigned(next) {
			c.api.taken(k, old)
		}
		answered(o, c.api.put(k, next))
		return nil
	})
}

// Apply implements [client.Client]. The operator owns all of what it applies, but for
// what patches have written.
func (c *modelClient) Apply(_ context.Context, what runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	u := applyContent(what)
	k := keyOf(u)
	return c.write("apply", k, func() error {
		next := runtime.DeepCopyJSON(u.Object)
		if old := c.api.top(k); old != nil {
			if !is(old, u.GetUID(), u.GetResourceVersion()) {
				return conflict(k)
			}
			was, n := unstructured.Unstructured{Object: old}, unstructured.Unstructured{Object: next}
			n.SetUID(was.GetUID())
			n.SetCreationTimestamp(was.GetCreationTimestamp())
			annotations := n.GetAnnotations()
			for _, patched := range []string{names.AnnotationOperatorClaim, names.AnnotationOperatorAnswer} {
				if text, there := was.GetAnnotations()[patched]; there {
					annotations[patched] = text
				}
			}
			n.SetAnnotations(annotations)
		} else if u.GetResourceVersion() != "" {
			return conflict(k)
		}
		answered(u, c.api.put(k, next))
		return nil
	})
}

// applyContent is the object that an apply configuration was made of.
func applyContent(what runtime.ApplyConfiguration) *unstructured.Unstructured {
	o, is := what.(client.Object)
	if !is {
		panic(fmt.Sprintf("the model does not apply %T", what))
	}
	u := &unstructured.Unstructured{}
	data, err := json.Marshal(o)
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		panic(err)
	}
	return u
}

// Status implements [client.Client].
func (c *modelClient) Status() client.SubResourceWriter {
	return &modelSubresource{c: c, name: "status"}
}

// SubResource implements [client.Client].
func (c *modelClient) SubResource(name string) client.SubResourceClient {
	return &modelSubresource{c: c, name: name}
}

type modelSubresource struct {
	client.SubResourceClient // what is not used panics
	c                        *modelClient
	name                     string
}

// Patch implements [client.SubResourceWriter].
func (s *modelSubresource) Patch(_ context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	var p client.SubResourcePatchOptions
	p.ApplyOptions(options)
	if patch.Type() == types.ApplyYAMLPatchType {
		return s.apply(o, patch, p.FieldManager)
	}
	k := keyOf(o)
	if old := s.c.api.top(k); old != nil && s.name == "status" {
		s.c.api.own((&unstructured.Unstructured{Object: old}).GetUID(), p.FieldManager, map[string]bool{"assignment": true})
	}
	return s.c.patch(o, patch, s.name)
}

func (a *modelAPI) own(uid types.UID, manager string, parts map[string]bool) {
	if a.owners[uid] == nil {
		a.owners[uid] = map[string]map[string]bool{}
	}
	a.owners[uid][manager] = parts
}

// apply is a patch that applies a part of a status.
func (s *modelSubresource) apply(o client.Object, patch client.Patch, manager string) error {
	data, err := patch.Data(o)
	u := &unstructured.Unstructured{}
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		return err
	}
	k := keyOf(u)
	return s.c.write("apply", k, func() error {
		old := s.c.api.top(k)
		if old == nil {
			return apierrors.NewNotFound(resourceOf(k), k.name)
		}
		if !is(old, u.GetUID(), u.GetResourceVersion()) {
			return conflict(k)
		}
		part, _ := u.Object["status"].(map[string]any)
		answered(o, s.c.api.report(k, manager, part))
		return nil
	})
}

// report is server-side apply of a part of a status.
func (a *modelAPI) report(k modelKey, manager string, part map[string]any) map[string]any {
	next := a.copied(k)
	uid := (&unstructured.Unstructured{Object: next}).GetUID()
	status, _ := next["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	before, now := a.owners[uid][manager], map[string]bool{}
	for name, value := range part {
		if name != "conditions" {
			now[name] = true
			status[name] = value
		}
	}
	for name := range before {
		if !now[name] && !strings.HasPrefix(name, "condition ") && !a.others(uid, manager, name) {
			delete(status, name)
		}
	}
	given := map[string]any{}
	list, _ := part["conditions"].([]any)
	for _, c := range list {
		t, _ := c.(map[string]any)["type"].(string)
		given[t] = c
		now["condition "+t] = true
	}
	old, _ := status["conditions"].([]any)
	var kept []any
	for _, c := range old {
		t, _ := c.(map[string]any)["type"].(string)
		if n := given[t]; n != nil {
			kept = append(kept, n)
			delete(given, t)
		} else if !before["condition "+t] || a.others(uid, manager, "condition "+t) {
			kept = append(kept, c)
		}
	}
	for _, c := range list {
		t, _ := c.(map[string]any)["type"].(string)
		if given[t] != nil {
			kept = append(kept, c)
		}
	}
	if len(kept) > 0 {
		status["conditions"] = kept
	}
	next["status"] = status
	a.own(uid, manager, now)
	return a.put(k, next)
}

// others reports whether another manager has applied a part of a status, too.
func (a *modelAPI) others(uid types.UID, manager, part string) bool {
	for m, parts := range a.owners[uid] {
		if m != manager && parts[part] {
			return true
		}
	}
	return false
}
