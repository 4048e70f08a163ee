package machine

import (
	"github.com/vmop/sdk/vmop/reconcile"
)

const actionRun = "Run"

// The reasons of other events about runs.
const (
	reasonRestarted      = "Restarted"
	reasonRequestRefused = "RequestRefused"
)

// TellsEnd reports whether an event is about an end of a machine that was not requested. Its
// reason is the cause.
func TellsEnd(e *reconcile.Event) bool {
	return e.Action == actionRun && e.Reason != reasonRestarted && e.Reason != reasonRequestRefused
}
