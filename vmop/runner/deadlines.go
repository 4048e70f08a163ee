package runner

import "time"

// These deadlines are generous, and do not expire in ordinary operation.
const (
	// startDeadline bounds the time to the monitor's greeting: 20 ms on an idle host.
	startDeadline   = 2 * time.Minute
	commandDeadline = 30 * time.Second
	// pingInterval is how often QEMU is asked whether it still answers.
	pingInterval = 30 * time.Second
	// quitGrace is the time for QEMU to flush its caches and end after the quit command, if there
	// is no power-down timeout.
	quitGrace = 5 * time.Second
	// termGrace is the time for QEMU to end by SIGTERM after it did not quit; a pod's termination
	// grace period includes it (objects.TerminationReserve).
	termGrace = 2 * time.Second
	// killGrace is the time for a killed process to disappear: one stuck in the kernel does not.
	killGrace    = 30 * time.Second
	eventGrace   = 5 * time.Second
	consoleFlush = 2 * time.Second
	helperGrace  = 2 * time.Second
	// orphanGrace is the time for an orphaned QEMU to flush its disks and end.
	orphanGrace = 10 * time.Second
	// lockInterval is the polling interval of a lock whose holder is ending: no event reports its
	// release.
	lockInterval = 20 * time.Millisecond
	// startInterval is the polling interval of a lock that is open in a process about to execute
	// its program.
	startInterval = time.Millisecond
	agentDeadline = 5 * time.Second
	// guestDeadline bounds a conversation with the guest agent: shorter than other clients wait for
	// their turn.
	guestDeadline = 8 * time.Second
)

func deadlineIn(d time.Duration) time.Time { return time.Now().Add(d) }
