package live

import (
	"github.com/vmop/sdk/vmop/conditions"
)

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
	CPUsAdjusted       = conditions.CPUsAdjusted
	MemoryAdjusted     = conditions.MemoryAdjusted
	MediaChanged       = conditions.MediaChanged
	DisplayPasswordSet = conditions.DisplayPasswordSet
	USBDevicesAttached = conditions.USBDevicesAttached
	ResetDone          = conditions.ResetDone
	GuestExecuting     = conditions.GuestExecuting
	RestartRequired    = conditions.AwaitingRestart
)

// The reasons of conditions.
const (
	// ReasonAsConfigured goes with everything that is well.
	ReasonAsConfigured = conditions.ReasonAsConfigured
	// ReasonMakingDisks means that the guest waits for disks that are created from images.
	ReasonMakingDisks = conditions.ReasonMakingDisks
	// ReasonAdjusting means that something is under way; [Decision.Wake] is set.
	ReasonAdjusting = conditions.ReasonAdjusting
	// ReasonAboveMaximum means that the machine was started with less than is desired, and has
	// reached that maximum.
	ReasonAboveMaximum = conditions.ReasonAboveMaximum
	// ReasonPodNotResized means that the guest gets more once its pod has been resized for it.
	ReasonPodNotResized = conditions.ReasonPodNotResized
	// ReasonGuestDoesNotFollow means that the guest did not respond to all attempts.
	ReasonGuestDoesNotFollow = conditions.ReasonGuestDoesNotFollow
	// ReasonRefused means that QEMU refused, or that the value is invalid.
	ReasonRefused = conditions.ReasonRefused
	// ReasonNotSupported means that the machine lacks the device for it.
	ReasonNotSupported = conditions.ReasonNotSupported
	// ReasonWaitingForTray means that the guest has locked a CD tray. An event reports its opening.
	ReasonWaitingForTray = conditions.ReasonWaitingForTray
	// ReasonCurlMissing means that QEMU cannot read images over http.
	ReasonCurlMissing = conditions.ReasonCurlMissing
	// ReasonChangesWait means that a change waits for the next start.
	ReasonChangesWait = conditions.ReasonChangesWait
	// ReasonChangesPendingRestart and ReasonNoRestartRequired are those of [RestartRequired].
	ReasonChangesPendingRestart = conditions.ReasonChangesPendingRestart
	ReasonNoRestartRequired     = conditions.ReasonNoRestartRequired
	// ReasonNoPassword means that the display has no password.
	ReasonNoPassword = conditions.ReasonNoPassword
	// ReasonRunning, ReasonNotStarted, ReasonPaused and those below are QEMU's
	// run states.
	ReasonRunning    = conditions.ReasonRunning
	ReasonNotStarted = conditions.ReasonNotStarted
	ReasonPaused     = conditions.ReasonPaused
	// ReasonDiskFull means that the machine waits for space on the host.
	ReasonDiskFull  = conditions.ReasonDiskFull
	ReasonDiskError = conditions.ReasonDiskError
	// ReasonGuestPanicked and ReasonWatchdog are pauses caused by the guest.
	ReasonGuestPanicked = conditions.ReasonGuestPanicked
	ReasonWatchdog      = conditions.ReasonWatchdog
	ReasonInternalError = conditions.ReasonInternalError
	// ReasonQEMUNotResponding is the runner's: nothing could be observed to decide about.
	ReasonQEMUNotResponding = conditions.ReasonQEMUNotResponding
	// ReasonStopped is any other state; the message names it.
	ReasonStopped = conditions.ReasonStopped
)

// Condition reports how far a part of the machine is as configured.
type Condition struct {
	Type    string `json:"type"`
	Status  Status `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}
