package machinetest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// checkOneGuest verifies that a guest executes in at most one of the machine's pods, whatever
// their names.
func (w *world) checkOneGuest() {
	in := map[string]types.UID{}
	for uid, g := range w.guests {
		of := g.pod.Labels[names.LabelInstance]
		if of == "" {
			continue
		}
		if other, executes := in[of]; executes {
			w.violated("at most one guest of a machine executes", "guests of %s execute in pods %s and %s", of, min(uid, other), max(uid, other))
		}
		in[of] = uid
	}
}

// checkReporter verifies that while a guest executes, no runner that may start may report. The
// admission policy enforces it by the operator's status.
func (w *world) checkReporter() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	active := 0
	for i := range vm.Status.VirtualMachinePods {
		if vm.Status.VirtualMachinePods[i].Active {
			active++
		}
	}
	if active > 1 {
		w.violated("one pod of a machine is active", "%v", vm.Status.VirtualMachinePods)
	}
	executes := false
	for uid, g := range w.guests {
		pod := get[*corev1.Pod](w, "pod/"+g.pod.Name)
		executes = executes || pod != nil && pod.UID == uid && isOf(pod, vm)
	}
	for _, k := range w.keys("pod/") {
		if pod := get[*corev1.Pod](w, k); executes && pod != nil && isOf(pod, vm) && pod.Status.Phase != corev1.PodRunning && !hasEnded(pod) && objects.MayReport(vm, pod.Name, pod.UID) {
			w.violated("only the runner with the guest reports", "that of pod %s may, by %v", pod.UID, vm.Status.VirtualMachinePods)
		}
	}
}

// checkMayReport verifies that the active pod's runner may report once the plan's status is
// written. The operator waits for that report.
func (w *world) checkMayReport(s *machine.Snapshot, p *reconcile.Plan) {
	pod, after := s.Pod(), s.VM.DeepCopy()
	if pod == nil || !isOf(pod, s.VM) || hasEnded(pod) || len(p.Actions) > 0 {
		return
	}
	for _, st := range p.Statuses {
		if st.Manager == names.OperatorStatusManager {
			after.Status.VirtualMachinePods = w.statusOf(st.Status).VirtualMachinePods
		}
	}
	if !objects.MayReport(after, pod.Name, pod.UID) {
		w.violated("the runner of the active pod may report", "that of pod %s %s may not, by %v", pod.Name, pod.UID, after.Status.VirtualMachinePods)
	}
}

func isOf(pod *corev1.Pod, vm *spec.VirtualMachine) bool {
	return len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID
}

// checkPods verifies that finally the status lists the machine's pods, the one with the guest as
// active.
func (w *world) checkPods(vm *spec.VirtualMachine) {
	var want []spec.VirtualMachinePod
	for _, k := range w.keys("pod/") {
		if pod := get[*corev1.Pod](w, k); pod != nil && len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID {
			want = append(want, spec.VirtualMachinePod{Name: pod.Name, UID: pod.UID, Active: w.guests[pod.UID] != nil})
		}
	}
	if got := vm.Status.VirtualMachinePods; !slices.Equal(got, want) {
		w.violated("the status has the pods of the machine", "%v, and there are %v", got, want)
	}
}

func (w *world) checkNewPod(pod *corev1.Pod) {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm != nil && len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID && !slices.Contains(vm.Finalizers, names.FinalizerMachine) {
		w.violated("a machine with a pod is held", "%v", vm.Finalizers)
	}
	for _, name := range w.missing(pod) {
		// It may have been deleted without the operator having observed it: then the pod waits.
		if cached[*corev1.PersistentVolumeClaim](w, "claim/"+name) == nil {
			w.violated("a pod finds what it needs", "claim %s is missing", name)
		}
	}
	if pvc := get[*corev1.PersistentVolumeClaim](w, "claim/web-runner-data"); pvc != nil && slices.Contains(objects.PodClaims(pod), pvc.Name) && pvc.Annotations[names.AnnotationOrigin] == "" {
		w.violated("who made a machine is noted before it starts", "claim %s has %v", pvc.Name, pvc.Annotations)
	}
	var last *end
	for _, e := range w.lastEnds {
		// Of two pods that have ended at the same time either may be taken for the last run.
		if last == nil || e.at.After(last.at) || e.at.Equal(last.at) && !e.failed {
			last = &e
		}
	}
	// The specification that the operator observed when it noted the end may be older.
	if last != nil && last.failed && vm != nil && vm.Generation == last.generation && w.now.Sub(last.at) < 9*time.Second &&
		(vm.Status.LastEnd == nil || vm.Status.LastEnd.ObservedGeneration == vm.Generation) {
		w.violated("a failed machine is started again after a delay", "%v after the end", w.now.Sub(last.at))
	}
}

func (w *world) missing(pod *corev1.Pod) []string {
	return slices.DeleteFunc(objects.PodClaims(pod), func(name string) bool {
		return name == names.ImageRepositoryClaim || get[*corev1.PersistentVolumeClaim](w, "claim/"+name) != nil
	})
}

func (w *world) checkOrigin(pvc *corev1.PersistentVolumeClaim, a reconcile.UpdateClaim) {
	now, noted := a.Annotations[names.AnnotationOrigin]
	want := machineconfig.OriginVMOP
	if w.former[pvc.Name] {
		want = machineconfig.OriginVMOperator
	}
	switch was := pvc.Annotations[names.AnnotationOrigin]; {
	case !noted:
	case was != "":
		w.violated("who made a machine is noted once", "%s becomes %s", was, now)
	case now != string(want):
		w.violated("who made a machine is noted as it was", "%s instead of %s", now, want)
	}
}

// checkTakeOver verifies that a new pod has a container that is root only for the files of
// VM-Operator's runner, until they were given away.
func (w *world) checkTakeOver(s *machine.Snapshot, o reconcile.Object) {
	pod, is := o.(*corev1.Pod)
	if !is {
		return
	}
	root := pod.Annotations[names.AnnotationDataOwner] != ""
	former := slices.ContainsFunc(objects.PodClaims(pod), func(name string) bool { return w.former[name] })
	switch given := s.ConfigMap.Annotations[names.AnnotationDataOwner] != ""; {
	case root && !former:
		w.violated("only what VM-Operator left is given away", "the claims of the pod are vmop's: %v", objects.PodClaims(pod))
	case root && given:
		w.violated("what was given away is not given away again", "%v", s.ConfigMap.Annotations)
	case !root && former && !given:
		w.violated("a machine gets what VM-Operator left", "%v", s.ConfigMap.Annotations)
	}
}

func (w *world) checkApply(old, next reconcile.Object) {
	if _, ok := next.(*corev1.ConfigMap); !ok || old.GetAnnotations()[names.AnnotationResetCounter] == "" {
		return
	}
	a, b := resets(old), resets(next)
	was, is := old.GetAnnotations()[names.AnnotationResetRequest], next.GetAnnotations()[names.AnnotationResetRequest]
	switch {
	case b < a:
		w.violated("resets are never forgotten", "from %d to %d", a, b)
	case b > a && is == was:
		w.violated("a reset is not repeated", "from %d to %d for %q", a, b, is)
	case b == a && is != was:
		w.violated("a reset is not lost", "%q became %q and the counter stayed %d", was, is, a)
	}
}

func resets(o metav1.Object) int {
	n, _ := strconv.Atoi(o.GetAnnotations()[names.AnnotationResetCounter])
	return n
}

var phases = []string{
	spec.PhasePending, spec.PhaseStarting, spec.PhaseRunning, spec.PhasePaused, spec.PhaseDegraded,
	spec.PhaseStopping, spec.PhaseStopped, spec.PhaseTerminating, spec.PhaseUnknown,
}

func (w *world) checkStatus(s *machine.Snapshot, st reconcile.StatusApply) {
	types := spec.ConditionTypes()
	if st.Manager == names.OperatorStatusManager {
		types = spec.OperatorConditionTypes()
		of := func(v any) bool { return v.(map[string]any)["type"] == spec.ConditionVirtualMachineClassReady }
		if !slices.ContainsFunc(st.Status["conditions"].([]any), of) {
			types = types[:len(types)-2] // it has no class
		}
		if g := st.Status["observedGeneration"]; g != s.VM.Generation {
			w.violated("the status names the generation it is about", "%v, not %d", g, s.VM.Generation)
		}
		if !slices.Contains(phases, st.Status["phase"].(string)) {
			w.violated("phases are known", "%v", st.Status["phase"])
		}
	}
	if st.Manager == names.OperatorStatusManager {
		w.checkRemembered(s, st)
		w.checkStats(st)
	}
	if long := promises.LongMessage(reconcile.Plan{Statuses: []reconcile.StatusApply{st}}); long != "" {
		w.violated("a message is one line", "%d bytes: %s", len(long), long)
	}
	for i, v := range st.Status["conditions"].([]any) {
		c := v.(map[string]any)
		if i >= len(types) && st.ResourceVersion != "" {
			continue // in the runner's place
		}
		if c["type"] != types[i] {
			w.violated("all conditions are present", "%v instead of %s", c["type"], types[i])
		}
		if c["type"] == spec.ConditionReady && (c["status"] == "True") != (st.Status["ready"] == true) {
			w.violated("a machine is ready if its condition says so", "%v with %v", c, st.Status["ready"])
		}
		if c["reason"] == "" || c["message"] == "" {
			w.violated("every wait is explained", "%v", c)
		}
		old := spec.FindCondition(s.VM.Status.Conditions, types[i])
		if old == nil {
			continue
		}
		kept := c["lastTransitionTime"] == old.LastTransitionTime.UTC().Format(time.RFC3339) || old.LastTransitionTime.Unix() <= 0
		if strings.HasPrefix(c["lastTransitionTime"].(string), "1970") {
			w.violated("conditions have true times", "%v", c)
		}
		if string(old.Status) == c["status"] && !kept {
			w.violated("a transition is a change of the status", "%v", c)
		}
	}
}

// checkPhase verifies that between two pods, as during a restart or while something is missing, a
// machine that should run is never reported as stopped, and one that should not only as stopped
// or stopping.
func (w *world) checkPhase(s *machine.Snapshot, p *reconcile.Plan, st reconcile.StatusApply) {
	if st.Manager != names.OperatorStatusManager || s.VM.DeletionTimestamp != nil {
		return
	}
	vm := s.VM.DeepCopy()
	if power, has := st.Status["power"].(map[string]any); has {
		state, _ := power["state"].(string)
		policy, _ := power["policy"].(string)
		vm.Status.Power = &spec.Power{State: spec.MachineState(state), Policy: spec.RunPolicy(policy)}
	}
	for _, a := range p.Actions {
		if patch, is := a.(reconcile.Patch); is && patch.Kind == names.KindVirtualMachine && patch.Fields["spec"] != nil {
			vm.Spec.VM.State = spec.StateStopped // the only field that the operator writes there
		}
	}
	phase := st.Status["phase"].(string)
	if phase == spec.PhaseUnknown {
		w.checkLost(s, st)
	} else if pod := s.Pod(); pod != nil && metav1.IsControlledBy(pod, s.VM) && w.dead[pod.Spec.NodeName] && overdue(pod, s.Now) {
		w.violated("a machine that nobody hears of is unknown", "%s, and pod %s should be gone since %s", phase, pod.Name, pod.DeletionTimestamp)
	}
	if phase == spec.PhaseUnknown || phase == spec.PhaseStopping {
		return // the guest may execute, also at the end of a restart
	}
	if (phase == spec.PhaseStopped) == vm.ShouldRun() {
		w.violated("a phase says what is wanted", "%s of a machine that should run: %v", phase, vm.ShouldRun())
	}
}

// overdue reports whether a pod with a container that is said to run should be gone for a minute.
func overdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && !now.Before(pod.DeletionTimestamp.Add(time.Minute)) &&
		len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil
}

func (w *world) checkLost(s *machine.Snapshot, st reconcile.StatusApply) {
	for _, t := range []string{spec.ConditionRunning, spec.ConditionGuestExecuting, spec.ConditionReady} {
		says := spec.ConditionIsTrue(s.VM.Status.Conditions, t)
		for _, v := range st.Status["conditions"].([]any) {
			if c := v.(map[string]any); c["type"] == t {
				says = c["status"] == "True"
			}
		}
		if says {
			w.violated("nobody says that a guest on a lost node executes", "%s is True", t)
		}
	}
}

func (w *world) changed(pod *corev1.Pod, vm *spec.VirtualMachine) bool {
	return w.made[pod.UID] != madeFor(vm)
}

func (w *world) startable() bool {
	for _, k := range w.keys("claim/") {
		if c := get[*corev1.PersistentVolumeClaim](w, k); c == nil || c.DeletionTimestamp != nil || c.Status.Phase == corev1.ClaimLost {
			return false
		}
	}
	return true
}
