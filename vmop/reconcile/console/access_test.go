package console_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

type option func(*spec.VirtualMachine)

func machine(options ...option) *spec.VirtualMachine {
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "desk", Namespace: "lab", UID: "u1", ResourceVersion: "7"}}
	spec.Default(vm)
	for _, o := range options {
		o(vm)
	}
	return vm
}

func condition(conditionType string, status metav1.ConditionStatus, reason string) option {
	return func(vm *spec.VirtualMachine) {
		vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, spec.Condition{Type: conditionType, Status: status, Reason: reason})
	}
}

var (
	running   = condition(spec.ConditionRunning, metav1.ConditionTrue, spec.ReasonVMBooted)
	connected = condition(spec.ConditionConsoleConnected, metav1.ConditionTrue, spec.ReasonConnected)
	anyLogin  = condition(spec.ConditionUserLoggedIn, metav1.ConditionFalse, spec.ReasonNotRequested)
)

func consoleUser(name string) option {
	return func(vm *spec.VirtualMachine) { vm.Status.ConsoleUser = name }
}

func loggedIn(name string) option {
	return func(vm *spec.VirtualMachine) {
		vm.Status.LoggedInUser = name
		condition(spec.ConditionUserLoggedIn, metav1.ConditionTrue, spec.ReasonLoggedIn)(vm)
	}
}

func TestMayOpen(t *testing.T) {
	none, access, take := pool.NewActions(spec.ActionStart), pool.NewActions(spec.ActionAccessConsole), pool.NewActions(spec.ActionTakeConsole)
	for _, c := range []struct {
		name string
		vm   *spec.VirtualMachine
		may  pool.Actions
		want console.Reason
	}{
		{"free", machine(running, anyLogin), access, ""},
		{"without the permission", machine(running, anyLogin), none, console.NotPermitted},
		{"stopped", machine(anyLogin), access, console.NotRunning},
		{"stopped, to take", machine(), take, console.NotRunning},
		{"in use", machine(running, anyLogin, connected, consoleUser("bob")), access, console.InUse},
		{"in use by nobody knows whom", machine(running, anyLogin, connected), access, console.InUse},
		{"in use, taken", machine(running, connected, consoleUser("bob")), take, ""},
		{"in use by the user", machine(running, anyLogin, connected, consoleUser("ann")), access, ""},
		{"used by somebody before", machine(running, anyLogin, consoleUser("bob")), access, ""},
		{"the user is logged in", machine(running, loggedIn("ann")), access, ""},
		{"somebody else is", machine(running, loggedIn("bob")), access, console.OtherUser},
		{"somebody else is, taken", machine(running, loggedIn("bob")), take, ""},
		{"somebody is to be logged in", machine(running, condition(spec.ConditionUserLoggedIn, metav1.ConditionFalse, spec.ReasonVmopAgentDisconnected)), access, console.OtherUser},
		{"nothing was told", machine(running), access, console.OtherUser},
		{"no conditions", machine(func(vm *spec.VirtualMachine) { vm.Status.Conditions = nil }), take, console.NotRunning},
	} {
		got := console.MayOpen(c.vm, c.may, "ann")
		if got.Reason != c.want || got.Allowed != (c.want == "") || (got.Message == "") != got.Allowed {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestNobodyIsNotTheUserOfAConsole(t *testing.T) {
	got := console.MayOpen(machine(running, anyLogin, connected), pool.NewActions(spec.ActionAccessConsole), "")
	if got.Reason != console.InUse {
		t.Errorf("%+v", got)
	}
}
