package machinetest

import (
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// settle runs without faults until nothing changes any more, and verifies that the final state is
// as wanted.
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
			// A start, and one more: for what has changed during the first.
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
					g.stage = 2 // the last report succeeds
					w.runnerReports(g)
				}
			}
		}
		w.check()
		if w.serial == before && len(p.Actions) == 0 && len(p.Statuses) == 0 && len(p.Events) == 0 && (p.Wake.IsZero() || w.infeasible()) {
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
		// What was refused is retried.
		w.pass(6 * time.Minute)
	}
	w.violated("a machine that is deleted goes", "%+v", get[*spec.VirtualMachine](w, theVM).ObjectMeta)
}

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
		if s.Phase != spec.PhaseStopped || s.Created || s.Ready || s.NodeName != "" || spec.ConditionIsTrue(s.Conditions, spec.ConditionRunning) ||
			spec.FindCondition(s.Conditions, spec.ConditionGuestExecuting) != nil || s.CPUs != 0 {
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
	// What waits for a restart is what the pod was not made with, and a reset by the guest
	// applies it.
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

// linger lets time pass while something keeps pods from starting. The waits must have been
// reported.
func (w *world) linger() {
	const (
		nothing = iota
		nobodySchedules
		noNode
		noImage
		nobodyStarts
		noVolume
		hindrances
	)
	hindrance := w.choose("hindrance", hindrances)
	w.note("hindrance %d", hindrance)
	w.unbound = hindrance == noVolume
	for end := w.now.Add(time.Minute); w.now.Before(end); {
		w.operations++
		w.observeAll()
		if w.choose("restart", 4) == 0 {
			clear(w.failures)
		}
		p := w.reconcile(false)
		if w.infeasible() {
			p = w.reconcile(false) // the operator looks again at once
		}
		w.controllers()
		for _, k := range w.keys("pod/") {
			pod := get[*corev1.Pod](w, k)
			switch {
			case pod == nil || w.dead[pod.Spec.NodeName]:
			case pod.DeletionTimestamp != nil || w.guests[pod.UID] != nil || hindrance == nothing:
				w.tend(pod, goodWay)
			case pod.Spec.NodeName == "" && (hindrance == noNode || hindrance == noVolume):
				if len(pod.Status.Conditions) == 0 {
					w.tend(pod, firstBad)
				}
			case pod.Spec.NodeName == "" && hindrance != nobodySchedules:
				w.tend(pod, goodWay)
			case pod.Spec.NodeName != "" && hindrance == noImage && len(pod.Status.ContainerStatuses) == 0:
				w.tend(pod, firstBad)
			}
		}
		w.check()
		next := w.now.Add(5 * time.Second)
		if !p.Wake.IsZero() && p.Wake.Before(next) {
			next = p.Wake
		}
		w.pass(next.Sub(w.now))
	}
	w.unbound = false
	w.checkWaitsTold()
}

func (w *world) settleHot() {
	for _, n := range []string{"n1", "n2"} {
		w.repair(n)
	}
	if pod := get[*corev1.Pod](w, "pod/intruder"); pod != nil {
		delete(w.guests, pod.UID)
		w.put("pod/intruder", nil)
	}
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.State = spec.StateRunning
	vm.Generation++
	w.put(theVM, vm)
	for range 40 {
		w.work()
		w.attached()
		w.checkWriters()
		w.pass(20 * time.Second)
	}
	w.observeAll()
	pod := get[*corev1.Pod](w, thePod)
	if pod == nil || w.guests[pod.UID] == nil {
		w.violated("a machine with disks that come and go runs", "%+v", get[*spec.VirtualMachine](w, theVM).Status.Conditions)
	}
	vm = get[*spec.VirtualMachine](w, theVM)
	has := map[string]bool{}
	for _, k := range w.keys("attachment/") {
		a := get[*spec.VirtualMachineBlockDeviceAttachment](w, k)
		if a == nil || len(a.OwnerReferences) == 0 {
			continue
		}
		claim := a.Spec.BlockDeviceRef.ClaimName()
		switch {
		case !refersTo(vm, claim):
			w.violated("a disk that left the manifest is detached", "%s is there", k)
		case slices.Contains(objects.PodClaims(pod), claim):
			w.violated("a pod that has a disk needs no attachment", "%s is there", k)
		}
		has[claim] = a.Status.Connection != nil
	}
	known := pod.Annotations[names.AnnotationStarted] != "" // VM-Operator notes nothing
	for _, claim := range hotClaims[:3] {
		if refersTo(vm, claim) && known && !has[claim] && !slices.Contains(objects.PodClaims(pod), claim) && !w.waitsFor(vm) {
			w.violated("a disk that comes is attached", "%s is not", claim)
		}
	}
}

// startsSafely runs the operator so that it sees all pods before it creates one, as with
// observation.Starts.
func (w *world) startsSafely(faults bool) {
	for _, k := range slices.Concat(w.keys("pod/"), w.keys("exporter/")) {
		h := w.objects[k]
		h.seen = len(h.versions) - 1
	}
	w.reconcile(faults)
}

func (w *world) checkUserDataSettled() {
	w.controllers()
	vm, pod := get[*spec.VirtualMachine](w, theVM), get[*corev1.Pod](w, thePod)
	needed := map[string]bool{}
	if pod != nil {
		needed[pod.Annotations[names.AnnotationUserData]] = true
	}
	for _, k := range w.keys("secret/") {
		s := get[*corev1.Secret](w, k)
		if s == nil || s.Labels[names.LabelComponent] != names.ComponentUserData || needed[s.Name] {
			continue
		}
		if text := string(s.Data[spec.UserDataKey]); text != vm.Spec.InlineUserData() || needed[text] {
			w.violated("what nobody needs goes", "%s has %q, and the manifest %q", k, text, vm.Spec.InlineUserData())
		}
		needed[string(s.Data[spec.UserDataKey])] = true
	}
}
