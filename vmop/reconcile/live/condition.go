package live

import "fmt"

// Status of a condition, as in Kubernetes.
type Status string

// The statuses.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// The types of conditions. Each is True if all is well, except for
// RestartRequired.
const (
	CPUsAdjusted       = "CPUsAdjusted"
	MemoryAdjusted     = "MemoryAdjusted"
	MediaChanged       = "MediaChanged"
	DisplayPasswordSet = "DisplayPasswordSet"
	ResetDone          = "ResetDone"
	GuestExecuting     = "GuestExecuting"
	RestartRequired    = "RestartRequired"
)

// The reasons of conditions.
const (
	// ReasonAsConfigured goes with everything that is well.
	ReasonAsConfigured = "AsConfigured"
	// ReasonAdjusting means that something is under way; there is a time to look
	// again.
	ReasonAdjusting = "Adjusting"
	// ReasonAboveMaximum means that the wish is more than the machine was started
	// with, and was reached as far as possible.
	ReasonAboveMaximum = "AboveMaximum"
	// ReasonGuestDoesNotFollow means that the guest was asked in vain.
	ReasonGuestDoesNotFollow = "GuestDoesNotFollow"
	// ReasonRefused means that QEMU refused, or that the value makes no sense.
	ReasonRefused = "Refused"
	// ReasonNotSupported means that the machine lacks the device for it.
	ReasonNotSupported = "NotSupported"
	// ReasonWaitingForTray means that the guest has locked a CD tray. It ends
	// with an event.
	ReasonWaitingForTray = "WaitingForTray"
	// ReasonCurlMissing means that QEMU cannot read images over http.
	ReasonCurlMissing = "CurlMissing"
	// ReasonChangesWait means that changes take effect with the next start.
	ReasonChangesWait = "ChangesWait"
	// ReasonUpToDate is the absence of such changes.
	ReasonUpToDate = "UpToDate"
	// ReasonNoPassword means that the display has none.
	ReasonNoPassword = "NoPassword"
	// ReasonRunning, ReasonNotStarted, ReasonPaused and those below are QEMU's
	// run states.
	ReasonRunning    = "Running"
	ReasonNotStarted = "NotStarted"
	ReasonPaused     = "Paused"
	// ReasonDiskFull means that the machine waits for space on the host.
	ReasonDiskFull  = "DiskFull"
	ReasonDiskError = "DiskError"
	// ReasonGuestPanicked and ReasonWatchdog are pauses because of the guest.
	ReasonGuestPanicked = "GuestPanicked"
	ReasonWatchdog      = "Watchdog"
	ReasonInternalError = "InternalError"
	// ReasonStopped is any other state, which the message names.
	ReasonStopped = "Stopped"
)

// Condition says how far a part of the machine is as configured.
type Condition struct {
	Type    string `json:"type"`
	Status  Status `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

func (d *decider) condition(kind string, status Status, reason, format string, args ...any) {
	d.out.Conditions = append(d.out.Conditions, Condition{Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (d *decider) asConfigured(kind string) { d.condition(kind, True, ReasonAsConfigured, "") }
