package machinetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// A pod that runs keeps what it asks for, and nobody reports a restart, when
// another version or another setting of the operator would ask for something else.
func TestRequestsOfARunningPodStay(t *testing.T) {
	w := running(t, nil)
	before := get[*corev1.Pod](w, thePod)
	r, ok := objects.RecordedRequests(before)
	if !ok || r.Overhead < 100<<20 {
		t.Fatalf("%+v, %v", r, before.Annotations)
	}
	s, _ := w.snapshot()
	s.Settings.RAMOvercommit, s.Settings.CPUOvercommit = 1, 1
	s.Settings.KVMResource = "devices.kubevirt.io/kvm"
	for _, a := range machine.Decide(s).Actions {
		if verb := a.Target().Verb; verb == "delete" || verb == "create" {
			t.Errorf("%s", a.Target())
		}
	}
	if p := machine.Decide(s); len(p.Statuses) > 0 {
		t.Errorf("%+v", p.Statuses)
	}
}

// quotaRefuses is a snapshot in which the pod was refused because of a quota.
func quotaRefuses(w *world, message string, count int) machine.Snapshot {
	s, _ := w.snapshot()
	s.Failures = []reconcile.Failure{{
		Target: reconcile.Target{Verb: "create", Kind: "Pod", Name: "web"}, Reason: "Forbidden",
		Message: `pods "web" is forbidden: ` + message, Count: count, Last: s.Now,
	}}
	return s
}

// withoutPod is a world whose machine has all but its pod.
func withoutPod(t *testing.T, change func(*spec.VirtualMachine)) *world {
	t.Helper()
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	if change != nil {
		change(vm)
	}
	w.put(theVM, vm)
	for range 6 {
		w.observeAll()
		s, _ := w.snapshot()
		if machine.Decide(s).StartsPod() {
			return w
		}
		w.reconcile(false)
		w.controllers()
	}
	t.Fatal("there is no pod to be made")
	return nil
}

// A quota that is used up is told with what was asked and what is left, and the
// pod is tried again soon however often it was refused.
func TestQuotaIsTriedAgainSoon(t *testing.T) {
	w := withoutPod(t, nil)
	const why = "exceeded quota: small, requested: requests.memory=900Mi, used: requests.memory=1Gi, limited: requests.memory=1Gi"
	s := quotaRefuses(w, why, 40)
	p := machine.Decide(s)
	reason, message := said(p, spec.ConditionPodReady)
	if reason != spec.ReasonQuotaExceeded || !strings.Contains(message, why) || p.StartsPod() {
		t.Errorf("%s: %s; %v", reason, message, targets(p))
	}
	if again := p.Wake.Sub(s.Now); again <= 0 || again > 30*time.Second {
		t.Errorf("it is tried again after %v", again)
	}
	s.Now = p.Wake
	if !machine.Decide(s).StartsPod() {
		t.Error("it is not tried again")
	}
}

// A quota of limits gives the pod limits, with room for all that the machine can
// ever use, and the pod keeps them.
func TestQuotaOfLimits(t *testing.T) {
	for _, why := range []string{
		"failed quota: hard: must specify limits.cpu for: web; limits.memory for: web",
		"exceeded quota: hard, requested: limits.memory=9Gi, used: limits.memory=0, limited: limits.memory=1Gi",
	} {
		w := withoutPod(t, nil)
		s := quotaRefuses(w, why, 1)
		s.Now = s.Now.Add(time.Minute)
		var pod *corev1.Pod
		for _, a := range machine.Decide(s).Actions {
			if c, ok := a.(reconcile.Create); ok {
				pod = c.Object.(*corev1.Pod)
			}
		}
		if pod == nil {
			t.Fatalf("%s: no pod is made", why)
		}
		r := pod.Spec.Containers[0].Resources
		if limit := r.Limits[corev1.ResourceMemory]; limit.Cmp(r.Requests[corev1.ResourceMemory]) <= 0 || r.Limits.Cpu().Cmp(*r.Requests.Cpu()) <= 0 {
			t.Errorf("%s: %+v", why, r)
		}
		// While it waits for its node the refusal is forgotten.
		w.put(thePod, pod)
		w.observeAll()
		if p := w.decided(nil); len(p.Actions) > 0 && p.Actions[0].Target().Verb == "delete" {
			t.Errorf("%s: the pod is replaced: %v", why, targets(p))
		}
	}
}

// What a manifest says of resources wins.
func TestQuotaOfLimitsAndTheManifest(t *testing.T) {
	w := withoutPod(t, func(vm *spec.VirtualMachine) {
		vm.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: quantity("2Gi")}}
	})
	p := machine.Decide(quotaRefuses(w, "failed quota: hard: must specify limits.memory for: web", 1))
	if reason, message := said(p, spec.ConditionPodReady); reason != spec.ReasonQuotaExceeded || !strings.Contains(message, "spec.resources") {
		t.Errorf("%s: %s", reason, message)
	}
}

// A limit that a LimitRange has given to the pod is named before it kills the
// guest.
func TestLimitBelowTheNeed(t *testing.T) {
	for _, c := range []struct {
		limit, names string
		low          bool
		change       func(*spec.VirtualMachine)
	}{
		{"200Mi", "LimitRange", true, nil},
		{"64Gi", "", false, nil},
		{"200Mi", "spec.resources.limits.memory", true, func(vm *spec.VirtualMachine) {
			vm.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: quantity("200Mi")}}
		}},
	} {
		w := running(t, c.change)
		pod := get[*corev1.Pod](w, thePod)
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity(c.limit)}
		w.put(thePod, pod)
		w.observeAll()
		s, _ := w.snapshot()
		if c.change != nil { // the status has it already
			s.VM = s.VM.DeepCopy()
			s.VM.Status.Conditions = nil
		}
		reason, message := said(decideOnLess(s), spec.ConditionConfigurationApplied)
		if low := reason == spec.ReasonMemoryLimitTooLow; low != c.low || low && (!strings.Contains(message, c.names) || !strings.Contains(message, c.limit)) {
			t.Errorf("%s: %s: %s", c.limit, reason, message)
		}
	}
}

// A limit that is even below what the pod asks for is refused by the API server,
// which does not know where it comes from.
func TestLimitBelowTheRequest(t *testing.T) {
	const why = `Pod "web" is invalid: spec.containers[0].resources.requests: Invalid value: "%s": must be less than or equal to %s limit of %s`
	for _, c := range []struct {
		message, reason string
		names           []string
		change          func(*spec.VirtualMachine)
	}{
		{fmt.Sprintf(why, "580701388", "memory", "200Mi"), spec.ReasonMemoryLimitTooLow, []string{"200Mi", "580701388", "LimitRange", "memory"}, nil},
		{fmt.Sprintf(why, "500m", "cpu", "100m"), spec.ReasonWriteRefused, []string{"100m", "500m", "LimitRange", "cpu"}, nil},
		{fmt.Sprintf(why, "580701388", "memory", "200Mi"), spec.ReasonMemoryLimitTooLow, []string{"spec.resources.limits.memory"}, func(vm *spec.VirtualMachine) {
			vm.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: quantity("200Mi")}}
		}},
	} {
		s := quotaRefuses(withoutPod(t, c.change), "", 9)
		s.Failures[0].Reason, s.Failures[0].Message = "Invalid", c.message
		p := machine.Decide(s)
		reason, message := said(p, spec.ConditionPodReady)
		if reason != c.reason {
			t.Errorf("%s: %s: %s", c.message, reason, message)
		}
		for _, part := range c.names {
			if !strings.Contains(message, part) {
				t.Errorf("%s: %q is not in %s", c.message, part, message)
			}
		}
		if p.Wake.Sub(s.Now) > 30*time.Second {
			t.Errorf("it is tried again after %v: nobody watches LimitRanges", p.Wake.Sub(s.Now))
		}
	}
}

// withFollower is a world with a machine whose runner follows it, how to change the machine, and
// how to have the runner follow again.
func withFollower() (w *world, change, follow func()) {
	w = newResizingWorld(func(string, int) int { return 0 }, machine.Decide)
	for range 10 {
		w.work()
		w.pass(time.Second)
	}
	change = func() {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.PowerdownTimeout = new(*vm.Spec.VM.PowerdownTimeout + 1)
		vm.Generation++
		w.put(theVM, vm)
	}
	follow = func() {
		pod := get[*corev1.Pod](w, thePod)
		w.follow(pod, w.guests[pod.UID])
	}
	follow()
	return w, change, follow
}

// A change that the runner does not know of yet is under way, and not applied.
func TestChangeThatTheRunnerHasNotRead(t *testing.T) {
	w, change, follow := withFollower()
	says := func(reason, status string) {
		t.Helper()
		for range 3 {
			w.observeAll()
			w.reconcile(false)
		}
		vm := get[*spec.VirtualMachine](w, theVM)
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied)
		if c.Reason != reason || string(c.Status) != status || c.ObservedGeneration != vm.Generation {
			t.Fatalf("%+v", c)
		}
	}
	says(spec.ReasonConfigurationApplied, "True")
	change()
	says(spec.ReasonConfigurationPending, "False")
	follow()
	says(spec.ReasonConfigurationApplied, "True")
}

// While the runner does not follow a change, its pod is changed again, in pauses that grow,
// and not for ever: the kubelet may have had an old ConfigMap when it was told. Another
// change is told anew, and who follows is left alone.
func TestPodIsRefreshedWhileItsRunnerLags(t *testing.T) {
	w, change, follow := withFollower()
	// after are the seconds after which the pod was changed once more.
	after := func() (out []int) {
		t.Helper()
		for second := range 1000 {
			w.observeAll()
			plan := w.reconcile(false)
			for _, a := range plan.Actions {
				if a, is := a.(reconcile.AnnotatePod); is && a.Annotations[names.AnnotationConfigVersion] == nil {
					out = append(out, second)
				}
			}
			w.pass(time.Second)
		}
		return out
	}
	for range 2 {
		change()
		if got := after(); !slices.Equal(got, []int{6, 16, 36, 76, 156, 316}) {
			t.Errorf("the pod is changed after %v seconds", got)
		}
	}
	change()
	w.observeAll()
	w.reconcile(false)
	follow()
	if got := after(); len(got) > 0 {
		t.Errorf("the pod of a runner that follows is changed after %v seconds", got)
	}
}

// A node that does not resize pods lets the guest grow as ever, and the machine says
// that the pod does not.
func TestGrowthOnANodeThatDoesNotResize(t *testing.T) {
	w := running(t, func(vm *spec.VirtualMachine) {
		vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CurrentCPUs = new(int32(4)), new(int32(1))
	})
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.CurrentCPUs = new(int32(4))
	vm.Generation++
	w.put(theVM, vm)
	for range 4 {
		w.observeAll()
		for _, a := range w.reconcile(false).Actions {
			if _, resized := a.(reconcile.ResizePod); resized {
				t.Errorf("%+v", a)
			}
		}
	}
	if cm := get[*corev1.ConfigMap](w, theConfig); !strings.Contains(cm.Data["config.yaml"], "currentCpus: 4\n") {
		t.Errorf("the guest does not grow: %s", cm.Data["config.yaml"])
	}
	c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionConfigurationApplied)
	if c.Status != "True" || !strings.Contains(c.Message, "node n1 does not resize pods in place") {
		t.Errorf("%+v", c)
	}
}
