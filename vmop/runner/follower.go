package runner

import (
	"errors"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
)

// follower applies the configuration to a machine: it observes, has package live decide, executes,
// and waits for events.
type follower struct {
	e       *Engine
	client  *qmp.Client
	machine live.Machine
	memory  live.Memory

	secret  displaySecret
	ramSaid time.Time       // the last report of the balloon
	viewers map[string]bool // admitted VNC clients
	// inDrive are the descriptor sets of the media in drives, by the drives' ids; media counts
	// them, and closing are those that QEMU was asked to close.
	inDrive     map[string]int
	media       int
	closing     []int
	hasUSB      bool
	hasAttached bool
	// hangs: QEMU has not answered the last command.
	hangs bool
	// resumed: QEMU was told to let the guest execute.
	resumed bool
}

func refusal(err error) bool {
	var e *qmp.Error
	return errors.As(err, &e)
}
