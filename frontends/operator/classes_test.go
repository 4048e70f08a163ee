package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// condition waits until a machine has a condition with a status and a reason.
func (t *test) condition(name, conditionType, status, reason string) *spec.VirtualMachine {
	t.Helper()
	var vm *spec.VirtualMachine
	t.eventually(name+" has "+conditionType+" "+reason, func() (err error) {
		if vm, err = t.status(name); err != nil {
			return err
		}
		if c := spec.FindCondition(vm.Status.Conditions, conditionType); c == nil || string(c.Status) != status || c.Reason != reason {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	return vm
}

// A machine waits for its class, is started as it says, and runs on whatever becomes
// of it: what waits for a restart, or is wrong, is told.
func TestClasses(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	all, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	classes := all.Resource(spec.GroupVersion().WithResource(spec.ResourceClasses))
	name := t.namespace + "-class" // they are the cluster's, which tests share
	t.Cleanup(func() { _ = classes.Delete(t.Context(), name, metav1.DeleteOptions{}) })
	apply := func(body string) {
		t.Helper()
		manifest := "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachineClass\nmetadata: {name: " + name + "}\nspec: " + body + "\n"
		if _, err := classes.Apply(t.Context(), name, t.object(manifest), metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	t.startKubelet()
	o := t.start(cluster.Kubeconfig())

	t.create(strings.Replace(machine("web", "Running"), "guestShutdownStops: true", "virtualMachineClassName: "+name, 1))
	t.create(machine("other", "Stopped"))
	t.waits("web", spec.ConditionVirtualMachineClassReady, spec.ReasonVirtualMachineClassNotFound)
	t.phase("web", spec.PhasePending)

	apply("{cpu: {type: Model, model: Nehalem-v1}, nodeSelector: {matchLabels: {kubernetes.io/os: linux}}, sizingPolicies: [{cores: {min: 1, max: 4}, defaultCoreFraction: 20%}]}")
	t.phase("web", spec.PhaseRunning)
	t.condition("web", spec.ConditionSizingPolicyMatched, "True", spec.ReasonSizingPolicyMatched)
	pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cpu := pod.Spec.Containers[0].Resources; pod.Spec.NodeSelector["kubernetes.io/os"] != "linux" || cpu.Requests.Cpu().MilliValue()%200 != 0 || cpu.Limits.Cpu().IsZero() {
		t.Errorf("%v, %+v", pod.Spec.NodeSelector, cpu)
	}

	// Changed, and then for sizes that the machine does not have; and gone.
	apply("{cpu: {type: Host}, nodeSelector: {matchLabels: {kubernetes.io/os: linux}}}")
	vm := t.condition("web", spec.ConditionAwaitingRestart, "True", spec.ReasonChangesPendingRestart)
	if !slices.ContainsFunc(vm.Status.RestartAwaitingChanges, func(c spec.AwaitingChange) bool { return c.Path == "spec.vm.cpuModel" }) {
		t.Errorf("%+v", vm.Status.RestartAwaitingChanges)
	}
	apply("{sizingPolicies: [{cores: {min: 100, max: 101}}]}")
	t.condition("web", spec.ConditionSizingPolicyMatched, "False", spec.ReasonSizingPolicyNotMatched)
	if err := classes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	vm = t.condition("web", spec.ConditionVirtualMachineClassReady, "False", spec.ReasonVirtualMachineClassNotFound)
	if vm.Status.Phase != spec.PhaseRunning || t.podUID("web") != string(pod.UID) {
		t.Errorf("it is %s in pod %s", vm.Status.Phase, t.podUID("web"))
	}
	if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionReady); c == nil || c.Status != metav1.ConditionTrue || len(vm.Status.RestartAwaitingChanges) > 0 {
		t.Errorf("%+v, %+v", c, vm.Status.RestartAwaitingChanges)
	}

	// A machine without a class has nothing of it.
	vm, err = t.status("other")
	if err != nil {
		t.Fatal(err)
	}
	if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionVirtualMachineClassReady); c != nil {
		t.Errorf("%+v", c)
	}

	// The columns.
	apply("{cpu: {type: Model, model: Nehalem-v1}}")
	t.condition("web", spec.ConditionVirtualMachineClassReady, "True", spec.ReasonVirtualMachineClassReady)
	out, err := cluster.Kubectl(t.Context(), "get", "vmclass", name)
	if err != nil || !strings.HasPrefix(out, "NAME") || !strings.Contains(out, "Model   Nehalem-v1") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Log("\n" + out)
	if code := o.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, o.log)
	}
}
