package machinetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// round is a while in which nothing but the operator and the controllers act.
func (w *world) round() {
	for range 8 {
		w.observeAll()
		w.reconcile(false)
		w.controllers()
	}
}

// A machine that somebody else has stopped, VM-Operator or an earlier version of
// vmop, has run with what it has: its disk is not replaced either.
func TestDisksOfMachinesThatOthersHaveStopped(t *testing.T) {
	for _, c := range []struct {
		who  string
		disk string
		made func(*world)
	}{
		{"VM-Operator before 3.4", "system-disk-web-0", func(w *world) { takeover(w, false, false) }},
		{"VM-Operator", "web-system-disk", func(w *world) { takeover(w, true, false) }},
		{"an earlier version", "web-system-disk", func(w *world) {
			personDoes(w, []string{"starts"})
			w.round()
			vm := get[*spec.VirtualMachine](w, theVM)
			end := metav1.NewTime(w.now.Add(time.Hour))
			vm.Status.Claims, vm.Status.LastEnd = nil, &spec.MachineEnd{PodUID: "former", Cause: "guest-shutdown", Time: end}
			w.put(theVM, vm)
			w.put(thePod, nil)
		}},
	} {
		w := newWorld(func(string, int) int { return 0 }, machine.Decide)
		c.made(w)
		personDoes(w, []string{"stops"})
		w.round()
		happenings["claim"](w, []string{c.disk, "is-deleted"})
		w.round()
		personDoes(w, []string{"starts"})
		w.round()
		vm := get[*spec.VirtualMachine](w, theVM)
		condition := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady)
		if condition.Reason != spec.ReasonClaimGone || !strings.Contains(condition.Message, c.disk) || get[*corev1.Pod](w, thePod) != nil {
			t.Errorf("%s: %+v", c.who, condition)
		}
		w.restoreClaims()
		w.round()
		if get[*corev1.Pod](w, thePod) == nil {
			t.Errorf("%s: it does not start with the claim that was restored", c.who)
		}
	}
}

// In a namespace that is being deleted nothing is made, tried or told any more.
func TestNamespaceIsDeleted(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	w.round()
	w.put(thePod, nil) // by whoever deletes the namespace
	w.put(theConfig, nil)
	w.put("claim/web-system-disk", nil)
	target := reconcile.Target{Verb: "create", Kind: "Pod", Name: "web"}
	w.failures[target] = reconcile.Failure{
		Target: target, Reason: "Forbidden", Message: `pods "web" is forbidden: unable to create new content in namespace apps because it is being terminated`,
		NamespaceGoes: true, Count: 1, Last: w.now,
	}
	actions, events := 0, 0
	for range 60 {
		w.pass(time.Second)
		w.observeAll()
		p := w.reconcile(false)
		actions, events = actions+len(p.Actions), events+len(p.Events)
	}
	c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionPodReady)
	if actions > 0 || events > 0 || c.Reason != spec.ReasonNamespaceTerminating {
		t.Errorf("%d actions, %d events, %+v", actions, events, c)
	}
}

// The runner, which remembers the images of disks, is told of a new one until the
// machine has run with it.
func TestRunnerIsToldOfANewDisk(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	vm := get[*spec.VirtualMachine](w, theVM)
	mode := corev1.PersistentVolumeFilesystem
	vm.Spec.VM.Disks[0].VolumeClaimTemplate.Spec.VolumeMode = &mode
	w.put(theVM, vm)
	run := func() {
		for range 2 {
			w.tend(get[*corev1.Pod](w, thePod), goodWay)
		}
		for range 3 {
			w.runnerReports(w.guests[get[*corev1.Pod](w, thePod).UID])
		}
		w.round()
	}
	told := func() bool {
		return strings.Contains(get[*corev1.ConfigMap](w, theConfig).Data[names.ConfigKey], "newImage: true")
	}
	w.choose = func(string, int) int { return 1 }
	w.round()
	run()
	if told() {
		t.Error("a first image is none in place of another")
	}
	happenings["claim"](w, []string{"web-system-disk", "is-deleted"})
	personDoes(w, []string{"deletes-pod"})
	w.put(thePod, nil)
	clear(w.guests)
	w.pass(time.Minute)
	w.round()
	w.wantNewDisks()
	w.round()
	if pod := get[*corev1.Pod](w, thePod); pod == nil || !told() {
		t.Fatalf("pod %v; the runner is told: %v", pod != nil, told())
	}
	run()
	pvc := get[*corev1.PersistentVolumeClaim](w, "claim/web-system-disk")
	vm = get[*spec.VirtualMachine](w, theVM)
	if !slices.Contains(vm.Status.Claims, spec.MachineClaim{Disk: "system-disk", ClaimName: pvc.Name, UID: pvc.UID}) || told() {
		t.Errorf("%+v; the runner is told: %v", vm.Status.Claims, told())
	}
}

// An event has the two ways to ask for an empty disk as commands, for which the line of a
// condition has no room.
func TestCommandsForANewDisk(t *testing.T) {
	w := running(t, nil)
	happenings["claim"](w, []string{"web-system-disk", "is-deleted"})
	uid := get[*corev1.PersistentVolumeClaim](w, "claim/web-system-disk").UID
	entry := "system-disk:" + string(uid)[:min(8, len(uid))]
	w.observeAll()
	s, _ := w.snapshot()
	p := machine.Decide(s)
	_, message := said(p, spec.ConditionBlockDevicesReady)
	if want := "or ask for an empty disk by the annotation " + names.AnnotationNewDisk + "=" + entry; !strings.HasSuffix(message, want) {
		t.Errorf("the condition says %q", message)
	}
	commands := "; for an empty disk, run vmop-cli start --cluster -n apps web --new-disk system-disk, or kubectl annotate vm -n apps web --overwrite " + names.AnnotationNewDisk + "=" + entry
	if !slices.ContainsFunc(p.Events, func(e reconcile.Event) bool {
		return e.Reason == spec.ReasonClaimTerminating && strings.HasPrefix(e.Note, message) && strings.HasSuffix(e.Note, commands)
	}) {
		t.Errorf("no event says %q: %+v", commands, p.Events)
	}
}

// Kubernetes keeps the mode of a claim that is there, and mounts it in no other way: a
// manifest that says another one changes nothing.
func TestAClaimKeepsItsVolumeMode(t *testing.T) {
	for mode, other := range map[corev1.PersistentVolumeMode]corev1.PersistentVolumeMode{
		corev1.PersistentVolumeBlock: corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeFilesystem: corev1.PersistentVolumeBlock,
	} {
		template := func(vm *spec.VirtualMachine, mode corev1.PersistentVolumeMode) {
			for i := range vm.Spec.VM.Disks {
				if c := vm.Spec.VM.Disks[i].VolumeClaimTemplate; c != nil {
					c.Spec.VolumeMode = &mode
				}
			}
		}
		w := running(t, func(vm *spec.VirtualMachine) { template(vm, mode) })
		key := "claim/web-system-disk"
		pvc := get[*corev1.PersistentVolumeClaim](w, key)
		pvc.Spec.VolumeMode = &mode
		w.put(key, pvc)
		w.observeAll()
		was := get[*corev1.ConfigMap](w, theConfig).Data[names.ConfigKey]
		found := 0
		for _, a := range w.decided(func(s *machine.Snapshot) {
			template(s.VM, other)
			s.VM.Generation++
		}).Actions {
			apply, is := a.(reconcile.Apply)
			if !is {
				continue
			}
			if c, is := apply.Object.(*corev1.ConfigMap); is {
				found++
				drive := "/dev/system-disk"
				if now := c.Data[names.ConfigKey]; strings.Contains(now, drive) != (mode == corev1.PersistentVolumeBlock) || strings.Contains(was, drive) != strings.Contains(now, drive) {
					t.Errorf("a claim of the mode %s becomes\n%s", mode, now)
				}
			}
		}
		if found == 0 {
			t.Error("no configuration is written")
		}
	}
}
