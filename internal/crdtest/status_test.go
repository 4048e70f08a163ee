package crdtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/vmop/sdk/vmop/spec"
)

// newMachine stores the smallest machine.
func newMachine(t *testing.T, client dynamic.Interface, namespace, name string) {
	t.Helper()
	_, err := client.Resource(machines).Namespace(namespace).Create(t.Context(), machine(namespace, name, map[string]any{
		"spec": map[string]any{"vm": map[string]any{"maximumCpus": int64(2)}},
	}), strict)
	if err != nil {
		t.Fatal(err)
	}
}

// machine is an object with the given fields beside its metadata.
func machine(namespace, name string, fields map[string]any) *unstructured.Unstructured {
	fields["apiVersion"], fields["kind"] = spec.GroupVersion().String(), spec.KindVirtualMachine
	fields["metadata"] = map[string]any{"namespace": namespace, "name": name}
	return &unstructured.Unstructured{Object: fields}
}

// applyStatus is what a writer of the status does.
func applyStatus(t *testing.T, client dynamic.Interface, namespace, name, owner string, status map[string]any) *spec.VirtualMachine {
	t.Helper()
	stored, err := client.Resource(machines).Namespace(namespace).ApplyStatus(t.Context(), name,
		machine(namespace, name, map[string]any{"status": status}), metav1.ApplyOptions{FieldManager: owner})
	if err != nil {
		t.Fatalf("%s: %v", owner, err)
	}
	vm, err := fromObject[spec.VirtualMachine](stored)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func condition(conditionType, status, reason string) map[string]any {
	return map[string]any{"type": conditionType, "status": status, "reason": reason, "lastTransitionTime": "2026-06-01T12:00:00Z"}
}

// reasons are the reasons of a machine's conditions by type.
func reasons(vm *spec.VirtualMachine) map[string]string {
	out := map[string]string{}
	for _, c := range vm.Status.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason
	}
	return out
}

// Operator and runner write the status each with its own field owner. Neither
// undoes what the other wrote, and the conditions that nobody wrote stay.
func TestTwoWritersOfTheStatusKeepEachOthersConditions(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	newMachine(t, client, namespace, "shared")
	operator := func(status map[string]any) *spec.VirtualMachine {
		return applyStatus(t, client, namespace, "shared", "vmop-operator", status)
	}
	runner := func(status map[string]any) *spec.VirtualMachine {
		return applyStatus(t, client, namespace, "shared", "vmop-runner", status)
	}

	operator(map[string]any{
		"phase": "Running", "nodeName": "node-1",
		"conditions": []any{condition(spec.ConditionRunning, "True", spec.ReasonVMStarted)},
	})
	vm := runner(map[string]any{
		"cpus": int64(2), "ram": "1Gi",
		"conditions": []any{condition(spec.ConditionBooted, "True", spec.ReasonVMBooted)},
	})
	want := map[string]string{
		spec.ConditionRunning:            "True VmStarted",
		spec.ConditionBooted:             "True VmBooted",
		spec.ConditionVmopAgentConnected: "False Creation",
		spec.ConditionUserLoggedIn:       "False Creation",
		spec.ConditionConsoleConnected:   "False Creation",
	}
	if diff := cmp.Diff(want, reasons(vm)); diff != "" {
		t.Errorf("after both: -want +got\n%s", diff)
	}
	if vm.Status.Phase != "Running" || vm.Status.NodeName != "node-1" || vm.Status.CPUs != 2 || vm.Status.RAM.String() != "1Gi" {
		t.Errorf("status %+v", vm.Status)
	}

	// The same again is no write.
	again := runner(map[string]any{
		"cpus": int64(2), "ram": "1Gi",
		"conditions": []any{condition(spec.ConditionBooted, "True", spec.ReasonVMBooted)},
	})
	if again.ResourceVersion != vm.ResourceVersion {
		t.Errorf("the same status makes version %s of %s", again.ResourceVersion, vm.ResourceVersion)
	}

	// One writer changes its mind; the other's word stays.
	vm = operator(map[string]any{
		"phase":      "Stopping",
		"conditions": []any{condition(spec.ConditionRunning, "False", spec.ReasonVMTerminating)},
	})
	want[spec.ConditionRunning] = "False VmTerminating"
	if diff := cmp.Diff(want, reasons(vm)); diff != "" {
		t.Errorf("after the operator's change: -want +got\n%s", diff)
	}
	if vm.Status.Phase != "Stopping" || vm.Status.NodeName != "" || vm.Status.CPUs != 2 {
		t.Errorf("status %+v", vm.Status)
	}
	if vm.Generation != 1 {
		t.Errorf("the status made generation %d", vm.Generation)
	}
}

// The main resource ignores the status, and the status the specification.
func TestSpecificationAndStatusAreWrittenApart(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	newMachine(t, client, namespace, "apart")
	vms := client.Resource(machines).Namespace(namespace)
	both := func() *unstructured.Unstructured {
		object, err := vms.Get(t.Context(), "apart", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for path, value := range map[string]any{"spec": "Running", "status": "Running"} {
			fields := []string{"spec", "vm", "state"}
			if path == "status" {
				fields = []string{"status", "phase"}
			}
			if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
				t.Fatal(err)
			}
		}
		return object
	}
	stored, err := vms.UpdateStatus(t.Context(), both(), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	vm, err := fromObject[spec.VirtualMachine](stored)
	if err != nil {
		t.Fatal(err)
	}
	if vm.Spec.VM.State != spec.StateStopped || vm.Status.Phase != "Running" || vm.Generation != 1 {
		t.Errorf("status written: state %s, phase %s, generation %d", vm.Spec.VM.State, vm.Status.Phase, vm.Generation)
	}
	object := both()
	if err := unstructured.SetNestedField(object.Object, "Elsewhere", "status", "phase"); err != nil {
		t.Fatal(err)
	}
	if stored, err = vms.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if vm, err = fromObject[spec.VirtualMachine](stored); err != nil {
		t.Fatal(err)
	}
	if vm.Spec.VM.State != spec.StateRunning || vm.Status.Phase != "Running" || vm.Generation != 2 {
		t.Errorf("specification written: state %s, phase %s, generation %d", vm.Spec.VM.State, vm.Status.Phase, vm.Generation)
	}
}
