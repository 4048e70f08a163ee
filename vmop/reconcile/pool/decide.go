package pool

import (
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
)

// Decide maintains the assignments of a namespace, see [Upkeep]: each that changes is one
// [reconcile.Patch] of a machine's status. It also counts the machines of pools, in their
// statuses: see [Sizes]. It is total and deterministic. A machine without a resource version is
// not stored, and ignored.
func Decide(s Snapshot) reconcile.Plan {
	known := s.Pools[:len(s.Pools):len(s.Pools)]
	var plan reconcile.Plan
	for i := range s.Unreadable {
		u := &s.Unreadable[i]
		// An unparsable retention, so that nothing expires.
		known = append(known, spec.VmPool{ObjectMeta: u.Pool, Spec: spec.VmPoolSpec{Retention: "unreadable"}})
		if !u.Told {
			plan.Events = append(plan.Events, u.event())
		}
	}
	updates, wake := Upkeep(s.Machines, known, s.Now)
	plan.Wake = wake
	for i := range updates {
		a := updates[i].Action()
		if a.ResourceVersion == "" {
			continue
		}
		plan.Add(s.Failures, s.Now, a) // or retries it
	}
	size(&s, &plan)
	return plan
}
