package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/spec"
)

// Upkeep returns the changes of assignments that no request causes, in the order of the machines'
// names, and when to call it again without a change; zero means never:
//
//   - assignments from a pool that is not among the pools are removed, a minute after their last
//     use at the earliest,
//   - assignments that have expired are removed, unless the console is connected: the machine is
//     free, and its agent logs the user out. (In VM-Operator they stay until another user asks for
//     the machine.)
//   - the last use of an assignment follows the assigned user to the console and away from it.
//     (VM-Operator has this test inverted: it follows all other users.)
//   - of several machines that one user has from one pool only the one stays that is in use or was
//     used last. One whose console is connected is not taken back.
//
// The pools must be all of the namespaces of the machines. The machines must be all too, or a
// part that has either all or none of the machines assigned to one user from one pool. Both are
// unchanged.
func Upkeep(machines []spec.VirtualMachine, all []spec.VmPool, now time.Time) ([]Update, time.Time) {
	kept := map[holder]*spec.VirtualMachine{}
	for i := range machines {
		vm := &machines[i]
		if !holds(vm) {
			continue
		}
		key := holderOf(vm)
		if other := kept[key]; other == nil || compareHeld(vm, other) < 0 {
			kept[key] = vm
		}
	}
	var out []Update
	var wake time.Time
	for i := range machines {
		vm := &machines[i]
		if !holds(vm) {
			continue
		}
		a := vm.Status.Assignment
		if findPool(all, vm.Namespace, a.Pool) == nil {
			if end := lastUsed(a).Add(poolGrace); now.Before(end) {
				wake = earlier(wake, end)
			} else {
				out = append(out, newUpdate(vm, nil, PoolDeleted))
			}
			continue
		}
		if kept[holderOf(vm)] != vm && !inUse(vm) {
			out = append(out, newUpdate(vm, nil, Duplicate))
			continue
		}
		if end, known := expiry(vm, all); known && !inUse(vm) {
			if !now.Before(end) {
				out = append(out, newUpdate(vm, nil, Expired))
				continue
			}
			wake = earlier(wake, end)
		}
		if used := usedSince(vm); used != "" {
			next := *a
			next.LastUsed = used
			out = append(out, newUpdate(vm, &next, Used))
		}
	}
	slices.SortFunc(out, func(a, b Update) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, wake
}

type holder struct{ namespace, pool, user string }

func holderOf(vm *spec.VirtualMachine) holder {
	return holder{vm.Namespace, vm.Status.Assignment.Pool, vm.Status.Assignment.User}
}

// usedSince returns when the assigned user connected to the console or left it, if that is later
// than the assignment's last use; else it is empty.
func usedSince(vm *spec.VirtualMachine) string {
	a := vm.Status.Assignment
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConsoleConnected)
	if c == nil || c.Reason == spec.ReasonCreation || vm.Status.ConsoleUser != a.User {
		return ""
	}
	if used := formatTime(c.LastTransitionTime.Time); parseTime(used).After(lastUsed(a)) {
		return used
	}
	return ""
}

// earlier returns the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
