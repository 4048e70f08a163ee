package console

import (
	"fmt"

	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

// Reason is, in one word, why a console cannot be opened.
type Reason string

// The reasons.
const (
	// NotPermitted means that the user was granted neither accessConsole nor takeConsole.
	NotPermitted Reason = "NotPermitted"
	// NotRunning means that the machine does not run.
	NotRunning Reason = "NotRunning"
	// InUse means that another viewer is connected.
	InUse Reason = "InUse"
	// OtherUser means that another user is logged in, or is to be, or that the machine has not
	// reported that yet.
	OtherUser Reason = "OtherUser"
)

// Access is whether a user may open a console, and why not.
type Access struct {
	// Allowed is true if the user may. Then the other fields are empty.
	Allowed bool
	Reason  Reason
	Message string
}

// MayOpen decides whether the user may open the machine's console. The machine has to run. With
// takeConsole that suffices. With accessConsole no other viewer may be connected, and no other
// user be logged in by the guest's agent.
func MayOpen(vm *spec.VirtualMachine, may pool.Actions, user string) Access {
	if vm == nil {
		return deny(NotPermitted, "there is no machine")
	}
	s := &vm.Status
	switch {
	case !may.Allow(spec.ActionAccessConsole):
		return deny(NotPermitted, "the user %q may not open the console of the machine %q", user, vm.Name)
	case !spec.ConditionIsTrue(s.Conditions, spec.ConditionRunning):
		return deny(NotRunning, "the machine %q does not run", vm.Name)
	case may.Allow(spec.ActionTakeConsole):
		return Access{Allowed: true}
	case spec.ConditionIsTrue(s.Conditions, spec.ConditionConsoleConnected) && (user == "" || s.ConsoleUser != user):
		return deny(InUse, "the console of the machine %q is in use by %s", vm.Name, named(s.ConsoleUser))
	case user != "" && s.LoggedInUser == user:
		return Access{Allowed: true}
	case s.LoggedInUser != "":
		return deny(OtherUser, "the user %q is logged in to the machine %q", s.LoggedInUser, vm.Name)
	}
	switch c := spec.FindCondition(s.Conditions, spec.ConditionUserLoggedIn); {
	case c != nil && c.Reason == spec.ReasonNotRequested:
		return Access{Allowed: true}
	case c == nil || c.Reason == spec.ReasonCreation:
		return deny(OtherUser, "the machine %q has not told yet whether a user is logged in", vm.Name)
	default:
		return deny(OtherUser, "a user is being logged in to the machine %q, and its agent has not confirmed it: %s", vm.Name, c.Reason)
	}
}

func deny(reason Reason, format string, args ...any) Access {
	return Access{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func named(user string) string {
	if user == "" {
		return "somebody"
	}
	return fmt.Sprintf("the user %q", user)
}
