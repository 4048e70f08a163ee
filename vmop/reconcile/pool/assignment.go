package pool

import (
	"cmp"
	"time"

	"github.com/vmop/sdk/vmop/spec"
)

// isAssigned reports whether there is an assignment, which may also be stored as an empty one.
func isAssigned(a *spec.Assignment) bool { return a != nil && a.Pool != "" && a.User != "" }

func holds(vm *spec.VirtualMachine) bool {
	return vm.DeletionTimestamp == nil && isAssigned(vm.Status.Assignment)
}

// compareHeld orders a user's machines, the one to keep first.
func compareHeld(a, b *spec.VirtualMachine) int {
	return cmp.Or(
		compareBool(inUse(a), inUse(b)),
		lastUsed(b.Status.Assignment).Compare(lastUsed(a.Status.Assignment)),
		compareBool(isRunning(a), isRunning(b)),
		cmp.Compare(a.Name, b.Name))
}

func findPool(all []spec.VmPool, namespace, name string) *spec.VmPool {
	for i := range all {
		if p := &all[i]; p.Namespace == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

// lastUsed returns the time of the last use; the beginning of Unix time if there is none or it
// cannot be parsed.
func lastUsed(a *spec.Assignment) time.Time {
	if a == nil {
		return time.Unix(0, 0)
	}
	return parseTime(a.LastUsed)
}

func inUse(vm *spec.VirtualMachine) bool {
	return spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionConsoleConnected)
}

// expiry returns when the machine is free for the next user, if its console is not connected
// then: zero if it is not assigned. It is not known if the retention of its pool cannot be
// parsed.
//
// VM-Operator uses the retention of the requested pool instead, so that one pool can take away
// what another has assigned for longer.
func expiry(vm *spec.VirtualMachine, all []spec.VmPool) (end time.Time, known bool) {
	a := vm.Status.Assignment
	if !isAssigned(a) {
		return time.Time{}, true
	}
	pool := findPool(all, vm.Namespace, a.Pool)
	if pool == nil {
		return lastUsed(a).Add(poolGrace), true
	}
	retention, err := retentionOf(pool)
	if err != nil {
		return time.Time{}, false
	}
	end = retention.Until(lastUsed(a))
	if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConsoleConnected); c != nil {
		if t := retention.Until(c.LastTransitionTime.Time); t.After(end) {
			end = t
		}
	}
	return end, true
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// parseTime parses a time of an assignment: vmop writes whole seconds, VM-Operator fractions.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Unix(0, 0)
	}
	return t
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func isRunning(vm *spec.VirtualMachine) bool {
	return spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionRunning)
}

func retentionOf(pool *spec.VmPool) (spec.Retention, error) {
	pool = &spec.VmPool{Spec: spec.VmPoolSpec{Retention: pool.Spec.Retention}}
	spec.DefaultPool(pool)
	return spec.ParseRetention(pool.Spec.Retention)
}

// poolGrace is how long after its last use an assignment is not removed because its pool is
// unknown. Machines and pools are observed at different times; without it, the first users of a
// new pool would lose their machines.
const poolGrace = time.Minute
