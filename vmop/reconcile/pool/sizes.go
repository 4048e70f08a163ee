package pool

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
)

// sizesInterval is the minimum interval between writes of a pool's sizes: a thousand machines
// that are created or assigned cause few writes.
const sizesInterval = 5 * time.Second

// Sizes returns how many machines a pool has, how many of them are free and how many are used.
// Others are assigned from another pool, connected to a viewer, or being deleted.
func Sizes(pool string, members []Member) (machines, free, used int32) {
	for i := range members {
		m := &members[i]
		if !slices.Contains(m.Pools, pool) {
			continue
		}
		machines++
		switch {
		case m.Assigned == pool:
			used++
		case m.Assigned == "" && !m.Connected && !m.Goes:
			free++
		}
	}
	return machines, free, used
}

func size(s *Snapshot, plan *reconcile.Plan) {
	now := s.Now.UTC().Truncate(time.Second)
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.UID == "" || p.DeletionTimestamp != nil {
			continue
		}
		machines, free, used := Sizes(p.Name, s.Members)
		was := &p.Status
		if is(was.Machines, machines) && is(was.Free, free) && is(was.Used, used) {
			continue
		}
		if was.Counted != nil {
			// A time in the future is of a clock that was ahead.
			if next := was.Counted.Add(sizesInterval); s.Now.Before(next) && !was.Counted.After(s.Now) {
				plan.WakeAt(next)
				continue
			}
		}
		apply := reconcile.StatusApply{
			Kind: names.KindVMPool, Name: p.Name, UID: p.UID, Manager: names.OperatorStatusManager,
			Status: map[string]any{
				"machines": int64(machines), "free": int64(free), "used": int64(used), "counted": now.Format(time.RFC3339),
			},
		}
		if f := reconcile.Refused(s.Failures, apply.Target(), s.Now); f != nil {
			plan.WakeAt(f.RetryAt())
			continue
		}
		plan.Statuses = append(plan.Statuses, apply)
	}
}

func is(was *int32, n int32) bool { return was != nil && *was == n }
