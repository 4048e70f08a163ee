package operationtest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

type state struct {
	vms  map[string]*spec.VirtualMachine
	pods map[string]*corev1.Pod
	ops  map[string]*spec.VirtualMachineOperation
}

// copied shares the objects, which are never modified.
func (s *state) copied() state {
	return state{maps.Clone(s.vms), maps.Clone(s.pods), maps.Clone(s.ops)}
}

// world has machines, operations on them, their operator, and other clients. A machine answers
// requests by its run policy, and otherwise advances at any time.
type world struct {
	promises.World[operation.Snapshot]
	truth   state
	cache   state
	cleanup operation.Cleanup
	// machines are the keys of machines that may exist.
	machines []string
	// stale: caches may lack the operator's own writes, as after a restart.
	stale bool
	// wrote are the versions that the caches of this operator must show.
	wrote map[string]int

	// signals counts the requests to a machine for an operation, by UID; others the requests by
	// other clients.
	signals map[types.UID]int
	others  map[string]int
	// forbidden are the machines whose writes the API server refuses, failures those refusals,
	// and refusals their number.
	forbidden map[string]bool
	// held is the reason why a machine runs on that is told to restart.
	held     map[string]string
	failures map[string]reconcile.Failure
	// machineOf returns the machine that an operation is observed to be of.
	machineOf func(*spec.VirtualMachineOperation) string
	refusals  int
	since     map[types.UID]int
}

func newWorld() *world {
	empty := state{map[string]*spec.VirtualMachine{}, map[string]*corev1.Pod{}, map[string]*spec.VirtualMachineOperation{}}
	return &world{
		World: promises.World[operation.Snapshot]{Decide: operation.Decide, Now: noon}, truth: empty, cache: empty.copied(), wrote: map[string]int{},
		signals: map[types.UID]int{}, others: map[string]int{}, since: map[types.UID]int{},
		forbidden: map[string]bool{}, held: map[string]string{}, failures: map[string]reconcile.Failure{}, machineOf: machineOf,
	}
}

// home is the namespace of objects keyed by name alone; others have keys NAMESPACE/NAME.
const home = "lab"

func called(namespace, name string) string {
	if namespace == home {
		return name
	}
	return namespace + "/" + name
}

func meant(key string) (namespace, name string) {
	if namespace, name, elsewhere := strings.Cut(key, "/"); elsewhere {
		return namespace, name
	}
	return home, key
}

func neighbour(of, name string) string {
	namespace, _ := meant(of)
	return called(namespace, name)
}

func machineOf(o *spec.VirtualMachineOperation) string {
	return called(o.Namespace, o.Spec.VirtualMachineName)
}

func (w *world) addMachine(key string, policy spec.RunPolicy, phase string) *spec.VirtualMachine {
	namespace, name := meant(key)
	vm := spec.NewVirtualMachine(namespace, name)
	vm.UID, vm.Generation, vm.ResourceVersion = types.UID("m"+w.Version()), 1, w.Version()
	vm.Spec.RunPolicy, vm.Spec.VM.State = policy, spec.StateStopped
	timeout := int32(30)
	vm.Spec.VM.PowerdownTimeout = &timeout
	vm.Status.Phase = phase
	if phase != "" {
		w.answer(vm)
	}
	w.truth.vms[key] = vm
	return vm
}

func (w *world) update(name string, change func(*spec.VirtualMachine)) {
	vm := w.truth.vms[name].DeepCopy()
	before := vm.Spec.DeepCopy()
	change(vm)
	if !reflect.DeepEqual(before, &vm.Spec) {
		vm.Generation++
	}
	vm.ResourceVersion = w.Version()
	w.truth.vms[name] = vm
}

// answer models the operator's machine controller.
func (w *world) answer(vm *spec.VirtualMachine) {
	vm.Status.ObservedGeneration = vm.Generation
	if vm.Spec.RunPolicy == "" {
		return
	}
	request := vm.Annotations[names.AnnotationPowerRequest]
	p := spec.Power{State: spec.StateStopped}
	if vm.Status.Power != nil {
		p = *vm.Status.Power
	}
	p.Policy, p.Reason = vm.Spec.RunPolicy, spec.PowerPolicy
	if request != p.Request {
		switch verb, _, _ := strings.Cut(request, " "); machine.Verb(verb) {
		case machine.VerbStart:
			p.State, p.Reason = spec.StateRunning, spec.PowerRequested
		case machine.VerbStop:
			p.State, p.Reason = spec.StateStopped, spec.PowerRequested
		}
	}
	switch p.Policy {
	case spec.RunPolicyAlwaysOn:
		p.State = spec.StateRunning
	case spec.RunPolicyAlwaysOff:
		p.State = spec.StateStopped
	}
	p.Request = request
	vm.Status.Power = &p
}

func (w *world) proceeds(name string) {
	vm := w.truth.vms[name]
	if vm == nil {
		return
	}
	pod := w.truth.pods[name]
	w.update(name, func(vm *spec.VirtualMachine) {
		w.answer(vm)
		on, request := vm.ShouldRun(), vm.Annotations[names.AnnotationPowerRequest]
		restarts := strings.HasPrefix(request, "restart ") && pod != nil && pod.Annotations[names.AnnotationPowerRequest] != request
		held := restarts && on && pod.DeletionTimestamp == nil && w.held[name] != ""
		w.tellsHeld(vm, held)
		switch {
		case held:
			vm.Status.Phase = spec.PhaseRunning
		case pod == nil && on && vm.DeletionTimestamp == nil && vm.Status.Phase != spec.PhaseStarting:
			vm.Status.Phase = spec.PhaseStarting
			w.truth.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: vm.Name, UID: types.UID("p" + w.Version()), ResourceVersion: w.Version(), Annotations: map[string]string{names.AnnotationPowerRequest: request}}}
		case pod == nil && on:
			vm.Status.Phase = spec.PhasePending
		case pod == nil:
			vm.Status.Phase = spec.PhaseStopped
		case pod.DeletionTimestamp != nil && vm.Status.Phase == spec.PhaseStopping:
			if vm.Status.Phase = spec.PhaseStopped; on {
				vm.Status.Phase = spec.PhasePending
			}
			delete(w.truth.pods, name)
		case pod.DeletionTimestamp != nil:
			vm.Status.Phase = spec.PhaseStopping
		case !on || restarts:
			going := pod.DeepCopy()
			going.DeletionTimestamp, going.ResourceVersion = &metav1.Time{Time: w.Now}, w.Version()
			w.truth.pods[name] = going
			vm.Status.Phase = spec.PhaseStopping
		default:
			vm.Status.Phase = spec.PhaseRunning
		}
	})
	w.Note("machine %s: %s", name, w.truth.vms[name].Status.Phase)
}

// tellsHeld has a machine tell why it does not restart, or that nothing keeps it from that.
func (w *world) tellsHeld(vm *spec.VirtualMachine, held bool) {
	c := spec.Condition{Type: conditions.PodReady, Status: metav1.ConditionTrue, Reason: conditions.ReasonPodRunning, Message: "the pod runs"}
	if held {
		c.Reason = w.held[called(vm.Namespace, vm.Name)]
		c.Message = "the restart that was asked for waits: claim " + vm.Name + "-system-disk is deleted with its data once no pod uses it"
	}
	vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, c)
}

func (w *world) addOperation(name, vm string, t spec.OperationType, force bool) *spec.VirtualMachineOperation {
	namespace, machine := meant(vm)
	o := spec.NewOperation(namespace, machine, t)
	o.Name, o.UID, o.Generation, o.ResourceVersion = name, types.UID("o"+w.Version()), 1, w.Version()
	o.Spec.Force = force
	o.CreationTimestamp = metav1.NewTime(w.Now.Truncate(time.Second))
	w.truth.ops[called(namespace, name)] = o
	w.Note("%s: %s of %s, force %t", called(namespace, name), t, vm, force)
	return o
}

func (w *world) deleteOperation(name string) {
	o := w.truth.ops[name].DeepCopy()
	if len(o.Finalizers) == 0 {
		delete(w.truth.ops, name)
		w.Note("%s is deleted", name)
		return
	}
	if o.DeletionTimestamp == nil {
		o.DeletionTimestamp, o.ResourceVersion = &metav1.Time{Time: w.Now}, w.Version()
		o.Generation++
		w.truth.ops[name] = o
		w.Note("%s is being deleted", name)
	}
}

func (w *world) see(which int) {
	c := w.truth.copied()
	switch which {
	case 0:
		w.cache.vms = c.vms
	case 1:
		w.cache.pods = c.pods
	case 2:
		w.cache.ops = c.ops
	default:
		w.cache = c
	}
}

func (w *world) behind() bool {
	for key, version := range w.wrote {
		kind, name, _ := strings.Cut(key, "/")
		var o metav1.Object
		switch kind {
		case names.KindOperation:
			if c := w.cache.ops[name]; c != nil {
				o = c
			} else if w.truth.ops[name] == nil {
				continue
			}
		default:
			if c := w.cache.vms[name]; c != nil {
				o = c
			} else if w.truth.vms[name] == nil {
				continue
			}
		}
		if o == nil {
			return true
		}
		if v, _ := strconv.Atoi(o.GetResourceVersion()); v < version {
			return true
		}
	}
	return false
}

func (w *world) snapshot(name string) operation.Snapshot {
	s := operation.Snapshot{Machine: w.cache.vms[name], Pod: w.cache.pods[name], Cleanup: w.cleanup, Now: w.Now}
	for _, key := range slices.Sorted(maps.Keys(w.cache.ops)) {
		if o := w.cache.ops[key]; w.machineOf(o) == name {
			s.Operations = append(s.Operations, *o)
		}
	}
	if operation.NeedsFresh(s) {
		s.Machine, s.Fresh = w.truth.vms[name], true
	}
	if f, refused := w.failures[name]; refused {
		s.Failures = append(s.Failures, f)
	}
	return s
}

func (w *world) refuses(of string, a reconcile.Action) bool {
	t := a.Target()
	if t.Kind != names.KindVirtualMachine {
		return false
	}
	if !w.forbidden[of] {
		delete(w.failures, of)
		return false
	}
	w.refusals++
	w.failures[of] = reconcile.Failure{Target: t, Reason: "Forbidden", Message: "a policy forbids it", Count: w.failures[of].Count + 1, Last: w.Now}
	w.Note("refused: %s", t)
	return true
}

// reconcile decides about the operations of a machine and executes the first writes of the plan:
// all of them if most is negative.
func (w *world) reconcile(name string, most int) reconcile.Plan {
	if !w.stale && w.behind() {
		return reconcile.Plan{}
	}
	s := w.snapshot(name)
	before, _ := json.Marshal(s)
	plan := w.Decide(s)
	if again := w.Decide(s); !reflect.DeepEqual(plan, again) {
		w.Violated("equal snapshots give equal plans", "two plans for one snapshot:\n%+v\n%+v", plan, again)
	}
	if after, _ := json.Marshal(s); string(before) != string(after) {
		w.Violated("a snapshot is not changed", "it has")
	}
	for i, a := range plan.Actions {
		if i == most {
			w.Note("the operator dies")
		}
		if i == most || !w.carriesOut(name, a) {
			plan.Events = nil // emitted only after a complete plan
			break
		}
	}
	return plan
}

func (w *world) carriesOut(of string, a reconcile.Action) bool {
	if w.refuses(of, a) {
		return false
	}
	taken := w.execute(of, a)
	if !taken {
		w.Note("conflict: %s", a.Target())
	}
	return taken
}

func (w *world) execute(of string, a reconcile.Action) bool {
	key := neighbour(of, a.Target().Name)
	switch a := a.(type) {
	case reconcile.SetFinalizers:
		o := w.truth.ops[key]
		if o == nil {
			return true
		}
		if o.UID != a.UID || o.ResourceVersion != a.ResourceVersion {
			return false
		}
		o = o.DeepCopy()
		o.Finalizers, o.ResourceVersion = a.Finalizers, w.Version()
		if w.truth.ops[key] = o; o.DeletionTimestamp != nil && len(o.Finalizers) == 0 {
			delete(w.truth.ops, key)
		}
		w.wrote[names.KindOperation+"/"+key] = w.Serial
		w.Note("%s: finalizers %v", a.Name, a.Finalizers)
		return true
	case reconcile.DeleteOperation:
		o := w.truth.ops[key]
		if o == nil {
			return true
		}
		if o.UID != a.UID || o.ResourceVersion != a.ResourceVersion {
			return false
		}
		w.mayCleanUp(of, o)
		delete(w.truth.ops, key)
		w.Note("%s is cleaned up", a.Name)
		return true
	case reconcile.Patch:
		if a.Kind == names.KindOperation {
			return w.patchOperation(of, a)
		}
		return w.patchMachine(of, a)
	}
	w.Violated("nothing else is written", "%s", a.Target())
	return false
}

func (w *world) patchOperation(of string, a reconcile.Patch) bool {
	key := neighbour(of, a.Name)
	o := w.truth.ops[key]
	if o == nil || o.UID != a.UID || o.ResourceVersion != a.ResourceVersion {
		return false
	}
	if machineOf(o) != of || a.Subresource != "status" {
		w.Violated("the status of the machine's own operations is written", "operation %s is none of machine %s", a.Name, of)
	}
	next := merged(o, a.Body())
	next.ObjectMeta = *o.ObjectMeta.DeepCopy()
	w.checkStatus(o, next)
	if !reflect.DeepEqual(o, next) {
		next.ResourceVersion = w.Version()
		w.wrote[names.KindOperation+"/"+key] = w.Serial
	}
	w.truth.ops[key] = next
	w.Note("%s: %s %s", a.Name, next.Status.Phase, reasonOf(next))
	return true
}

func (w *world) patchMachine(of string, a reconcile.Patch) bool {
	vm := w.truth.vms[of]
	if neighbour(of, a.Name) != of || a.Subresource != "" {
		w.Violated("a machine is told itself", "%s is none of the operations of %s", a.Target(), of)
	}
	if vm == nil || vm.UID != a.UID || vm.ResourceVersion != a.ResourceVersion {
		return false
	}
	for key := range a.Annotations {
		if key != names.AnnotationPowerRequest && key != names.AnnotationForceStop {
			w.Violated("a machine gets requests and a state, and nothing else", "annotation %s is written", key)
		}
	}
	next := merged(vm, a.Body())
	was := vm.Spec.DeepCopy()
	if was.VM.State = next.Spec.VM.State; !reflect.DeepEqual(was, &next.Spec) {
		w.Violated("a machine gets requests and a state, and nothing else", "the specification of machine %s has changed by more than its state", of)
	}
	if !reflect.DeepEqual(vm.Spec, next.Spec) {
		next.Generation++
	}
	next.ResourceVersion = w.Version()
	w.wrote[names.KindVirtualMachine+"/"+of] = w.Serial
	w.truth.vms[of] = next
	request, _ := a.Annotations[names.AnnotationPowerRequest].(string)
	w.Note("machine %s is told %q", of, request)
	if request != "" {
		w.signalled(of, request)
	}
	return true
}

// signalled verifies that a machine gets the request of the operation in progress, once.
func (w *world) signalled(of, request string) {
	_, uid, _ := strings.Cut(request, " operation/")
	for _, o := range w.truth.ops {
		if string(o.UID) != uid {
			continue
		}
		switch st := &o.Status; {
		case st.Phase != spec.OperationInProgress:
			w.Violated("a machine is told of what is in progress", "machine %s is told of %s, which is %s", of, o.Name, st.Phase)
		case spec.ConditionIsTrue(st.Conditions, conditions.SignalSent):
			w.Violated("a machine is told once", "machine %s is told of %s again", of, o.Name)
		case st.Deadline == nil || !w.Now.Before(st.Deadline.Time):
			w.Violated("a machine is told in time", "machine %s is told of %s after its time", of, o.Name)
		case o.Generation != 1 && o.DeletionTimestamp == nil:
			w.Violated("what was changed is not carried out", "machine %s is told of %s, which was changed", of, o.Name)
		}
		if w.signals[o.UID]++; w.signals[o.UID] > 1 && w.others[of] == w.since[o.UID] {
			w.Violated("a machine is told once", "machine %s is told of %s twice", of, o.Name)
		}
		w.since[o.UID] = w.others[of]
		return
	}
	w.Violated("a request names its operation", "machine %s is told %q, which no operation asks for", of, request)
}

func (w *world) checkStatus(was, is *spec.VirtualMachineOperation) {
	rank := map[spec.OperationPhase]int{
		"": 0, spec.OperationPending: 1, spec.OperationInProgress: 2, spec.OperationCompleted: 3, spec.OperationFailed: 3, spec.OperationSuperseded: 3, spec.OperationTerminating: 4,
	}
	a, b := &was.Status, &is.Status
	switch {
	case rank[b.Phase] == 0, rank[b.Phase] < rank[a.Phase], a.Phase.Finished() && !reflect.DeepEqual(a, b):
		w.Violated("phases come in their order", "%s goes from %s to %s", was.Name, a.Phase, b.Phase)
	case b.Phase == spec.OperationInProgress && (b.Deadline == nil || b.StartTime == nil || b.Request == "" || b.VirtualMachineUID == "" || a.Deadline != nil && !a.Deadline.Equal(b.Deadline)):
		w.Violated("what is in progress says since when, until when and of what", "%s is in progress with status %+v", was.Name, *b)
	case b.Phase.Finished() && b.CompletionTime == nil:
		w.Violated("what has ended says when", "%s has ended and does not say when", was.Name)
	case b.Phase == spec.OperationFailed && spec.FindCondition(b.Conditions, conditions.Completed).Message == "":
		w.Violated("what has failed says why", "%s has failed and does not say why", was.Name)
	}
	for i := range b.Conditions {
		if m := b.Conditions[i].Message; len(m) > conditions.Line {
			w.Violated("a message is one line", "%d bytes: %s", len(m), m)
		}
	}
	if b.Phase == spec.OperationFailed && b.StartTime == nil && w.signals[is.UID] > 0 {
		w.Violated("what was refused has changed nothing", "%s was refused, and its machine was told", is.Name)
	}
	if !w.stale && b.Phase == spec.OperationInProgress {
		for _, o := range w.truth.ops {
			if o.UID != is.UID && machineOf(o) == machineOf(is) && o.Status.Phase == spec.OperationInProgress {
				w.Violated("one operation of a machine is in progress", "%s and %s are both in progress", o.Name, is.Name)
			}
		}
	}
	if a.Phase != b.Phase && b.Phase == spec.OperationCompleted {
		w.checkDone(is)
	}
}

// checkDone verifies that a completed operation was carried out, for machines without other
// requests.
func (w *world) checkDone(o *spec.VirtualMachineOperation) {
	name := machineOf(o)
	if o.Generation != 1 {
		w.Violated("what was changed is not carried out", "%s is done, which was changed", o.Name)
	}
	if w.signals[o.UID] == 0 {
		w.Violated("what is done was asked of the machine", "%s is done, and machine %s was not told", o.Name, name)
	}
	if pod := w.truth.pods[name]; o.Spec.Type == spec.OperationRestart && pod != nil && pod.UID == o.Status.PodUID && pod.DeletionTimestamp == nil && w.others[name] == w.since[o.UID] {
		w.Violated("a restart is a new pod", "%s is done, and machine %s has the same pod", o.Name, name)
	}
}

// checkHeld verifies, when nothing is left to do, what is in progress on a machine that does not
// restart.
func (w *world) checkHeld(name string) {
	vm, pod := w.truth.vms[name], w.truth.pods[name]
	for _, o := range w.truth.ops {
		if machineOf(o) != name || vm == nil || vm.UID != o.Status.VirtualMachineUID || o.Status.Phase != spec.OperationInProgress || o.DeletionTimestamp != nil ||
			!spec.ConditionIsTrue(o.Status.Conditions, conditions.SignalSent) || o.Spec.Type != spec.OperationRestart || pod == nil || pod.UID != o.Status.PodUID {
			continue
		}
		c := spec.FindCondition(vm.Status.Conditions, conditions.PodReady)
		if c == nil || c.Reason != conditions.ReasonRestartPending && c.Reason != conditions.ReasonRestartBlocked {
			continue
		}
		if said := spec.FindCondition(o.Status.Conditions, conditions.Completed).Message; said != "the restart waits: "+strings.TrimPrefix(c.Message, "the restart that was asked for waits: ") {
			w.Violated("a restart that does not begin says why", "%s: %s", o.Name, said)
		}
		if c.Reason == conditions.ReasonRestartBlocked && w.Now.Sub(o.Status.StartTime.Time) >= time.Minute {
			w.Violated("a restart that cannot begin ends soon", "%s is in progress since %s", o.Name, o.Status.StartTime)
		}
	}
}

func (w *world) mayCleanUp(of string, o *spec.VirtualMachineOperation) {
	if machineOf(o) != of || !o.Status.Phase.Finished() {
		w.Violated("only what has ended is cleaned up", "%s (%s) of %s is cleaned up for machine %s", o.Name, o.Status.Phase, machineOf(o), of)
	}
	// Operations deleted meanwhile may have been counted.
	known := maps.Clone(w.cache.ops)
	maps.Copy(known, w.truth.ops)
	newer := 0
	for _, other := range known {
		if machineOf(other) == of && other.Status.Phase.Finished() && !other.Status.CompletionTime.Before(o.Status.CompletionTime) && other.UID != o.UID {
			newer++
		}
	}
	keep, age := w.cleanup.Keep, w.cleanup.For
	if newer < keep && w.Now.Before(o.Status.CompletionTime.Add(age)) {
		w.Violated("what is new is not cleaned up", "%s is cleaned up, which is one of the newest %d, after %v", o.Name, keep, w.Now.Sub(o.Status.CompletionTime.Time))
	}
}

func reasonOf(o *spec.VirtualMachineOperation) string {
	if c := spec.FindCondition(o.Status.Conditions, conditions.Completed); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

func merged[T any](o *T, body map[string]any) *T {
	var tree, patch map[string]any
	for from, into := range map[any]*map[string]any{o: &tree, &body: &patch} {
		data, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			panic(err)
		}
	}
	data, err := json.Marshal(mergeInto(tree, patch))
	out := new(T)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// mergeInto is RFC 7396.
func mergeInto(into, patch map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(into, k)
		case map[string]any:
			child, _ := into[k].(map[string]any)
			into[k] = mergeInto(child, v)
		default:
			into[k] = v
		}
	}
	return into
}

func choose[T any](w *world, label string, from ...T) T { return from[w.Draw(label, len(from))] }

func deletes(actions []reconcile.Action) bool {
	return slices.ContainsFunc(actions, func(a reconcile.Action) bool { _, is := a.(reconcile.DeleteOperation); return is })
}

// settled adds a machine that has been in a phase for long.
func (w *world) settled(name string, policy spec.RunPolicy, phase string) {
	w.addMachine(name, policy, phase)
	on := phase != spec.PhaseStopped && phase != spec.PhaseStopping
	if on || phase == spec.PhaseStopping {
		_, own := meant(name)
		w.truth.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: own, UID: "pod-before"}}
	}
	w.update(name, func(vm *spec.VirtualMachine) {
		if on {
			vm.Spec.VM.State = spec.StateRunning
			if vm.Status.Power != nil {
				vm.Status.Power.State = spec.StateRunning
			}
		}
		vm.Status.ObservedGeneration = 2
	})
	w.see(3)
}
