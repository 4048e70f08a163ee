package machinetest

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func manual(p spec.RunPolicy) bool {
	return p == spec.RunPolicyManual || p == spec.RunPolicyAlwaysOnUnlessStoppedManually
}

func outstanding(vm *spec.VirtualMachine) bool {
	request := vm.Annotations[names.AnnotationPowerRequest]
	return request != "" && (vm.Status.Power == nil || vm.Status.Power.Request != request)
}

func startOutstanding(vm *spec.VirtualMachine) bool {
	return outstanding(vm) && strings.HasPrefix(vm.Annotations[names.AnnotationPowerRequest], string(machine.VerbStart))
}

func (w *world) ask(vm *spec.VirtualMachine) {
	verb := []machine.Verb{machine.VerbStart, machine.VerbStop, machine.VerbRestart, "nonsense"}[w.choose("verb", 4)]
	w.askFor(vm, verb)
}

func (w *world) askFor(vm *spec.VirtualMachine, verb machine.Verb) {
	w.serial++
	w.upsets++
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	vm.Annotations[names.AnnotationPowerRequest] = machine.Request(verb, fmt.Sprint(w.serial))
	if verb == machine.VerbStart {
		clear(w.lastEnds) // the user has decided
	}
	if verb == machine.VerbStart || verb == machine.VerbStop {
		w.asked = asked{verb, w.upsets}
	}
	w.put(theVM, vm)
	w.note("a %s is asked for", verb)
}

// endsByPolicy records an end of the machine, which its runner may have reported.
func (w *world) endsByPolicy(pod *corev1.Pod, cause runnerconfig.Cause) {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil || len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].UID != vm.UID || pod.Labels[names.LabelInstance] != vm.Name {
		return
	}
	w.upsets++
	policy := vm.Spec.RunPolicy
	if manual(policy) && pod.DeletionTimestamp == nil && !outstanding(vm) && vm.Status.Power != nil && vm.Status.Power.Policy == policy && vm.ShouldRun() {
		if w.off = (asked{machine.VerbStart, w.upsets}); cause == runnerconfig.CauseGuestShutdown || policy == spec.RunPolicyManual && cause != runnerconfig.CauseGuestReset {
			w.off.verb = machine.VerbStop
		}
	}
	if !w.policies {
		return
	}
	if cause == "Evicted" || w.dead[pod.Spec.NodeName] || cause == "node-failure" || w.choose("end lost", 3) == 0 {
		return
	}
	var conditions []any
	for _, t := range spec.ConditionTypes() {
		conditions = append(conditions, map[string]any{"type": t, "status": "False", "reason": spec.ReasonVMStopped, "message": "it ended", "lastTransitionTime": w.now.UTC().Format("2006-01-02T15:04:05Z")})
	}
	w.applyStatus(vm, names.RunnerStatusManager, map[string]any{
		"cpus": 0, "ram": "0", "conditions": conditions, "runnerEnd": map[string]any{"cause": string(cause), "message": "it ended"},
	})
	w.put(theVM, vm)
}

// losesEnd deletes a pod that has just ended. Its end is still known if its runner had reported
// it.
func (w *world) losesEnd(pod *corev1.Pod) {
	vm := get[*spec.VirtualMachine](w, theVM)
	if !w.policies || vm == nil || vm.Status.Power == nil || vm.Status.Power.PodUID != pod.UID || vm.Status.RunnerEnd == nil ||
		vm.Spec.RunPolicy != vm.Status.Power.Policy || w.choose("pod of an end lost", 3) > 0 {
		return
	}
	delete(w.lastEnds, pod.UID)
	w.put("pod/"+pod.Name, nil)
	w.note("pod %s is lost", pod.UID)
}

// removesByPolicy records that a user deletes a pod. The end of a machine is still known if its
// runner had reported it.
func (w *world) removesByPolicy(vm *spec.VirtualMachine, pod *corev1.Pod) {
	if len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].UID != vm.UID {
		return
	}
	p := vm.Status.Power
	known := p != nil && p.PodUID == pod.UID
	if known && vm.Status.RunnerEnd != nil && w.guests[pod.UID] == nil {
		return
	}
	w.upsets++
	if known && vm.Spec.RunPolicy == spec.RunPolicyManual && p.Policy == spec.RunPolicyManual && !outstanding(vm) && pod.DeletionTimestamp == nil {
		w.off = asked{machine.VerbStop, w.upsets}
	}
}

// keepsPod reports whether a pod in which a guest executes must go on, as far as the observations
// tell.
func (w *world) keepsPod(vm *spec.VirtualMachine, pod *corev1.Pod) bool {
	s := &vm.Spec
	request := vm.Annotations[names.AnnotationPowerRequest]
	var verb machine.Verb
	_, _ = fmt.Sscan(request, (*string)(&verb))
	switch {
	case verb == machine.VerbRestart && pod.Annotations[names.AnnotationPowerRequest] != request:
		return false
	case s.RestartsAutomatically() && w.madeAt[pod.UID] < vm.Generation && w.provided(vm):
		return false
	case s.RestartsAutomatically() && w.provided(vm) && s.CloudInit != nil && len(vm.Status.ChangedDocuments) > 0:
		return false
	case manual(s.RunPolicy) && outstanding(vm) && verb == machine.VerbStop:
		return false
	case manual(s.RunPolicy) && vm.Status.Power != nil && vm.Status.Power.Policy == "":
		return true // it gets a policy
	case manual(s.RunPolicy) && outstanding(vm) && verb == machine.VerbStart:
		return true
	case s.RunPolicy == spec.RunPolicyManual && vm.Status.Power == nil:
		return true
	}
	return vm.ShouldRun()
}

func (w *world) checkPower(vm *spec.VirtualMachine) {
	p, policy := vm.Status.Power, vm.Spec.RunPolicy
	if policy == "" {
		if p != nil && p.Policy != "" {
			w.violated("a run policy is followed", "there is none any more: %+v", p)
		}
		return
	}
	if p == nil || p.Policy != policy || p.Since.IsZero() || p.Request != vm.Annotations[names.AnnotationPowerRequest] {
		w.violated("a run policy is followed", "%s: %+v", policy, p)
	}
	on := p.State == spec.StateRunning
	switch {
	case policy == spec.RunPolicyAlwaysOn && !on, policy == spec.RunPolicyAlwaysOff && on:
		w.violated("a run policy is followed", "%s: %+v", policy, p)
	case manual(policy) && w.asked.verb != "" && w.asked.upsets == w.upsets && on != (w.asked.verb == machine.VerbStart):
		w.violated("a request is carried out", "%s was asked for: %+v", w.asked.verb, p)
	case manual(policy) && w.off.verb != "" && w.off.upsets == w.upsets && on != (w.off.verb == machine.VerbStart):
		w.violated("an end is kept", "%s after %s: %+v", policy, w.off.verb, p)
	}
}

func (w *world) provided(vm *spec.VirtualMachine) bool {
	vm = vm.DeepCopy()
	vm.Spec.VM.State = spec.StateRunning
	for _, state := range w.statesOf(machine.NeededSecrets(vm, nil)) {
		if state != machine.SecretThere {
			return false
		}
	}
	return true
}
