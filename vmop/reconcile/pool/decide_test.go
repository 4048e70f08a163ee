package pool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

// A plan is what Upkeep asks for, and once it was carried out there is none.
func TestDecideCarriesOutUpkeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		s := pool.Snapshot{Machines: r.Machines, Pools: r.Pools, Now: r.Now}
		updates, wake := pool.Upkeep(r.Machines, r.Pools, r.Now)
		plan := pool.Decide(s)
		if len(plan.Actions) != len(updates) || !plan.Wake.Equal(wake) || len(plan.Statuses) > 0 || len(plan.Events) > 0 {
			t.Fatalf("%+v for %+v, %v", plan, updates, wake)
		}
		if diff := cmp.Diff(plan, pool.Decide(s)); diff != "" {
			t.Fatalf("the second plan differs: %s", diff)
		}
		for i, a := range plan.Actions {
			if a.Target() != (reconcile.Target{Verb: "patch", Kind: "VirtualMachine/status", Name: updates[i].Name}) {
				t.Fatalf("%s for %+v", a.Target(), updates[i])
			}
			data, err := json.Marshal(a.(reconcile.Patch).Body())
			if err != nil {
				t.Fatal(err)
			}
			patch, err := updates[i].Patch()
			if err != nil || string(patch) != string(data) {
				t.Fatalf("%s, and by itself %s, %v", data, patch, err)
			}
			for j := range s.Machines {
				if s.Machines[j].Name == updates[i].Name {
					vm := s.Machines[j].DeepCopy()
					vm.Status.Assignment = updates[i].Assignment
					s.Machines[j] = *vm
				}
			}
		}
		if again := pool.Decide(s); len(again.Actions) > 0 {
			t.Fatalf("there is still %+v", again)
		}
	})
}

func TestDecideRetriesLater(t *testing.T) {
	s := pool.Snapshot{
		Machines: []spec.VirtualMachine{machine("a", assigned("gone", "ann", ago(time.Hour))), machine("b", assigned("gone", "bob", ago(time.Hour)))},
		Now:      noon,
	}
	all := pool.Decide(s).Actions
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	s.Failures = []reconcile.Failure{{Target: all[0].Target(), Reason: "Forbidden", Count: 3, Last: noon}}
	plan := pool.Decide(s)
	if len(plan.Actions) != 1 || plan.Actions[0].Target() != all[1].Target() || !plan.Wake.Equal(noon.Add(4*time.Second)) {
		t.Errorf("%+v", plan)
	}
	s.Now = plan.Wake
	if again := pool.Decide(s); len(again.Actions) != 2 || !again.Wake.IsZero() {
		t.Errorf("%+v", again)
	}
}

func TestDecideLeavesUnreadablePoolsTheirAssignments(t *testing.T) {
	s := pool.Snapshot{
		Machines:   []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Hour)))},
		Unreadable: []pool.Unreadable{{Pool: metav1.ObjectMeta{Namespace: "lab", Name: "students", UID: "7"}, Err: errors.New("spec.retention: not a string")}},
		Now:        noon,
	}
	plan := pool.Decide(s)
	if len(plan.Actions) > 0 || len(plan.Events) != 1 {
		t.Fatalf("%+v", plan)
	}
	if e := plan.Events[0]; e.About.UID != "7" || e.About.Kind != spec.KindVMPool || !strings.Contains(e.Note, "spec.retention: not a string; until") {
		t.Errorf("%+v", e)
	}
	s.Unreadable[0].Told = true
	if plan := pool.Decide(s); len(plan.Actions)+len(plan.Events) > 0 {
		t.Errorf("%+v", plan)
	}
}
