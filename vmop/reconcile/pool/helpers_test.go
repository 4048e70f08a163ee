package pool_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/spec"
)

// noon is the time at which tests begin.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// option changes a machine of a test.
type option func(*spec.VirtualMachine)

func machine(name string, options ...option) spec.VirtualMachine {
	vm := spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: "uid-" + "0", ResourceVersion: "1"}}
	vm.Spec.Pools = []string{"students"}
	spec.Default(&vm)
	for _, o := range options {
		o(&vm)
	}
	return vm
}

func assigned(pool, user string, used time.Time) option {
	return func(vm *spec.VirtualMachine) {
		vm.Status.Assignment = &spec.Assignment{Pool: pool, User: user, LastUsed: used.Format(time.RFC3339)}
	}
}

func condition(conditionType string, status metav1.ConditionStatus, at time.Time) option {
	return func(vm *spec.VirtualMachine) {
		vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, spec.Condition{
			Type: conditionType, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(at),
		})
		// The time of the transition is the test's, also if the status is not new.
		spec.FindCondition(vm.Status.Conditions, conditionType).LastTransitionTime = metav1.NewTime(at)
	}
}

func running(vm *spec.VirtualMachine) {
	vm.Spec.VM.State = spec.StateRunning
	condition(spec.ConditionRunning, metav1.ConditionTrue, noon.Add(-time.Hour))(vm)
}

func connected(user string, at time.Time) option {
	return func(vm *spec.VirtualMachine) {
		vm.Status.ConsoleUser = user
		condition(spec.ConditionConsoleConnected, metav1.ConditionTrue, at)(vm)
	}
}

func disconnected(user string, at time.Time) option {
	return func(vm *spec.VirtualMachine) {
		vm.Status.ConsoleUser = user
		condition(spec.ConditionConsoleConnected, metav1.ConditionFalse, at)(vm)
	}
}

func memberOf(names ...string) option {
	return func(vm *spec.VirtualMachine) { vm.Spec.Pools = names }
}

func deleting(vm *spec.VirtualMachine) {
	now := metav1.NewTime(noon)
	vm.DeletionTimestamp = &now
}

// pool grants everything to the role student.
func newPool(name, retention string) spec.VmPool {
	return spec.VmPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab"},
		Spec: spec.VmPoolSpec{
			Retention:   retention,
			Permissions: []spec.PoolPermission{{Role: "student", May: []spec.PoolAction{spec.PoolActionAll}}},
		},
	}
}

func ago(d time.Duration) time.Time { return noon.Add(-d) }
