package controller

import (
	"context"
	"fmt"

	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// classRegistration registers classes, which need no controller: only users write them.
func classRegistration() registration {
	return registration{
		kind: spec.KindClass, resource: spec.ResourceClasses,
		object: func() client.Object { return &storedClass{} },
		list:   func() client.ObjectList { return &storedClassList{} },
		add:    func(*setup) error { return nil },
	}
}

func without(kinds []registration, kind string) []registration {
	var out []registration
	for _, r := range kinds {
		if r.kind != kind {
			out = append(out, r)
		}
	}
	return out
}

// classesUnreadable is reported for a machine that names a class.
const classesUnreadable = "the operator may not read classes: apply deploy/components/read-classes, and start it again"

// classes returns the class of a machine, or all default classes if it names none.
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
			// A class that cannot be decoded is not a default.
			if decoded, err := c.decode(); err == nil {
				all = append(all, *decoded)
			}
		}
	}
	return all, ""
}

// machinesOfClass returns the machines that name a class and, if it is a default, those that name
// none.
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
