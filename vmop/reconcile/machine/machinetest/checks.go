package machinetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// check is what must hold after every step.
func (w *world) check() {
	w.checkOneGuest()
	w.checkReporter()
	users := map[string]string{}
	for _, uid := range slices.Sorted(maps.Keys(w.guests)) {
		for _, c := range w.guests[uid].claims {
			if other, used := users[c]; used {
				w.violated("a disk has one machine", "claim %s is used by pods %s and %s", c, uid, other)
			}
			users[c] = string(uid)
		}
	}
	w.checkRoom()
}

// checkOneGuest: whatever the pods of a machine are called, in one of them at most a
// guest executes.
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

// checkReporter: while a guest executes, no runner that may start may report. The
// admission policy sees to it, by what the operator has said in the status.
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

// checkMayReport: when all that a plan says is written, the active pod's runner may report.
// What it reports is what the operator waits for.
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

// isOf reports whether a pod is the machine's.
func isOf(pod *corev1.Pod, vm *spec.VirtualMachine) bool {
	return len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID
}

// checkPods: when nothing happens any more, the status has the machine's pods, and the one
// with the guest is active.
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

// checkPlan is what must hold for every plan.
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
	for _, st := range p.Statuses {
		w.checkPhase(s, p, st)
		w.checkStatus(s, st)
		// The status of a plan that only makes objects may be left to the next one,
		// which sees them, and not why there was no pod.
		if end, notes := st.Status["lastEnd"]; notes && p.StartsPod() && (s.VM.Status.LastEnd == nil || end.(map[string]any)["podUID"] != string(s.VM.Status.LastEnd.PodUID)) {
			w.violated("an end is noted before there is another pod", "%v", end)
		}
	}
	// With the pod there, an operator that did not write why is no more, and the next one
	// would take the request for one to start the machine once more.
	request, power := s.VM.Annotations[names.AnnotationPowerRequest], s.VM.Status.Power
	if strings.HasPrefix(request, string(machine.VerbStart)) && s.VM.Spec.RunPolicy != "" && p.StartsPod() && (power == nil || power.Request != request) {
		w.violated("a start is noted before there is a pod", "%s", request)
	}
	if !p.Wake.IsZero() && !p.Wake.After(w.now) {
		w.violated("a wake-up is in the future", "%v", p.Wake)
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

// hasEnded reports whether nothing runs in a pod any more.
func hasEnded(pod *corev1.Pod) bool {
	return pod != nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

// checkNewPod holds whenever a pod is created.
func (w *world) checkNewPod(pod *corev1.Pod) {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm != nil && len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID && !slices.Contains(vm.Finalizers, names.FinalizerMachine) {
		w.violated("a machine with a pod is held", "%v", vm.Finalizers)
	}
	for _, name := range w.missing(pod) {
		// Somebody may have deleted it, which the operator has not seen: then the pod
		// waits.
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
	// What the operator saw of the specification when it noted the end may be older.
	if last != nil && last.failed && vm != nil && vm.Generation == last.generation && w.now.Sub(last.at) < 9*time.Second &&
		(vm.Status.LastEnd == nil || vm.Status.LastEnd.ObservedGeneration == vm.Generation) {
		w.violated("a failed machine is started again after a delay", "%v after the end", w.now.Sub(last.at))
	}
}

// missing are the claims that a pod names and that are not there.
func (w *world) missing(pod *corev1.Pod) []string {
	return slices.DeleteFunc(objects.PodClaims(pod), func(name string) bool {
		return name == names.ImageRepositoryClaim || get[*corev1.PersistentVolumeClaim](w, "claim/"+name) != nil
	})
}

// checkOrigin holds whenever a claim is changed.
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

// checkTakeOver holds whenever a pod is to be created: what is root in it is there
// for the files of VM-Operator's runner, until they were given away.
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

// checkApply holds whenever an object is written over another.
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
			continue // what a runner should have reported
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

// checkPhase holds for every report of a phase: between two pods, as during a restart
// or while something is missing, a machine that should run is never called stopped, and
// one that should not is never called anything else than stopped or about to.
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
			vm.Spec.VM.State = spec.StateStopped // the one thing that the operator writes there
		}
	}
	phase := st.Status["phase"].(string)
	if phase == spec.PhaseUnknown || phase == spec.PhaseStopping {
		return // the guest may execute; in the end of a restart as well
	}
	if (phase == spec.PhaseStopped) == vm.ShouldRun() {
		w.violated("a phase says what is wanted", "%s of a machine that should run: %v", phase, vm.ShouldRun())
	}
}

// settle lets the world be kind until nothing happens any more, and checks that
// then all is as wanted.
func (w *world) settle() {
	const rounds = 60
	for _, n := range []string{"n1", "n2"} {
		w.repair(n)
	}
	if pod := get[*corev1.Pod](w, "pod/intruder"); pod != nil {
		delete(w.guests, pod.UID)
		w.put("pod/intruder", nil)
	}
	w.settleDeletion()
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		w.createVM()
		vm = get[*spec.VirtualMachine](w, theVM)
	}
	vm.Spec.VM.CPUModel = "host"
	if w.policies && w.choose("changes at last", 4) == 1 {
		vm.Spec.VM.MaximumCPUs = new(int32(9))
	}
	vm.Generation++
	w.put(theVM, vm)
	if w.policies && get[*corev1.Secret](w, "provisioning/web-init") != nil && w.choose("Secret is away", 2) == 1 {
		w.put("provisioning/web-init", nil)
		w.note("the Secret is away for a while")
		for range 3 {
			w.work()
			w.pass(time.Second)
		}
		vm = get[*spec.VirtualMachine](w, theVM)
	}
	w.provide(vm)
	if w.choose("drift", 4) == 1 {
		w.work()
		w.drift()
	}
	quiet := 0
	told := map[string]int{}
	entered, phase := map[string]int{}, vm.Status.Phase
	for range rounds {
		w.operations++
		w.wantNewDisks()
		w.observeAll()
		p := w.reconcile(false)
		w.check()
		if is := get[*spec.VirtualMachine](w, theVM).Status.Phase; is != phase {
			phase = is
			// A start, and one more: for what has changed while the first was under way.
			if entered[phase]++; entered[phase] > 2 {
				w.violated("phases do not flicker", "%v", entered)
			}
		}
		for _, e := range p.Events {
			told[e.String()]++
			if told[e.String()] > 1 {
				w.violated("an event is told once", "%s", e)
			}
		}
		before := w.serial
		w.controllers()
		for _, k := range w.keys("pod/") {
			if pod := get[*corev1.Pod](w, k); pod != nil {
				g := w.guests[pod.UID]
				w.tend(pod, goodWay)
				if w.nodes != nil && g != nil {
					w.follow(pod, g)
				}
				if g != nil && (g.stage < 2 || !g.told) {
					g.stage = 2 // the last report gets through
					w.runnerReports(g)
				}
			}
		}
		w.check()
		if w.serial == before && len(p.Actions) == 0 && len(p.Statuses) == 0 && len(p.Events) == 0 && p.Wake.IsZero() {
			if quiet++; quiet == 2 {
				w.checkSettled()
				return
			}
			continue
		}
		quiet = 0
		if p.Wake.After(w.now) {
			w.pass(p.Wake.Sub(w.now))
		} else {
			w.pass(time.Second)
		}
	}
	s, _ := w.snapshot()
	w.violated("the world comes to rest", "after %d rounds there is still %+v", rounds, w.decide(s))
}

// settleDeletion lets a machine go that somebody has deleted.
func (w *world) settleDeletion() {
	for range 30 {
		if vm := get[*spec.VirtualMachine](w, theVM); vm == nil || vm.DeletionTimestamp == nil {
			return
		}
		w.observeAll()
		w.reconcile(false)
		w.check()
		w.controllers()
		for _, k := range w.keys("pod/") {
			if pod := get[*corev1.Pod](w, k); pod != nil {
				w.tend(pod, goodWay)
			}
		}
		// What was refused is tried again.
		w.pass(6 * time.Minute)
	}
	w.violated("a machine that is deleted goes", "%+v", get[*spec.VirtualMachine](w, theVM).ObjectMeta)
}

// changed reports whether a pod was made for another machine than it is now.
func (w *world) changed(pod *corev1.Pod, vm *spec.VirtualMachine) bool {
	return w.made[pod.UID] != madeFor(vm)
}

// madeFor is what of a machine of newWorld may change and waits for a restart
// then, without the size of its disk: one that would shrink waits for nothing.
func madeFor(vm *spec.VirtualMachine) string {
	if vm.Spec.VM.MaximumCPUs == nil {
		return "" // a machine of another test
	}
	// A person may lower the maximum below what the guest has: [spec.Amend] raises it.
	return fmt.Sprint(max(*vm.Spec.VM.MaximumCPUs, changes.CurrentCPUs(&vm.Spec.VM)), vm.Spec.VM.CPUModel)
}

// startable reports whether a next pod could have its claims.
func (w *world) startable() bool {
	for _, k := range w.keys("claim/") {
		if c := get[*corev1.PersistentVolumeClaim](w, k); c == nil || c.DeletionTimestamp != nil || c.Status.Phase == corev1.ClaimLost {
			return false
		}
	}
	return true
}

// checkSettled is what must hold when nothing happens any more.
func (w *world) checkSettled() {
	vm, pod := get[*spec.VirtualMachine](w, theVM), w.machinesPod()
	cm := get[*corev1.ConfigMap](w, theConfig)
	s := &vm.Status
	if w.classes {
		w.checkClassSettled(vm, pod)
		return
	}
	w.checkPower(vm)
	if vm.ShouldRun() {
		if pod == nil || w.guests[pod.UID] == nil {
			w.violated("what is wanted is reached", "the machine should run: %+v", s.Conditions)
		}
		if s.Phase != spec.PhaseRunning || !s.Created || !s.Ready || s.NodeName != pod.Spec.NodeName {
			w.violated("the status is true", "the machine runs: %+v", s)
		}
		if pod.Annotations[names.AnnotationConfigVersion] != cm.ResourceVersion {
			w.violated("the kubelet is told of changes", "%v", pod.Annotations)
		}
		w.checkPods(vm)
		w.checkNoted(vm, pod)
		w.checkPassedOn(vm, pod)
		if owner := pod.Annotations[names.AnnotationDataOwner]; owner != "" && cm.Annotations[names.AnnotationDataOwner] != owner {
			w.violated("what was given away is remembered", "%v", cm.Annotations)
		}
	} else {
		if pod != nil {
			w.violated("what is wanted is reached", "the machine should not run")
		}
		if s.Phase != spec.PhaseStopped || s.Created || s.Ready || s.NodeName != "" || spec.ConditionIsTrue(s.Conditions, spec.ConditionRunning) || s.CPUs != 0 {
			w.violated("the status is true", "the machine is stopped: %+v", s)
		}
	}
	for _, t := range append(spec.ConditionTypes(), spec.OperatorConditionTypes()...) {
		if spec.FindCondition(s.Conditions, t) == nil && t != spec.ConditionVirtualMachineClassReady && t != spec.ConditionSizingPolicyMatched {
			w.violated("all conditions are present", "%s is missing", t)
		}
	}
	if got, want := cm.Annotations[names.AnnotationResetRequest], vm.Annotations[names.AnnotationResetRequest]; want != "" && got != want {
		w.violated("a reset is not lost", "%q was asked for, and %q counted", want, got)
	}
	// What waits for a restart is what the pod was not made with, and then a reset
	// by the guest is one.
	if ends := strings.Contains(cm.Data[names.ConfigKey], "guestResetEnds: true"); vm.ShouldRun() &&
		(ends != (len(s.RestartAwaitingChanges) > 0 && w.startable() && !w.short(vm)) || w.changed(pod, vm) && w.startable() && !w.short(vm) && !ends) {
		w.violated("a reset by the guest applies what waits", "these wait: %v; a reset ends the machine: %v", s.RestartAwaitingChanges, ends)
	}
	if vm.Spec.RestartsAutomatically() && len(s.RestartAwaitingChanges) > 0 && vm.ShouldRun() && w.startable() && !w.short(vm) {
		w.violated("changes that need no approval do not wait", "%v", s.RestartAwaitingChanges)
	}
	if cm.Data[names.ConfigKey] == "drift" {
		w.violated("what is wanted is reached", "the configuration was changed by somebody else")
	}
	lb := get[*corev1.Service](w, theLB)
	if (lb != nil) != (w.settings.LoadBalancer != nil) || lb != nil && len(lb.Spec.Ports) != 1 {
		w.violated("what is wanted is reached", "the load balancer is %v", lb)
	}
	if waiting := spec.ConditionIsTrue(s.Conditions, spec.ConditionAwaitingRestart); waiting != (len(s.RestartAwaitingChanges) > 0) {
		w.violated("the status is true", "waiting is %v for %v", waiting, s.RestartAwaitingChanges)
	}
}
