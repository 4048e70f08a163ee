package runner

import "time"

// Every wait of the engine has one of these deadlines. They are generous: they end what would
// otherwise hang for ever, and do not expire in ordinary operation.
const (
	// startDeadline bounds the time from QEMU's start to the greeting of its
	// monitor, which takes 20 ms on an idle host.
	startDeadline = 2 * time.Minute
	// commandDeadline bounds the answer to one QMP command.
	commandDeadline = 30 * time.Second
	// quitGrace is the time QEMU gets to end after the command to quit where no power-down timeout
	// sets one: it writes back its caches.
	quitGrace = 5 * time.Second
	// termGrace is the time QEMU gets to end by a signal that it handles after it did not quit; a
	// pod's termination grace period includes it (objects.TerminationReserve).
	termGrace = 2 * time.Second
	// killGrace is the time a killed process gets to disappear: one that is stuck in the kernel
	// does not.
	killGrace = 30 * time.Second
	// eventGrace bounds the wait for the last events of a QEMU that has ended.
	eventGrace = 5 * time.Second
	// consoleFlush is the time the clients of the console get to read the rest.
	consoleFlush = 2 * time.Second
	// helperGrace is the time a helper gets to end after QEMU has ended, and vice versa.
	helperGrace = 2 * time.Second
	// orphanGrace is the time an orphaned QEMU gets to flush its disks and end.
	orphanGrace = 10 * time.Second
	// lockInterval is the pause between looks at a lock whose holder is ending:
	// no event tells of its release.
	lockInterval = 20 * time.Millisecond
	// startInterval is the pause between looks at a lock that a process has open which is
	// about to execute its program.
	startInterval = time.Millisecond
	// agentDeadline bounds the guest agent's answer to a synchronization.
	agentDeadline = 5 * time.Second
	// guestDeadline bounds a conversation with the guest agent, which blocks other clients: it is
	// shorter than they wait for their turn.
	guestDeadline = 8 * time.Second
)

func deadlineIn(d time.Duration) time.Time { return time.Now().Add(d) }
