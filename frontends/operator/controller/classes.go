package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vmop/sdk/vmop/spec"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// storedClass is a class, and whether it is marked as the default.
type storedClass struct {
	kept[spec.VirtualMachineClass]
	isDefault bool
}

type storedClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []storedClass `json:"items"`
}

// DeepCopyObject implements [runtime.Object].
func (c *storedClass) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements [runtime.Object]. Nothing changes the items.
func (l *storedClassList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = append([]storedClass(nil), l.Items...)
	return &out
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *storedClass) UnmarshalJSON(data []byte) error {
	*c = storedClass{}
	if err := c.kept.UnmarshalJSON(data); err != nil {
		return err
	}
	var marked struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(c.data.text(), &marked); err != nil {
		return err
	}
	c.isDefault = (&spec.VirtualMachineClass{ObjectMeta: metav1.ObjectMeta{Annotations: marked.Metadata.Annotations}}).IsDefault()
	return nil
}

// classRegistration is that of classes, about which nothing is decided: machines have
// them, and nobody but people writes them.
func classRegistration() registration {
	return registration{
		kind: spec.KindClass, resource: spec.ResourceClasses,
		object: func() client.Object { return &storedClass{} },
		list:   func() client.ObjectList { return &storedClassList{} },
		add:    func(*setup) error { return nil },
	}
}

// without are kinds without one.
func without(kinds []registration, kind string) []registration {
	var out []registration
	for _, r := range kinds {
		if r.kind != kind {
			out = append(out, r)
		}
	}
	return out
}

// mayReadClasses asks whether the operator may read classes. They are the cluster's,
// and an operator that is installed in a namespace has no right outside of it by that
// alone.
func (o *Operator) mayReadClasses(ctx context.Context) (bool, error) {
	c, err := authorization.NewForConfig(o.config)
	if err != nil {
		return false, err
	}
	for _, verb := range []string{"list", "watch"} {
		answer, err := c.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: spec.GroupName, Version: spec.Version, Resource: spec.ResourceClasses,
			}},
		}, metav1.CreateOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return true, nil // nobody says so; the watch will
		case err != nil:
			return false, fmt.Errorf("ask whether classes may be read: %w", err)
		case !answer.Status.Allowed:
			return false, nil
		}
	}
	return true, nil
}

// classesUnreadable is told of a machine that names a class.
const classesUnreadable = "the operator may not read classes: apply deploy/components/read-classes, and start it again"

// classes finds the class of a machine, or all that are marked as the default if it
// names none.
func (w machineLook) classes(name string) (all []spec.VirtualMachineClass, problem string) {
	_, readable := w.kinds[spec.KindClass]
	switch {
	case w.err != nil, !readable && name == "":
		return nil, ""
	case !readable:
		return nil, classesUnreadable
	case name != "":
		c := &storedClass{}
		found, err := get(w.ctx, w.cache, types.NamespacedName{Name: name}, c)
		if w.err = err; !found {
			return nil, ""
		}
		decoded, err := c.decode()
		if err != nil {
			return nil, err.Error()
		}
		return []spec.VirtualMachineClass{*decoded}, ""
	}
	var l storedClassList
	if err := w.cache.List(w.ctx, &l); err != nil {
		w.err = fmt.Errorf("list classes: %w", err)
	}
	for i := range l.Items {
		if c := &l.Items[i]; c.isDefault {
			// What cannot be understood is nobody's default.
			if decoded, err := c.decode(); err == nil {
				all = append(all, *decoded)
			}
		}
	}
	return all, ""
}

// machinesOfClass are the machines that name a class, and if it is marked as the
// default those that name none.
func (f finder) machinesOfClass(ctx context.Context, o client.Object) []ctrl.Request {
	var out []ctrl.Request
	add := func(l *machineList, wanted func(*machine) bool) {
		for i := range l.Items {
			if m := &l.Items[i]; wanted(m) {
				out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			}
		}
	}
	var named machineList
	if f.cache.List(ctx, &named, client.MatchingFields{byClass: o.GetName()}) == nil {
		add(&named, func(*machine) bool { return true })
	}
	if c, is := o.(*storedClass); is && c.isDefault {
		var all machineList
		if f.cache.List(ctx, &all) == nil {
			add(&all, func(m *machine) bool { return m.class == "" })
		}
	}
	return out
}

// classNamed is the class that a machine names, for the index.
func classNamed(o client.Object) []string {
	if m, ok := o.(*machine); ok && m.class != "" {
		return []string{m.class}
	}
	return nil
}
