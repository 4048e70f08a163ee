package pool_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

func TestMachineActions(t *testing.T) {
	all := []spec.Action{spec.ActionStart, spec.ActionStop, spec.ActionReset, spec.ActionAccessConsole, spec.ActionTakeConsole}
	for _, c := range []struct {
		name        string
		permissions []spec.Permission
		user        pool.User
		want        []spec.Action
	}{
		{"nothing is granted to everybody", nil, pool.User{Name: "ann"}, nil},
		{"to the user", []spec.Permission{{User: "ann", May: []spec.Action{"stop"}}}, pool.User{Name: "ann"}, []spec.Action{"stop"}},
		{"to a role", []spec.Permission{{Role: "ops", May: []spec.Action{"stop"}}}, pool.User{Name: "ann", Roles: []string{"ops"}}, []spec.Action{"stop"}},
		{"a role is not a user", []spec.Permission{{User: "ops", May: []spec.Action{"stop"}}}, pool.User{Name: "ann", Roles: []string{"ops"}}, nil},
		{"a user is not a role", []spec.Permission{{Role: "ann", May: []spec.Action{"stop"}}}, pool.User{Name: "ann"}, nil},
		{"the union of all that match", []spec.Permission{
			{User: "ann", May: []spec.Action{"reset"}}, {Role: "ops", May: []spec.Action{"start"}}, {User: "bob", May: []spec.Action{"stop"}},
		}, pool.User{Name: "ann", Roles: []string{"ops"}}, []spec.Action{"start", "reset"}},
		{"* is everything", []spec.Permission{{User: "ann", May: []spec.Action{"*"}}}, pool.User{Name: "ann"}, all},
		{"taking a console includes opening it", []spec.Permission{{User: "ann", May: []spec.Action{"takeConsole"}}}, pool.User{Name: "ann"}, []spec.Action{"accessConsole", "takeConsole"}},
		{"no action that this version does not know", []spec.Permission{{User: "ann", May: []spec.Action{"migrate"}}}, pool.User{Name: "ann"}, nil},
		{"nobody is nobody", []spec.Permission{{May: []spec.Action{"*"}}}, pool.User{}, nil},
		{"an empty role is none", []spec.Permission{{May: []spec.Action{"*"}}}, pool.User{Roles: []string{""}}, nil},
	} {
		if got := pool.MachineActions(c.permissions, c.user); !slices.Equal(got.List(), c.want) {
			t.Errorf("%s: %v, want %v", c.name, got.List(), c.want)
		}
	}
}

func TestPoolActions(t *testing.T) {
	ann := pool.User{Name: "ann"}
	for _, c := range []struct {
		name string
		may  []spec.PoolAction
		want []spec.Action
	}{
		{"no list is accessConsole", nil, []spec.Action{"accessConsole"}},
		{"an empty list is nothing", []spec.PoolAction{}, nil},
		{"* is everything", []spec.PoolAction{"*"}, []spec.Action{"start", "stop", "reset", "accessConsole", "takeConsole"}},
		{"as listed", []spec.PoolAction{"reset", "start"}, []spec.Action{"start", "reset"}},
	} {
		got := pool.PoolActions([]spec.PoolPermission{{User: "ann", May: c.may}}, ann)
		if !slices.Equal(got.List(), c.want) {
			t.Errorf("%s: %v, want %v", c.name, got.List(), c.want)
		}
		if got.None() != (len(c.want) == 0) || got.Allow("*") != (len(c.want) == 5) {
			t.Errorf("%s: none %t, all %t", c.name, got.None(), got.Allow("*"))
		}
	}
}

func TestActionsThroughAPoolNeedItsAssignment(t *testing.T) {
	ann := pool.User{Name: "ann", Roles: []string{"student"}}
	students, staff := newPool("students", "PT1h"), newPool("staff", "PT1h")
	elsewhere := newPool("students", "PT1h")
	elsewhere.Namespace = "other"
	free, mine := machine("a"), machine("a", assigned("students", "ann", noon))
	theirs := machine("a", assigned("students", "bob", noon))
	for _, c := range []struct {
		name string
		pool spec.VmPool
		vm   spec.VirtualMachine
		want bool
	}{
		{"mine", students, mine, true},
		{"free", students, free, false},
		{"of somebody else", students, theirs, false},
		{"of another pool", staff, mine, false},
		{"of a pool of that name elsewhere", elsewhere, mine, false},
	} {
		if got := pool.ActionsThrough(&c.pool, &c.vm, ann); got.None() == c.want {
			t.Errorf("%s: %v", c.name, got.List())
		}
	}
}

func TestActionsAreASet(t *testing.T) {
	action := rapid.SampledFrom([]spec.Action{"start", "stop", "reset", "accessConsole", "takeConsole", "*", "other"})
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.SliceOf(action).Draw(t, "x"), rapid.SliceOf(action).Draw(t, "y")
		both := pool.NewActions(append(slices.Clone(x), y...)...)
		if both != pool.NewActions(x...).Union(pool.NewActions(y...)) {
			t.Fatalf("%v: union differs", both.List())
		}
		if both != pool.NewActions(both.List()...) {
			t.Fatalf("%v: list differs", both.List())
		}
		for _, a := range both.List() {
			if !both.Allow(a) {
				t.Fatalf("%v: does not allow %s", both.List(), a)
			}
		}
		if both.Allow("takeConsole") && !both.Allow("accessConsole") {
			t.Fatal("takeConsole without accessConsole")
		}
	})
}
