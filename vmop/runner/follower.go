package runner

import (
	"errors"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
)

// follower keeps a machine as its configuration says: it observes, has package
// live decide, executes, and observes again. It waits for events.
type follower struct {
	e       *Engine
	client  *qmp.Client
	machine live.Machine
	memory  live.Memory

	secret  displaySecret
	ramSaid time.Time       // the last report of the balloon
	viewers map[string]bool // VNC clients that were let in
	// inDrive are the sets of descriptors of the media in drives, by the drives' ids; media is how
	// many were put in, and closing those that QEMU was asked to close.
	inDrive map[string]int
	media   int
	closing []int
	// hasUSB is whether the machine has, or has had, USB devices of the host.
	hasUSB bool
	// hasAttached is whether the machine has, or has had, disks that other pods export.
	hasAttached bool
}

// refusal reports whether QEMU answered, but with an error.
func refusal(err error) bool {
	var e *qmp.Error
	return errors.As(err, &e)
}
