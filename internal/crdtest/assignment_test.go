package crdtest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// patchStatus writes a merge patch of the status.
func patchStatus(t *testing.T, client dynamic.Interface, namespace, name, manager string, patch func() ([]byte, error)) (*spec.VirtualMachine, error) {
	t.Helper()
	data, err := patch()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := client.Resource(machines).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, data,
		metav1.PatchOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict}, "status")
	if err != nil {
		return nil, err
	}
	return fromObject[spec.VirtualMachine](stored)
}

func storedMachine(t *testing.T, client dynamic.Interface, namespace, name string) *spec.VirtualMachine {
	t.Helper()
	stored, err := client.Resource(machines).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	vm, err := fromObject[spec.VirtualMachine](stored)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// Of two users who saw the same free machine one gets it.
func TestAMachineIsAssignedOnce(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	newMachine(t, client, namespace, "desk")
	_, err := client.Resource(machines).Namespace(namespace).Patch(t.Context(), "desk", types.MergePatchType, []byte(`{"spec":{"pools":["students"]}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request := pool.Request{
		Namespace: namespace, Pool: "students", Now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		Pools: []spec.VmPool{{
			ObjectMeta: metav1.ObjectMeta{Name: "students", Namespace: namespace},
			Spec:       spec.VmPoolSpec{Permissions: []spec.PoolPermission{{Role: "student", May: []spec.PoolAction{spec.PoolActionAll}}}},
		}},
		Machines: []spec.VirtualMachine{*storedMachine(t, client, namespace, "desk")},
	}
	assign := func(user string) error {
		request.User = pool.User{Name: user, Roles: []string{"student"}}
		d := pool.Assign(request)
		if d.Machine != "desk" || d.Update == nil || !d.Start {
			t.Fatalf("%+v", d)
		}
		_, err := patchStatus(t, client, namespace, d.Machine, pool.StatusManager, d.Update.Patch)
		return err
	}
	if err := assign("ann"); err != nil {
		t.Fatal(err)
	}
	if err := assign("bob"); !apierrors.IsConflict(err) {
		t.Fatalf("a second user of the same view: %v", err)
	}
	want := spec.Assignment{Pool: "students", User: "ann", LastUsed: "2026-03-01T09:00:00Z"}
	if got := storedMachine(t, client, namespace, "desk").Status.Assignment; *got != want {
		t.Errorf("%+v", got)
	}

	// Operator and runner do not take it back.
	applyStatus(t, client, namespace, "desk", names.OperatorStatusManager, map[string]any{"phase": "Running"})
	applyStatus(t, client, namespace, "desk", names.RunnerStatusManager, map[string]any{"cpus": int64(1)})
	applyStatus(t, client, namespace, "desk", names.OperatorStatusManager, map[string]any{})
	vm := storedMachine(t, client, namespace, "desk")
	if got := vm.Status.Assignment; *got != want {
		t.Errorf("after others wrote: %+v", got)
	}
	for _, c := range []struct {
		version  string
		conflict bool
	}{{"1", true}, {vm.ResourceVersion, false}} {
		patch, err := pool.StartPatch(c.version)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Resource(machines).Namespace(namespace).Patch(t.Context(), "desk", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "ui"})
		if apierrors.IsConflict(err) != c.conflict || (err != nil) != c.conflict {
			t.Errorf("start of version %s: %v", c.version, err)
		}
	}
	if s := storedMachine(t, client, namespace, "desk").Spec.VM.State; s != spec.StateRunning {
		t.Errorf("the machine is %s", s)
	}
}

// Upkeep removes an assignment also if VM-Operator made it.
func TestAnAssignmentOfAnotherProgramIsRemoved(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	newMachine(t, client, namespace, "desk")
	// VM-Operator writes the status by a JSON patch without a name.
	_, err := client.Resource(machines).Namespace(namespace).Patch(t.Context(), "desk", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/status/assignment","value":{"pool":"gone","user":"ann","lastUsed":"2026-03-01T09:00:00.123456Z"}}]`),
		metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	vm := storedMachine(t, client, namespace, "desk")
	updates, _ := pool.Upkeep([]spec.VirtualMachine{*vm}, nil, time.Now())
	if len(updates) != 1 || updates[0].Cause != pool.PoolDeleted {
		t.Fatalf("%+v", updates)
	}
	got, err := patchStatus(t, client, namespace, "desk", pool.StatusManager, updates[0].Patch)
	if err != nil {
		t.Fatal(err)
	}
	if *got.Status.Assignment != (spec.Assignment{}) {
		t.Errorf("%+v", got.Status.Assignment)
	}
	if updates, _ := pool.Upkeep([]spec.VirtualMachine{*got}, nil, time.Now()); len(updates) != 0 {
		t.Errorf("once more: %+v", updates)
	}
}

// A machine that was deleted and made anew is not the one that was decided on.
func TestAnAssignmentIsForOneMachineNotForItsName(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	newMachine(t, client, namespace, "desk")
	vm := storedMachine(t, client, namespace, "desk")
	if err := client.Resource(machines).Namespace(namespace).Delete(t.Context(), "desk", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	newMachine(t, client, namespace, "desk")
	u := pool.Update{Namespace: namespace, Name: "desk", UID: vm.UID, ResourceVersion: vm.ResourceVersion, Assignment: &spec.Assignment{Pool: "p", User: "u"}}
	if _, err := patchStatus(t, client, namespace, "desk", pool.StatusManager, u.Patch); !apierrors.IsConflict(err) {
		t.Errorf("%v", err)
	}
}

// Of two requests that saw the same display secret one sets the password, and
// what it sets is what the runner will read.
func TestADisplayPasswordIsSetOnce(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	newMachine(t, client, namespace, "desk")
	applyStatus(t, client, namespace, "desk", names.RunnerStatusManager, map[string]any{
		"conditions": []any{condition(spec.ConditionRunning, "True", spec.ReasonVMBooted)},
	})
	vm := storedMachine(t, client, namespace, "desk")
	secret, err := toObject(objects.DisplaySecret(vm, "initial"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(secrets).Namespace(namespace).Create(t.Context(), secret, strict); err != nil {
		t.Fatal(err)
	}
	read := func() console.Request {
		stored, err := client.Resource(secrets).Namespace(namespace).Get(t.Context(), secret.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := fromObject[corev1.Secret](stored)
		if err != nil {
			t.Fatal(err)
		}
		return console.Request{VM: vm, User: "ann", Secret: s, Now: time.Now(), Candidate: "first"}
	}
	open := func(r console.Request) (console.Plan, error) {
		plan, err := console.Open(r)
		if err != nil || plan.NewPassword == nil {
			t.Fatalf("%+v, %v", plan, err)
		}
		data, err := plan.NewPassword.Patch()
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Resource(secrets).Namespace(namespace).Patch(t.Context(), plan.NewPassword.Name, types.MergePatchType, data, metav1.PatchOptions{})
		return plan, err
	}
	view := read()
	plan, err := open(view)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patchStatus(t, client, namespace, "desk", console.StatusManager, plan.User.Patch)
	if err != nil || got.Status.ConsoleUser != "ann" {
		t.Errorf("%v, %v", got, err)
	}
	view.Candidate = "second"
	if _, err := open(view); !apierrors.IsConflict(err) {
		t.Errorf("a second request of the same view: %v", err)
	}
	after := read()
	if s := string(after.Secret.Data[names.PasswordKey]); s != "first" {
		t.Errorf("the password is %q", s)
	}
	// A request that needs it for a shorter time uses it.
	after.VM, after.Validity = got, time.Second
	if again, err := console.Open(after); err != nil || again.NewPassword != nil || again.Password != "first" || again.User != nil {
		t.Errorf("%+v, %v", again, err)
	}
}
