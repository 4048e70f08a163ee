package pool_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

func TestUpkeep(t *testing.T) {
	for _, c := range []struct {
		name     string
		machines []spec.VirtualMachine
		want     []string
		wake     time.Time
	}{
		{name: "nothing is assigned", machines: []spec.VirtualMachine{machine("a"), machine("b", connected("ann", noon))}},
		{name: "nothing has happened", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Minute)))}, wake: noon.Add(59 * time.Minute)},
		{name: "the retention has passed", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Hour))), machine("b", assigned("staff", "ann", ago(time.Hour)))},
			want: []string{"a: Expired"}, wake: noon.Add(23 * time.Hour)},
		{name: "since the console was left", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(2*time.Hour)), disconnected("ann", ago(time.Hour)))},
			want: []string{"a: Expired"}},
		{name: "but somebody uses it", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(999*time.Hour)), connected("root", ago(998*time.Hour)))}},
		{name: "and of two one is in use", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(999*time.Hour)), connected("ann", ago(999*time.Hour))), machine("b", assigned("students", "ann", ago(999*time.Hour)))},
			want: []string{"b: Duplicate"}},
		{name: "a retention that nobody can read", machines: []spec.VirtualMachine{machine("a", assigned("odd", "ann", ago(999*time.Hour)))}},
		{name: "the user connects", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Hour)), connected("ann", ago(time.Minute)))},
			want: []string{"a: Used students/ann 2026-01-31T11:59:00Z"}},
		{name: "the user leaves", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Hour)), disconnected("ann", ago(time.Minute)))},
			want: []string{"a: Used students/ann 2026-01-31T11:59:00Z"}, wake: noon.Add(59 * time.Minute)},
		{name: "somebody else connects", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Hour)), connected("root", ago(time.Minute)))}},
		{name: "before the machine was the user's", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Minute)), disconnected("ann", ago(time.Hour)))}, wake: noon.Add(59 * time.Minute)},
		{name: "the pool is gone", machines: []spec.VirtualMachine{machine("a", assigned("gone", "ann", ago(time.Minute)), connected("ann", ago(time.Minute)))},
			want: []string{"a: PoolDeleted"}},
		{name: "or not yet in view", machines: []spec.VirtualMachine{machine("a", assigned("gone", "ann", ago(time.Second))), machine("b", assigned("gone", "bob", ago(2*time.Second)))},
			wake: noon.Add(58 * time.Second)},
		{name: "a user has two", machines: []spec.VirtualMachine{
			machine("c", assigned("students", "ann", ago(time.Minute))), machine("b", assigned("students", "ann", ago(time.Hour))), machine("a", assigned("students", "ann", ago(2*time.Hour))),
		}, want: []string{"a: Duplicate", "b: Duplicate"}, wake: noon.Add(59 * time.Minute)},
		{name: "one of which is in use", machines: []spec.VirtualMachine{
			machine("a", assigned("students", "ann", ago(time.Minute))), machine("b", assigned("students", "ann", ago(time.Hour)), connected("ann", ago(time.Hour))),
		}, want: []string{"a: Duplicate"}},
		{name: "or both", machines: []spec.VirtualMachine{
			machine("a", assigned("students", "ann", ago(time.Hour)), connected("ann", ago(time.Hour))), machine("b", assigned("students", "ann", ago(time.Hour)), connected("ann", ago(time.Hour))),
		}},
		{name: "of two pools", machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", noon)), machine("b", assigned("staff", "ann", noon))}, wake: noon.Add(time.Hour)},
		{name: "a machine is being deleted", machines: []spec.VirtualMachine{machine("a", assigned("gone", "ann", ago(time.Hour)), deleting)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			updates, wake := pool.Upkeep(c.machines, []spec.VmPool{newPool("students", "PT1h"), newPool("staff", "P1D"), newPool("odd", "P")}, noon)
			var got []string
			for _, u := range updates {
				line := fmt.Sprintf("%s: %s", u.Name, u.Cause)
				if a := u.Assignment; a != nil {
					line += fmt.Sprintf(" %s/%s %s", a.Pool, a.User, a.LastUsed)
				}
				if u.ResourceVersion != "1" {
					t.Errorf("%+v has no resource version", u)
				}
				got = append(got, line)
			}
			if !slices.Equal(got, c.want) || !wake.Equal(c.wake) {
				t.Errorf("%q, wake %v", got, wake)
			}
		})
	}
}

// Once carried out, nothing is left to do; at the time to look again there is.
func TestUpkeepConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		for range 3 {
			updates, wake := pool.Upkeep(r.Machines, r.Pools, r.Now)
			for _, u := range updates {
				for i := range r.Machines {
					if vm := r.Machines[i].DeepCopy(); vm.Name == u.Name {
						vm.Status.Assignment = u.Assignment
						r.Machines[i] = *vm
					}
				}
			}
			if again, _ := pool.Upkeep(r.Machines, r.Pools, r.Now); len(again) > 0 {
				t.Fatalf("%+v, and again %+v", updates, again)
			}
			if wake.IsZero() {
				return
			}
			if !wake.After(r.Now) {
				t.Fatalf("wake %v is not after %v", wake, r.Now)
			}
			if r.Now = wake; len(first(pool.Upkeep(r.Machines, r.Pools, r.Now))) == 0 {
				t.Fatalf("nothing to do at %v", wake)
			}
		}
	})
}

func first(updates []pool.Update, _ time.Time) []pool.Update { return updates }

func TestUpkeepOfManyMachinesIsLinear(t *testing.T) {
	all := []spec.VmPool{newPool("students", "PT1h")}
	var machines []spec.VirtualMachine
	for i := range 20_000 { // minutes if each were compared with each
		machines = append(machines, machine(fmt.Sprintf("m%d", i), assigned("students", fmt.Sprintf("u%d", i), noon)))
	}
	if updates, _ := pool.Upkeep(machines, all, noon); len(updates) > 0 {
		t.Error(updates)
	}
}
