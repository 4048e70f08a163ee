package machinetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// orphanedBy is a world whose machine runs and is deleted without its pod, by an
// operator and a garbage collector that come in this order.
func orphanedBy(t *testing.T, collectorFirst bool, change func(*spec.VirtualMachine)) (*world, *corev1.Pod) {
	t.Helper()
	w := running(t, change)
	w.orphans = map[types.UID]bool{}
	pod := get[*corev1.Pod](w, thePod)
	w.orphans[pod.UID] = true
	vm := get[*spec.VirtualMachine](w, theVM)
	at := metav1.NewTime(w.now)
	vm.DeletionTimestamp = &at
	vm.Finalizers = append(vm.Finalizers, metav1.FinalizerOrphanDependents)
	w.put(theVM, vm)
	if collectorFirst {
		w.collector()
	}
	w.observeAll()
	w.reconcile(false)
	w.collector()
	w.observeAll()
	if vm := get[*spec.VirtualMachine](w, theVM); vm != nil {
		t.Fatalf("the machine is still there: %+v", vm.ObjectMeta)
	}
	now := get[*corev1.Pod](w, thePod)
	if now == nil || now.UID != pod.UID || now.DeletionTimestamp != nil || len(now.OwnerReferences) > 0 || w.guests[pod.UID] == nil {
		t.Fatalf("the pod does not run on: %+v", now)
	}
	return w, now
}

// again makes the machine again.
func (w *world) again(change func(*spec.VirtualMachine)) {
	w.createVM()
	vm := get[*spec.VirtualMachine](w, theVM)
	if change != nil {
		change(vm)
	}
	w.put(theVM, vm)
	for range 6 {
		w.work()
		w.pass(time.Second)
	}
	w.observeAll()
}

// Whoever deletes a machine without its pod and makes it again has the guest that runs,
// whatever was first: the operator or the garbage collector. Its changes wait as they
// do for any machine that runs.
func TestOrphanedPodIsTakenOver(t *testing.T) {
	for _, collectorFirst := range []bool{false, true} {
		for name, c := range map[string]struct{ before, after func(*spec.VirtualMachine) }{
			"as it was": {},
			"changed":   {after: func(vm *spec.VirtualMachine) { vm.Spec.VM.MaximumCPUs = new(int32(4)) }},
			"by hand": {
				before: func(vm *spec.VirtualMachine) { vm.Spec.RunPolicy = spec.RunPolicyAlwaysOn },
				after:  func(vm *spec.VirtualMachine) { vm.Spec.RunPolicy = spec.RunPolicyManual },
			},
			"with an old request": {after: func(vm *spec.VirtualMachine) {
				vm.Annotations = map[string]string{names.AnnotationPowerRequest: "restart 1", names.AnnotationForceStop: "1"}
			}},
		} {
			w, pod := orphanedBy(t, collectorFirst, c.before)
			w.again(c.after)
			now, vm := get[*corev1.Pod](w, thePod), get[*spec.VirtualMachine](w, theVM)
			if now == nil || now.UID != pod.UID || w.guests[pod.UID] == nil || now.DeletionTimestamp != nil {
				t.Fatalf("%s, %v: the guest does not run on: %+v\n%s", name, collectorFirst, now, strings.Join(w.log, "\n"))
			}
			if len(now.OwnerReferences) != 1 || now.OwnerReferences[0].UID != vm.UID || now.OwnerReferences[0].Controller == nil {
				t.Errorf("%s: the pod is %+v", name, now.OwnerReferences)
			}
			if vm.Status.Phase != spec.PhaseRunning || !vm.Status.Ready {
				t.Errorf("%s: status %+v", name, vm.Status)
			}
			if waits := len(vm.Status.RestartAwaitingChanges); (waits > 0) != (name == "changed") {
				t.Errorf("%s: these wait: %v", name, vm.Status.RestartAwaitingChanges)
			}
			if cm := get[*corev1.ConfigMap](w, theConfig); !strings.Contains(cm.Data[names.ConfigKey], fmt.Sprintf("machineUid: %s", vm.UID)) {
				t.Errorf("%s: the runner is not told whom to report to: %s", name, cm.Data[names.ConfigKey])
			}
			if p := w.decided(nil); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 {
				t.Errorf("%s: something is left to do: %+v", name, p)
			}
		}
	}
}

// A machine that is to be stopped takes the pod over, too, and stops it.
func TestOrphanedPodOfAStoppedMachine(t *testing.T) {
	w, _ := orphanedBy(t, false, nil)
	w.again(func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
	if pod, vm := get[*corev1.Pod](w, thePod), get[*spec.VirtualMachine](w, theVM); pod != nil || vm.Status.Phase != spec.PhaseStopped {
		t.Errorf("pod %+v, phase %s", pod, vm.Status.Phase)
	}
}

// What is not the same machine, or was not left by an operator, is not touched; nor is
// the configuration that its guest has. The machine says why, and what to do, and
// starts when that is done.
func TestPodsThatAreNotTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		pod    func(*corev1.Pod)
		vm     func(*spec.VirtualMachine)
		reason string
		says   string
	}{
		"another UUID": {
			vm:     func(vm *spec.VirtualMachine) { vm.Spec.VM.MachineUUID = "11111111-2222-3333-4444-555555555555" },
			reason: spec.ReasonPodNotAdopted, says: "another UUID",
		},
		"another disk": {
			vm: func(vm *spec.VirtualMachine) { vm.Spec.VM.Disks[0].VolumeClaimTemplate.Metadata.Name = "other" }, reason: spec.ReasonPodNotAdopted,
			says: "claim web-system-disk, which the manifest does not name",
		},
		"another disk more": {
			vm: func(vm *spec.VirtualMachine) {
				d := *vm.Spec.VM.Disks[0].DeepCopy()
				d.VolumeClaimTemplate.Metadata.Name = "more"
				vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, d)
			}, reason: spec.ReasonPodNotAdopted, says: "2 of the 3 claims",
		},
		"an invalid manifest": {
			vm:     func(vm *spec.VirtualMachine) { vm.Spec.VM.CPUModel = "a\nb" },
			reason: spec.ReasonInvalidSpecification, says: "not taken over",
		},
		"nobody left it":  {pod: func(p *corev1.Pod) { delete(p.Annotations, names.AnnotationOrphaned) }, reason: spec.ReasonNameTaken, says: "rename the machine"},
		"a copy":          {pod: func(p *corev1.Pod) { p.Annotations[names.AnnotationOrphaned] = "uid-1 uid-of-another" }, reason: spec.ReasonNameTaken, says: "rename the machine"},
		"somebody has it": {pod: func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "a", UID: "b"}} }, reason: spec.ReasonNameTaken, says: "rename the machine"},
		"of another name": {pod: func(p *corev1.Pod) { p.Labels[names.LabelInstance] = "other" }, reason: spec.ReasonNameTaken, says: "rename the machine"},
	} {
		w, pod := orphanedBy(t, false, nil)
		if c.pod != nil {
			c.pod(pod)
			w.put(thePod, pod)
		}
		config := get[*corev1.ConfigMap](w, theConfig)
		w.createVM()
		vm := get[*spec.VirtualMachine](w, theVM)
		if c.vm != nil {
			c.vm(vm)
		}
		w.put(theVM, vm)
		for range 8 { // without the garbage collector, which would delete what is of no kind here
			w.observeAll()
			w.reconcile(false)
			w.pass(5 * time.Second)
		}
		now, vm := get[*corev1.Pod](w, thePod), get[*spec.VirtualMachine](w, theVM)
		if now == nil || now.ResourceVersion != pod.ResourceVersion {
			t.Errorf("%s: the pod was written: %+v", name, now)
		}
		if cm := get[*corev1.ConfigMap](w, theConfig); c.reason != spec.ReasonNameTaken && cm.ResourceVersion != config.ResourceVersion {
			t.Errorf("%s: the configuration of the guest was written", name)
		}
		if got := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady); got == nil || got.Reason != c.reason || !strings.Contains(got.Message, c.says) || vm.Status.Created {
			t.Errorf("%s: %+v", name, got)
		}
		if c.reason == spec.ReasonInvalidSpecification {
			continue
		}
		delete(w.guests, now.UID)
		w.put(thePod, nil)
		w.pass(2 * time.Minute)
		for range 6 {
			w.work()
			w.pass(time.Second)
		}
		if now := get[*corev1.Pod](w, thePod); now == nil || now.UID == pod.UID || len(now.OwnerReferences) == 0 {
			t.Errorf("%s: the machine does not start when the pod is gone: %+v", name, now)
		}
	}
}

// What a pod was started with may be spelled in any way that JSON has: who takes it over
// compares with the same specification and class, and with no generation of the former
// machine.
func TestTheRecordOfAnOrphanIsKept(t *testing.T) {
	w, pod := orphanedBy(t, false, nil)
	w.createVM()
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Finalizers = []string{names.FinalizerMachine}
	w.put(theVM, vm)
	w.observeAll()
	rapid.Check(t, func(t *rapid.T) {
		drawn := spectest.VirtualMachine().Draw(t, "machine").Spec
		drawn.VM.MachineUUID, drawn.VM.Disks = "", nil
		record := map[string]any{"generation": rapid.Int64Range(0, 1<<40).Draw(t, "generation"), "spec": drawn}
		if rapid.Bool().Draw(t, "class") {
			record["class"] = map[string]any{"name": "c", "uid": "u", "generation": 3, "spec": map[string]any{}}
		}
		if rapid.Bool().Draw(t, "more") {
			record["aaa"] = "of a later version, {\"generation\":7,"
		}
		text, err := json.MarshalIndent(record, rapid.SampledFrom([]string{"", " "}).Draw(t, "prefix"), rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		s, _ := w.snapshot()
		setPod(&s, pod.DeepCopy())
		s.Pod().Annotations[names.AnnotationStarted] = string(text)
		for _, a := range machine.Decide(s).Actions {
			adopt, is := a.(reconcile.AdoptPod)
			if !is {
				continue
			}
			now := adopt.Annotations[names.AnnotationStarted]
			var was, is2 struct {
				Generation  *int64
				Class, Spec any
			}
			if now == nil || !strings.HasPrefix(*now, `{"generation":0,`) || json.Unmarshal([]byte(*now), &is2) != nil || json.Unmarshal(text, &was) != nil ||
				*is2.Generation != 0 || !reflect.DeepEqual(was.Class, is2.Class) || !reflect.DeepEqual(was.Spec, is2.Spec) {
				t.Fatalf("%s\nbecomes\n%v", text, now)
			}
			return
		}
		t.Fatalf("it is not taken over: %+v", machine.Decide(s))
	})
}
