package pool

import (
	"slices"

	"github.com/vmop/sdk/vmop/spec"
)

// User is an authenticated user.
type User struct {
	// Name is the user's name. A user with an empty one has only what roles grant.
	Name string
	// Roles are the names of the roles that the user has.
	Roles []string
}

// Actions is a set of actions. The zero value is empty, and equal sets compare as equal.
type Actions struct{ bits uint8 }

var allActions = [...]spec.Action{
	spec.ActionStart, spec.ActionStop, spec.ActionReset, spec.ActionAccessConsole, spec.ActionTakeConsole,
}

// NewActions returns a set: "*" stands for all actions, takeConsole includes accessConsole, and
// unknown actions are ignored.
func NewActions(actions ...spec.Action) Actions {
	var a Actions
	for _, action := range actions {
		switch i := slices.Index(allActions[:], action); {
		case action == spec.ActionAll:
			a.bits = 1<<len(allActions) - 1
		case i >= 0:
			a.bits |= 1 << i
		}
	}
	if a.has(spec.ActionTakeConsole) {
		a.bits |= 1 << slices.Index(allActions[:], spec.ActionAccessConsole)
	}
	return a
}

func (a Actions) has(action spec.Action) bool {
	i := slices.Index(allActions[:], action)
	return i >= 0 && a.bits&(1<<i) != 0
}

// Allow reports whether the action is in the set; for [spec.ActionAll], whether all are.
func (a Actions) Allow(action spec.Action) bool {
	if action == spec.ActionAll {
		return a == NewActions(spec.ActionAll)
	}
	return a.has(action)
}

// None reports whether the set is empty. A machine or a pool for which a user has no actions is
// not shown.
func (a Actions) None() bool { return a.bits == 0 }

// List returns the actions in the order of the constants of package spec.
func (a Actions) List() []spec.Action {
	var out []spec.Action
	for _, action := range allActions {
		if a.has(action) {
			out = append(out, action)
		}
	}
	return out
}

// Union returns the actions that are in either set.
func (a Actions) Union(b Actions) Actions { return Actions{bits: a.bits | b.bits} }

// MachineActions returns what the user may do with a machine that is addressed directly: the
// union of what its permissions grant to the user's name and roles.
func MachineActions(permissions []spec.Permission, u User) Actions {
	var may []spec.Action
	for _, p := range permissions {
		if u.matches(p.User, p.Role) {
			may = append(may, p.May...)
		}
	}
	return NewActions(may...)
}

// PoolActions returns what the user may do with a machine assigned from the pool. Permissions
// without a list grant accessConsole. Unlike in VM-Operator, "*" is expanded here too.
func PoolActions(permissions []spec.PoolPermission, u User) Actions {
	var may []spec.Action
	for _, p := range permissions {
		if !u.matches(p.User, p.Role) {
			continue
		}
		if p.May == nil {
			may = append(may, spec.ActionAccessConsole)
		}
		for _, action := range p.May {
			may = append(may, spec.Action(action))
		}
	}
	return NewActions(may...)
}

// ActionsThrough returns what the user may do with the machine through the pool: nothing, unless
// the machine is assigned to this user from this pool.
func ActionsThrough(pool *spec.VmPool, vm *spec.VirtualMachine, u User) Actions {
	if pool == nil || vm == nil {
		return Actions{}
	}
	a := vm.Status.Assignment
	if pool.Namespace != vm.Namespace || !isAssigned(a) || a.Pool != pool.Name || a.User != u.Name {
		return Actions{}
	}
	return PoolActions(pool.Spec.Permissions, u)
}

// matches reports whether a permission is for the user. Empty names never match.
func (u User) matches(user, role string) bool {
	return user != "" && user == u.Name || role != "" && slices.Contains(u.Roles, role)
}
