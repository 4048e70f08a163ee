package machinetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// anyWorld is a world in which something has happened to a machine whose guest
// decides when it stops.
func anyWorld(t *rapid.T) *world {
	w := newWorld(func(what string, n int) int {
		if n < 2 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(t, what)
	}, machine.Decide)
	if vm := get[*spec.VirtualMachine](w, theVM); vm != nil {
		vm.Spec.GuestShutdownStops = true
		w.put(theVM, vm)
	}
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		w.step()
	}
	w.observeAll()
	return w
}

// anyStatus draws a status that says whatever would matter, about the pod that
// there is and others.
func anyStatus(t *rapid.T, s *machine.Snapshot) spec.VirtualMachineStatus {
	one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	at := func(what string) metav1.Time {
		return metav1.NewTime(s.Now.Add(time.Duration(rapid.IntRange(-90000, 90000).Draw(t, what)) * time.Second))
	}
	uids := []types.UID{"", "another"}
	if s.Pod() != nil {
		uids = append(uids, s.Pod().UID)
	}
	generation := func(what string) int64 { return s.VM.Generation + int64(rapid.IntRange(-1, 1).Draw(t, what)) }
	out := spec.VirtualMachineStatus{
		Phase: one("phase", "", spec.PhaseRunning, spec.PhaseStopped, spec.PhaseStopping), Created: rapid.Bool().Draw(t, "created"),
		Ready: rapid.Bool().Draw(t, "ready"), NodeName: one("node", "", "n1", "n9"), IPAddress: one("address", "", "10.0.0.9"),
		ObservedGeneration: generation("observed"),
		CPUs:               int32(rapid.IntRange(0, 8).Draw(t, "cpus")), GuestPanics: int64(rapid.IntRange(0, 3).Draw(t, "panics")), RunnerVersion: one("runner", "", "1"),
		Accelerator:  one("accelerator", "", "kvm", "tcg"),
		ConsoleUser:  one("console user", "", "ann"),
		LoggedInUser: one("logged in", "", "ann"), HostName: one("host", "", "h"),
	}
	if rapid.Bool().Draw(t, "has ram") {
		q := resource.MustParse(one("ram", "0", "1Gi", "3Gi"))
		out.RAM = &q
	}
	if rapid.Bool().Draw(t, "has groups") {
		out.DeviceGroups = []int64{int64(rapid.IntRange(0, 9).Draw(t, "group"))}
	}
	if rapid.Bool().Draw(t, "has changed documents") {
		out.ChangedDocuments = []spec.ChangedDocument{{Name: one("document", spec.DocumentUserData, spec.DocumentMetaData, spec.DocumentNetworkConfig), Missing: rapid.Bool().Draw(t, "missing")}}
	}
	if rapid.Bool().Draw(t, "has an end") {
		out.LastEnd = &spec.MachineEnd{
			PodUID:  rapid.SampledFrom(uids).Draw(t, "pod"),
			Cause:   one("cause", string(runnerconfig.CauseGuestShutdown), string(runnerconfig.CauseGuestReset), "qemu-failure"),
			Message: "it says so", Time: at("end"), ObservedGeneration: generation("end of"), Failures: int32(rapid.IntRange(0, 9).Draw(t, "failures")),
		}
	}
	if rapid.Bool().Draw(t, "has pods") {
		out.VirtualMachinePods = []spec.VirtualMachinePod{{Name: one("name of a pod", "web", "web-1"), UID: rapid.SampledFrom(uids).Draw(t, "pod of it"), Active: rapid.Bool().Draw(t, "active")}}
	}
	if rapid.Bool().Draw(t, "is assigned") {
		out.Assignment = &spec.Assignment{Pool: "desks", User: "ann", LastUsed: "2026-01-01T00:00:00Z"}
	}
	for _, c := range slices.Concat(spec.ConditionTypes(), spec.OperatorConditionTypes()) {
		if rapid.Bool().Draw(t, c) {
			out.Conditions = append(out.Conditions, spec.Condition{
				Type: c, Status: metav1.ConditionStatus(one("status", "True", "False", "Unknown")),
				Reason:  one("reason", spec.ReasonVMStarted, spec.ReasonVMStopped, spec.ReasonCreation, spec.ReasonNodeLost, "PodFinished"),
				Message: "so", LastTransitionTime: at("transition"), ObservedGeneration: generation("condition of"),
			})
		}
	}
	if rapid.Bool().Draw(t, "waits") {
		out.Waits = []spec.Wait{{Condition: spec.ConditionPodReady, Reason: "PodNotStarted", Object: "Pod web", Since: at("wait"), Told: rapid.Bool().Draw(t, "told")}}
	}
	return out
}

// specWrites are the writes of a plan to the specification of a machine.
func specWrites(p reconcile.Plan) (out []reconcile.Action) {
	for _, a := range p.Actions {
		if patch, is := a.(reconcile.Patch); is && patch.Subresource == "" {
			out = append(out, patch)
		}
		if apply, is := a.(reconcile.Apply); is && apply.Object.GetObjectKind().GroupVersionKind().Group == names.Group {
			out = append(out, apply)
		}
	}
	return out
}

// Whatever a status says, it makes no write to a specification. There is one such
// write, spec.vm.state for a guest that powered itself off, and it is the machine's
// own pod that must say that it did: one that has ended, and with that very cause.
func TestNothingInAStatusBecomesAWriteToASpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		s, there := w.snapshot()
		if !there || s.VM == nil {
			return
		}
		if s.Pod() != nil && rapid.Bool().Draw(t, "the pod is gone") {
			setPod(&s, nil)
		}
		vm := s.VM.DeepCopy()
		vm.Status = anyStatus(t, &s)
		s.VM = vm
		writes := specWrites(machine.Decide(s))
		if len(writes) == 0 {
			return
		}
		if want := map[string]any{"spec": map[string]any{"vm": map[string]any{"state": "Stopped"}}}; len(writes) > 1 || !reflect.DeepEqual(writes[0].(reconcile.Patch).Fields, want) {
			t.Fatalf("%+v", writes)
		}
		if !saysPoweredOff(s.Pod(), vm) || !vm.Spec.GuestShutdownStops || vm.Spec.VM.State != spec.StateRunning {
			data, _ := json.Marshal(vm.Status)
			t.Fatalf("%+v because of the status %s", writes, data)
		}
	})
}

// saysPoweredOff reports whether a pod of the machine has ended because the guest
// powered itself off.
func saysPoweredOff(pod *corev1.Pod, vm *spec.VirtualMachine) bool {
	if pod == nil || pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed ||
		!slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == vm.UID }) {
		return false
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			continue
		}
		if o, told := runnerconfig.ParseOutcome(c.State.Terminated.Message); told && o.Cause == runnerconfig.CauseGuestShutdown {
			return true
		}
	}
	return false
}

// The review's attack: an end that is forged before the pod's real one, and one
// without a pod.
func TestForgedEndStopsNoMachine(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.GuestShutdownStops = true
	w.put(theVM, vm)
	for range 4 {
		w.work()
		w.observeAll()
	}
	s, _ := w.snapshot()
	if s.Pod() == nil {
		t.Fatal("no pod")
	}
	s.VM.Status.LastEnd = &spec.MachineEnd{PodUID: s.Pod().UID, Cause: string(runnerconfig.CauseGuestShutdown), Time: metav1.NewTime(s.Now), ObservedGeneration: s.VM.Generation}
	failed := s.Pod().DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	failed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: outcome(runnerconfig.CauseQEMUFailure)}}}}
	for name, pod := range map[string]*corev1.Pod{"runs": s.Pod().DeepCopy(), "has failed": failed, "is gone": nil} {
		setPod(&s, pod)
		if writes := specWrites(machine.Decide(s)); len(writes) > 0 {
			t.Errorf("the pod %s: %+v", name, writes)
		}
	}
}

// A guest's shutdown stops its machine once it is noted, unless somebody has decided
// anew since.
func TestShutdownStopsUnlessSomebodyDecidedSince(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.GuestShutdownStops = true
	w.put(theVM, vm)
	for range 4 {
		w.work()
		w.observeAll()
	}
	s, _ := w.snapshot()
	setPod(&s, s.Pod().DeepCopy())
	s.Pod().Status.Phase = corev1.PodSucceeded
	s.Pod().Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: outcome(runnerconfig.CauseGuestShutdown)}}}}
	if writes := specWrites(machine.Decide(s)); len(writes) > 0 {
		t.Errorf("before it is noted: %+v", writes)
	}
	s.VM.Status.LastEnd = &spec.MachineEnd{PodUID: s.Pod().UID, Cause: string(runnerconfig.CauseGuestShutdown), Time: metav1.NewTime(s.Now), ObservedGeneration: s.VM.Generation}
	if writes := specWrites(machine.Decide(s)); len(writes) != 1 {
		t.Errorf("when it is noted: %+v", writes)
	}
	s.VM.Generation++
	if writes := specWrites(machine.Decide(s)); len(writes) > 0 {
		t.Errorf("though somebody has decided anew: %+v", writes)
	}
}

// A status whose fields have authors: field by field, as an API server notes them.
func managedBy(t interface{ Fatal(...any) }, status *spec.VirtualMachineStatus, author func(part string) string) []metav1.ManagedFieldsEntry {
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	sets := map[string]map[string]any{}
	own := func(manager string) map[string]any {
		if manager != "" && sets[manager] == nil {
			sets[manager] = map[string]any{}
		}
		return sets[manager]
	}
	for name, value := range fields {
		if name != "conditions" {
			if set := own(author(name)); set != nil {
				set["f:"+name] = setOf(value)
			}
			continue
		}
		for _, c := range value.([]any) {
			condition := c.(map[string]any)
			kind, _ := condition["type"].(string)
			set := own(author("conditions/" + kind))
			if set == nil {
				continue
			}
			if set["f:conditions"] == nil {
				set["f:conditions"] = map[string]any{}
			}
			item := setOf(condition)
			item["."] = map[string]any{}
			set["f:conditions"].(map[string]any)[`k:{"type":"`+kind+`"}`] = item
		}
	}
	var out []metav1.ManagedFieldsEntry
	for manager, set := range sets {
		raw, err := json.Marshal(map[string]any{"f:status": set})
		if err != nil {
			t.Fatal(err)
		}
		operation := metav1.ManagedFieldsOperationApply
		if manager == "kubectl-edit" {
			operation = metav1.ManagedFieldsOperationUpdate
		}
		out = append(out, metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))})
	}
	return out
}

// setOf is the set of the fields of a value.
func setOf(v any) map[string]any {
	out := map[string]any{}
	if fields, is := v.(map[string]any); is {
		for k, inner := range fields {
			out["f:"+k] = setOf(inner)
		}
	}
	return out
}

// rightful is who may write a part of a status.
func rightful(part string) string {
	switch {
	case part == "assignment":
		return names.AssignmentManager
	case part == "consoleUser":
		return "console"
	case slices.Contains([]string{"phase", "created", "ready", "nodeName", "ipAddress", "observedGeneration", "restartAwaitingChanges", "lastEnd", "power", "waits", "claims", "blockDeviceRefs", "virtualMachinePods", "stats"}, part),
		slices.ContainsFunc(spec.OperatorConditionTypes(), func(c string) bool { return part == "conditions/"+c }):
		return names.OperatorStatusManager
	}
	return names.RunnerStatusManager
}

// What strangers, or the wrong one of operator and runner, write into a status makes
// no difference to what is done: the plan has the actions that it would have without.
// What everybody wrote who may is believed as it is.
func TestOnlyWhatItsAuthorWroteIsBelieved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		s, there := w.snapshot()
		if !there || s.VM == nil || s.VM.DeletionTimestamp != nil {
			return
		}
		if s.Pod() != nil && s.Pod().Annotations[names.AnnotationApplied] == "" {
			return // VM-Operator's
		}
		vm := s.VM.DeepCopy()
		vm.Status = anyStatus(t, &s)
		rest := vm.Status.DeepCopy()
		forged := map[string]bool{}
		managed := managedBy(t, &vm.Status, func(part string) string {
			who := rightful(part)
			if rapid.Bool().Draw(t, part+" is true") {
				return who
			}
			forged[part] = true
			others := []string{"kubectl-edit", "", names.RunnerStatusManager}
			if who == names.RunnerStatusManager {
				others = []string{"kubectl-edit", "", names.AssignmentManager}
			}
			if part == "assignment" || part == "consoleUser" {
				others = []string{names.RunnerStatusManager}
			}
			return rapid.SampledFrom(others).Draw(t, part)
		})
		if len(forged) == 0 {
			s.VM = vm
			before := machine.Decide(s)
			s.Authors = machine.AuthorsOf(managed)
			if after := machine.Decide(s); !reflect.DeepEqual(before, after) {
				t.Fatalf("all is as it should be, and the plan is\n%+v\nwithout authors\n%+v", after, before)
			}
			return
		}
		to := reflect.ValueOf(rest).Elem()
		for i := range to.NumField() {
			if name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ","); forged[name] {
				to.Field(i).SetZero()
			}
		}
		rest.Conditions = slices.DeleteFunc(rest.Conditions, func(c spec.Condition) bool {
			return forged["conditions/"+c.Type] && (c.Reason != spec.ReasonCreation || c.Status != metav1.ConditionFalse)
		})
		authors := machine.AuthorsOf(managed)
		if got := authors.Believed(&vm.Status, false); !reflect.DeepEqual(got, rest) {
			t.Fatalf("with %v forged\n%+v\nis believed, want\n%+v", forged, got, rest)
		}
		honest := s
		honest.VM = vm.DeepCopy()
		honest.VM.Status = *rest
		s.VM, s.Authors = vm, authors
		healing := func(a reconcile.Action) bool {
			p, is := a.(reconcile.Patch)
			return is && p.Subresource == "status" && reflect.DeepEqual(p.Fields["status"], map[string]any{"lastEnd": nil, "power": nil, "waits": nil, "stats": nil})
		}
		got, want := machine.Decide(s), machine.Decide(honest)
		if rest := slices.DeleteFunc(slices.Clone(got.Actions), healing); len(rest)+len(want.Actions) > 0 && !reflect.DeepEqual(rest, want.Actions) {
			t.Fatalf("with %v forged\n%+v\nwant\n%+v", forged, rest, want.Actions)
		}
	})
}

// What somebody wrote into the operator's part is gone after one round, and told of.
func TestWhatOthersWroteIsReplaced(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	for range 6 {
		w.work()
		w.observeAll()
	}
	s, _ := w.snapshot()
	s.Authors = machine.AuthorsOf([]metav1.ManagedFieldsEntry{
		{Manager: names.OperatorStatusManager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`)},
		{Manager: "kubectl-edit", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:nodeName":{},"f:lastEnd":{"f:cause":{}}}}`)},
	})
	s.VM.Status.LastEnd = &spec.MachineEnd{Cause: "qemu-failure", Failures: 9, Time: metav1.NewTime(s.Now), ObservedGeneration: s.VM.Generation}
	s.VM.Status.NodeName = "n9"
	p := machine.Decide(s)
	var removed, replaced bool
	for _, a := range p.Actions {
		patch, is := a.(reconcile.Patch)
		removed = removed || is && patch.Subresource == "status"
	}
	for _, st := range p.Statuses {
		node, there := st.Status["nodeName"]
		replaced = replaced || st.Manager == names.OperatorStatusManager && there && node != "n9"
	}
	if !removed || !replaced {
		t.Errorf("%+v", p)
	}
	if len(p.Events) == 0 || p.Events[len(p.Events)-1].Reason != spec.ReasonStatusOfOthers || !strings.Contains(p.Events[len(p.Events)-1].Note, `nodeName by "kubectl-edit"`) {
		t.Errorf("%+v", p.Events)
	}
}

// Lists of the operator's that it has nothing for are emptied: left out, they would stay
// with who wrote them, and be replaced again at each look.
func TestListsOfOthersAreEmptied(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.State = spec.StateStopped
	w.put(theVM, vm)
	for range 6 {
		w.work()
		w.observeAll()
	}
	s, _ := w.snapshot()
	s.VM.Status.VirtualMachinePods = []spec.VirtualMachinePod{{Name: "web-9", UID: "of nobody", Active: true}}
	s.VM.Status.BlockDeviceRefs = []spec.BlockDeviceStatus{{Kind: spec.KindDisk, Name: "data"}}
	for name, authors := range map[string]machine.Authors{
		"believed": "",
		"forged": machine.AuthorsOf([]metav1.ManagedFieldsEntry{
			{Manager: "kubectl-edit", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:virtualMachinePods":{},"f:blockDeviceRefs":{}}}`)},
		}),
	} {
		s.Authors = authors
		p := machine.Decide(s)
		at := slices.IndexFunc(p.Statuses, func(st reconcile.StatusApply) bool { return st.Manager == names.OperatorStatusManager })
		if at < 0 {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		for _, list := range []string{"virtualMachinePods", "blockDeviceRefs"} {
			if got, there := p.Statuses[at].Status[list].([]any); !there || len(got) > 0 {
				t.Errorf("%s: %s is %v, want an empty list", name, list, p.Statuses[at].Status[list])
			}
		}
	}
}
