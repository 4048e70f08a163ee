package machinetest

import (
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// lasting is how long a wait that may pass by itself must last before an event is emitted.
const lasting = 10 * time.Second

// noteWaits records the waits in the status just written, by condition types. It was decided on
// the observed machine.
func (w *world) noteWaits(vm, seen *spec.VirtualMachine) {
	before := w.waits
	wanted := (&spec.VirtualMachine{Spec: seen.Spec, Status: vm.Status}).ShouldRun()
	w.waits = map[string]*waiting{}
	reasons := map[string]bool{}
	for _, of := range vm.Status.Waits {
		reasons[of.Reason] = true
		w.namesWhatItWaitsFor(vm, of)
		since := sinceOf(of)
		defer func() { w.waited[since] = w.waits[of.Condition] }()
		if old := before[of.Condition]; old != nil && old.wait.Reason == of.Reason && old.wait.Object == of.Object {
			w.waits[of.Condition] = old
			continue
		}
		if old := w.waited[since]; old != nil && slices.ContainsFunc(seen.Status.Waits, since.is) {
			// The operator has not observed the statuses in between.
			w.waits[of.Condition] = old
			continue
		}
		notes := map[string]bool{}
		for _, other := range before {
			if other.wait.Reason == of.Reason && other.wait.Object == of.Object {
				notes = other.notes
			}
		}
		w.waits[of.Condition] = &waiting{of, w.now, notes}
	}
	for _, t := range spec.OperatorConditionTypes() {
		c := spec.FindCondition(vm.Status.Conditions, t)
		if c == nil {
			continue // of a machine without a class
		}
		if c.Status == "False" && t != spec.ConditionAwaitingRestart && t != spec.ConditionReady && t != spec.ConditionRunnerUpToDate && !reasons[c.Reason] && !quietly[c.Reason] &&
			(c.Reason != spec.ReasonPodTerminating && c.Reason != spec.ReasonBlockDevicesNotReady || wanted && seen.DeletionTimestamp == nil) {
			w.violated("every wait is explained", "%+v is none of %+v", c, vm.Status.Waits)
		}
	}
}

// namesWhatItWaitsFor verifies the message of each wait, whether or not it lasts until an event
// is emitted.
func (w *world) namesWhatItWaitsFor(vm *spec.VirtualMachine, of spec.Wait) {
	c := spec.FindCondition(vm.Status.Conditions, of.Condition)
	if c == nil || c.Reason != of.Reason {
		w.violated("every wait is explained", "%+v by %+v", of, c)
		return
	}
	if of.Condition != spec.ConditionReady && !machine.Waits(c.Type, c.Status, c.Reason) {
		w.violated("every wait is explained", "%+v is called no wait", c)
	}
	if kind, name := waitsFor(of); kind != spec.KindVirtualMachine && !namesObject(c.Message, name) {
		w.violated("an event has an object and a next step", "%+v, which waits for %s %s", c, kind, name)
	}
}

func waitsFor(w spec.Wait) (kind, name string) {
	kind, _, _ = strings.Cut(w.Object, " ")
	return kind, w.Object[strings.LastIndex(w.Object, " ")+1:]
}

// told verifies each event. Only an operator that observes the latest status knows which events
// were emitted, and since when something is waited for.
func (w *world) told(e reconcile.Event, latest bool) {
	w.note("event %s", e)
	if !strings.Contains(e.Note, ";") {
		w.violated("an event has an object and a next step", "%s", e)
	}
	if e.Action == "Run" || e.Action == "Claim" || e.Action == "Delete" || e.Action == "Provision" || e.Action == "Adopt" {
		return
	}
	var about []*waiting
	known := false
	for _, t := range spec.OperatorConditionTypes() {
		wait := w.waits[t]
		if wait == nil || wait.wait.Reason != e.Reason {
			continue
		}
		known = true
		kind, name := waitsFor(wait.wait)
		// A problem of the machine itself need not name it.
		if kind == spec.KindVirtualMachine || namesObject(e.Note, name) {
			about = append(about, wait)
		}
	}
	switch {
	case !known:
		w.violated("an event tells of a wait", "%s", e)
	case len(about) == 0:
		w.violated("an event has an object and a next step", "%s", e)
	}
	for _, wait := range about {
		brief := e.Type == corev1.EventTypeNormal || e.Reason == corev1.PodReasonUnschedulable
		switch {
		case len(about) == 1 && len(wait.notes) > 0 && latest:
			w.violated("an event is told once", "%s after %v", e, wait.notes)
		// A status has whole seconds.
		case brief && w.now.Sub(wait.since.Truncate(time.Second)) < lasting && latest:
			w.violated("what may pass is told when it lasts", "%s after %v", e, w.now.Sub(wait.since))
		}
		wait.notes[e.Note] = true
	}
}

func (w *world) checkWaitsTold() {
	for _, wait := range w.waits {
		if w.now.Sub(wait.since) > 2*lasting && len(wait.notes) == 0 && get[*spec.VirtualMachine](w, theVM) != nil {
			w.violated("a wait that lasts is told", "%+v since %v", wait.wait, wait.since)
		}
	}
}

// quietly are the reasons without an event of their own: nothing is waited for, or the event
// about the end of the machine includes them.
var quietly = map[string]bool{
	spec.ReasonMachineStopped: true, spec.ReasonMachineDeleted: true,
	spec.ReasonPodFinished: true, spec.ReasonRestartDelayed: true, spec.ReasonNamespaceTerminating: true,
}

// namesObject reports whether a text has a name as a word: web is not in web-system-disk.
func namesObject(text, name string) bool {
	part := func(c byte) bool { return c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(name)
		if (i == 0 || !part(text[i-1])) && (end == len(text) || !part(text[end])) {
			return true
		}
		from = i + 1
	}
}
