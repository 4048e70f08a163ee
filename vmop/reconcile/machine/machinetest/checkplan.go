package machinetest

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (w *world) checkPlan(s *machine.Snapshot, p *reconcile.Plan) {
	if fresh, _ := w.snapshot(); !reflect.DeepEqual(fresh, *s) {
		w.violated("a snapshot is not changed", "%s", cmp.Diff(fresh, *s))
	}
	again := *s
	again.VM = s.VM.DeepCopy()
	if q := w.decide(again); !reflect.DeepEqual(*p, q) {
		w.violated("equal snapshots give equal plans", "%s", cmp.Diff(*p, q))
	}
	for _, a := range p.Actions {
		w.checkAction(s, a)
		if c, is := a.(reconcile.Create); is {
			w.checkTakeOver(s, c.Object)
		}
	}
	w.checkMayReport(s, p)
	w.checkClass(s, p)
	w.checkHot(s, p)
	w.checkTold(s, p)
	w.checkDocuments(s, p)
	for _, st := range p.Statuses {
		w.checkPhase(s, p, st)
		w.checkStarting(s, p, st)
		w.checkStatus(s, st)
		// The status of a plan that only creates objects may be left to the next one, which sees
		// them, but not why there was no pod.
		if end, notes := st.Status["lastEnd"]; notes && p.StartsPod() && (s.VM.Status.LastEnd == nil || end.(map[string]any)["podUID"] != string(s.VM.Status.LastEnd.PodUID)) {
			w.violated("an end is noted before there is another pod", "%v", end)
		}
	}
	// If the operator dies between pod and status, the next one would take the request for one to
	// start the machine once more.
	request, power := s.VM.Annotations[names.AnnotationPowerRequest], s.VM.Status.Power
	if strings.HasPrefix(request, string(machine.VerbStart)) && s.VM.Spec.RunPolicy != "" && p.StartsPod() && (power == nil || power.Request != request) {
		w.violated("a start is noted before there is a pod", "%s", request)
	}
	if !p.Wake.IsZero() && !p.Wake.After(w.now) {
		w.violated("a wake-up is in the future", "%v", p.Wake)
	}
	if p.Passing && (p.Wake.IsZero() && len(p.Actions) == 0 && len(p.Statuses) == 0 || len(p.Events) > 0) {
		w.violated("a step that passes is looked at again", "wake: %v, events: %v", p.Wake, p.Events)
	}
}

func (w *world) checkAction(s *machine.Snapshot, a reconcile.Action) {
	if s.VM.DeletionTimestamp != nil {
		switch a := a.(type) {
		case reconcile.DeletePod, reconcile.SetFinalizers, reconcile.DeleteClaim, reconcile.DeleteSecret:
		case reconcile.AnnotatePod:
			if a.Annotations[names.AnnotationOrphaned] == nil {
				w.violated("a deleted machine gets nothing", "%s", a.Target())
			}
		default:
			w.violated("a deleted machine gets nothing", "%s", a.Target())
		}
	}
	grace := int64(*s.VM.Spec.VM.PowerdownTimeout) + objects.TerminationReserve
	if request := s.VM.Annotations[names.AnnotationForceStop]; request != "" && s.Pod() != nil && s.Pod().Annotations[names.AnnotationForceStop] != request {
		grace = objects.TerminationReserve
	}
	for _, f := range s.Failures {
		if f.Target == a.Target() && w.now.Sub(f.Last) < time.Second {
			w.violated("what was refused is not repeated at once", "%s", a.Target())
		}
	}
	switch a := a.(type) {
	case reconcile.Create:
		if pvc, is := a.Object.(*corev1.PersistentVolumeClaim); is {
			w.checkNewClaim(s.VM, pvc)
		}
	case reconcile.DeletePod:
		if i := slices.IndexFunc(s.Pods, func(p corev1.Pod) bool { return p.UID == a.UID }); i >= 0 && hasEnded(s.Pod()) && a.UID != s.Pod().UID {
			if pod := &s.Pods[i]; !hasEnded(pod) || pod.DeletionTimestamp != nil || len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].UID != s.VM.UID {
				w.violated("only pods that have ended go with the last one", "%+v", a)
			}
			return
		}
		switch {
		case slices.Contains(s.VM.Finalizers, metav1.FinalizerOrphanDependents):
			w.violated("a pod that is left runs on", "%+v", a)
		case s.Pod() == nil || a.UID != s.Pod().UID:
			w.violated("a pod is deleted by its UID", "%+v", a)
		case s.Pod().DeletionTimestamp != nil && s.Pod().DeletionGracePeriodSeconds != nil && *s.Pod().DeletionGracePeriodSeconds <= a.GraceSeconds:
			w.violated("a pod is deleted again only to hurry", "%+v", a)
		case len(s.Pod().OwnerReferences) == 0 || s.Pod().OwnerReferences[0].UID != s.VM.UID:
			w.violated("pods of others are left alone", "%+v", a)
		case w.keepsPod(s.VM, s.Pod()) && s.Pod().Status.Phase == corev1.PodRunning && s.Pod().DeletionTimestamp == nil && s.VM.DeletionTimestamp == nil:
			w.violated("a pod that runs as it should is left alone", "%+v", a)
		case a.GraceSeconds != grace:
			w.violated("the guest has the time that it was given", "%+v", a)
		}
	case reconcile.AnnotatePod:
		if s.Pod() == nil || a.UID != s.Pod().UID || s.Pod().DeletionTimestamp != nil {
			w.violated("a pod that goes is left alone", "%+v", a)
		}
	}
}
