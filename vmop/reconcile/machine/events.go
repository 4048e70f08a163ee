package machine

import (
	"github.com/vmop/sdk/vmop/reconcile"
)

// actionRun is the action of the events about the runs of a machine.
const actionRun = "Run"

// The reasons of other events about runs.
const (
	reasonRestarted      = "Restarted"
	reasonRequestRefused = "RequestRefused"
)

// TellsEnd reports whether an event tells of the end of a machine, other than on
// request. Its reason is the cause.
func TellsEnd(e *reconcile.Event) bool {
	return e.Action == actionRun && e.Reason != reasonRestarted && e.Reason != reasonRequestRefused
}
