package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/spec"
)

// Request is a user's request for a machine of a pool.
type Request struct {
	// Namespace and Pool are the pool's.
	Namespace, Pool string
	// User is the user who gets the machine.
	User User
	// Pools are all pools and Machines all machines of the namespace, as they are stored. Those
	// of other namespaces are ignored. Neither list is changed.
	Pools    []spec.VmPool
	Machines []spec.VirtualMachine
	// Now is the time.
	Now time.Time
}

// Reason is, in one word, why a [Decision] has no machine, or why its machine is not started. It
// is empty if all is well.
type Reason string

// The reasons.
const (
	// PoolNotFound means that there is no such pool.
	PoolNotFound Reason = "PoolNotFound"
	// NotPermitted means that the pool grants the user nothing.
	NotPermitted Reason = "NotPermitted"
	// InvalidRetention means that the pool's retention cannot be parsed.
	InvalidRetention Reason = "InvalidRetention"
	// PoolEnded means that the pool's retention is an instant which has passed: an assignment
	// would expire at once.
	PoolEnded Reason = "PoolEnded"
	// NoMachines means that no machine is a member of the pool.
	NoMachines Reason = "NoMachines"
	// AllInUse means that all machines of the pool are assigned or in use.
	AllInUse Reason = "AllInUse"
	// StartNotPermitted means that the machine is stopped and that the pool does not grant the
	// user to start it.
	StartNotPermitted Reason = "StartNotPermitted"
)

// Decision is the answer to a [Request]: first Update is written, if it is set, and then
// spec.vm.state is set to Running, if Start is.
type Decision struct {
	// Machine is the name of the user's machine, empty if there is none.
	Machine string
	// Update is the assignment to write before the machine is used; nil if the stored one is
	// right.
	Update *Update
	// Start is true if the machine does not run and is to be started, by [StartPatch] with the
	// resource version that the machine has then: the one that writing Update returned, or else
	// that of the view.
	Start bool
	// Reason and Message are why there is no machine or why it is not started.
	Reason  Reason
	Message string
	// Wake is when a machine may become free without a change; zero if none will, or if there is
	// a machine.
	Wake time.Time
}

// Assign decides which machine of a pool a user gets. The same request gives the same decision,
// in any order of machines and pools.
//
// A machine that is already assigned to the user from this pool is returned. Otherwise it is one
// without an assignment, or with an expired one, to whose console no viewer is connected: the one
// that was not used for the longest time, and of several such one that runs. Machines that are
// being deleted are not considered. An assignment expires by the retention of the pool that it
// was made from, counted from its last use and from the last time that a console was connected or
// disconnected.
//
// The request itself is a use: it extends the assignment, so that a machine is not lost while it
// boots. A user who may not start machines through the pool gets one that is to run anyway.
// (VM-Operator starts it regardless.)
func Assign(r Request) Decision {
	pool := findPool(r.Pools, r.Namespace, r.Pool)
	if pool == nil {
		return refuse(PoolNotFound, "the pool %q does not exist", r.Pool)
	}
	may := PoolActions(pool.Spec.Permissions, r.User)
	if may.None() || r.User.Name == "" {
		return refuse(NotPermitted, "the pool %q grants the user %q nothing", pool.Name, r.User.Name)
	}
	retention, err := retentionOf(pool)
	if err != nil {
		return refuse(InvalidRetention, "the pool %q has a retention that cannot be used: %v", pool.Name, err)
	}
	if vm := heldBy(r.Machines, pool, r.User.Name); vm != nil {
		return r.give(vm, pool, may)
	}
	if !retention.Instant.IsZero() && !r.Now.Before(retention.Instant) {
		return refuse(PoolEnded, "the pool %q has ended on %s", pool.Name, retention.Instant.UTC().Format(time.RFC3339))
	}

	members, stopped := 0, 0
	var free []*spec.VirtualMachine
	var wake time.Time
	for i := range r.Machines {
		vm := &r.Machines[i]
		if vm.Namespace != pool.Namespace || vm.DeletionTimestamp != nil || !slices.Contains(vm.Spec.Pools, pool.Name) {
			continue
		}
		members++
		if spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionConsoleConnected) {
			continue
		}
		if end, known := expiry(vm, r.Pools); !known {
			continue
		} else if r.Now.Before(end) {
			wake = earlier(wake, end)
			continue
		}
		if !vm.ShouldRun() && !may.Allow(spec.ActionStart) {
			stopped++
			continue
		}
		free = append(free, vm)
	}
	if len(free) > 0 {
		return r.give(slices.MinFunc(free, oldestFirst), pool, may)
	}
	var d Decision
	switch {
	case members == 0:
		d = refuse(NoMachines, "no machine is a member of the pool %q: name it in their spec.pools", pool.Name)
	case stopped > 0:
		d = refuse(StartNotPermitted, "machines of the pool %q are free but stopped, and it does not grant the user %q to start them", pool.Name, r.User.Name)
	default:
		d = refuse(AllInUse, "all %d machines of the pool %q are assigned or in use", members, pool.Name)
	}
	d.Wake = wake
	return d
}

func refuse(reason Reason, format string, args ...any) Decision {
	return Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (r *Request) give(vm *spec.VirtualMachine, pool *spec.VmPool, may Actions) Decision {
	d := Decision{Machine: vm.Name}
	want := spec.Assignment{Pool: pool.Name, User: r.User.Name, LastUsed: formatTime(r.Now)}
	old := vm.Status.Assignment
	if !isAssigned(old) || old.Pool != want.Pool || old.User != want.User || lastUsed(old).Before(parseTime(want.LastUsed)) {
		u := newUpdate(vm, &want, Requested)
		d.Update = &u
	}
	if vm.ShouldRun() {
		return d
	}
	if d.Start = may.Allow(spec.ActionStart); !d.Start {
		d.Reason = StartNotPermitted
		d.Message = fmt.Sprintf("the machine %q is stopped, and the pool %q does not grant the user %q to start it", vm.Name, pool.Name, r.User.Name)
	}
	return d
}

// heldBy returns the machine that is assigned to the user from the pool, or nil. If there are
// several, because the same user was served twice at the same time, it is the one that [Upkeep]
// keeps.
func heldBy(machines []spec.VirtualMachine, pool *spec.VmPool, user string) *spec.VirtualMachine {
	var best *spec.VirtualMachine
	for i := range machines {
		vm := &machines[i]
		if a := vm.Status.Assignment; holds(vm) && vm.Namespace == pool.Namespace && a.Pool == pool.Name && a.User == user && (best == nil || compareHeld(vm, best) < 0) {
			best = vm
		}
	}
	return best
}

// oldestFirst is the order in which free machines are assigned.
func oldestFirst(a, b *spec.VirtualMachine) int {
	return cmp.Or(
		lastUsed(a.Status.Assignment).Compare(lastUsed(b.Status.Assignment)),
		compareBool(isRunning(a), isRunning(b)),
		cmp.Compare(a.Name, b.Name))
}

// Expires returns when the machine's assignment ends without further use. It is false if the
// machine is not assigned, or from a pool that does not exist or whose retention cannot be
// parsed. [Upkeep] removes an assignment that has ended, unless the console is connected.
func Expires(vm *spec.VirtualMachine, all []spec.VmPool) (time.Time, bool) {
	if vm == nil {
		return time.Time{}, false
	}
	a := vm.Status.Assignment
	if !isAssigned(a) || findPool(all, vm.Namespace, a.Pool) == nil {
		return time.Time{}, false
	}
	return expiry(vm, all)
}
