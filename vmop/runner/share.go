package runner

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/live"
)

// checkShare refuses what is not a directory, with a clearer error than the server's.
func checkShare(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("shared folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("shared folder: %s is no folder", dir)
	}
	return nil
}

// servesShare waits for the end of a process that serves a share. The machine goes on without the
// folder.
func (e *Engine) servesShare(m *machine, h *child) {
	<-h.done
	grace, cancel := context.WithTimeout(context.Background(), helperGrace)
	defer cancel()
	if m.qemu.wait(grace) == nil {
		return
	}
	e.mu.Lock()
	e.lostShares = append(e.lostShares, h.serves)
	e.mu.Unlock()
	e.message(LevelError, "%s", h.describe())
	e.wakeFollower()
}

func (e *Engine) shareConditions() []live.Condition {
	if len(e.o.Config.Runner.VM.Shares) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c := live.Condition{Type: conditions.SharesServed, Status: live.True, Reason: conditions.ReasonAsConfigured}
	if len(e.lostShares) > 0 {
		c.Status, c.Reason = live.False, conditions.ReasonServerEnded
		c.Message = fmt.Sprintf("the process that served %s has ended: what the guest does there waits; restart the machine", strings.Join(e.lostShares, ", "))
	}
	return []live.Condition{c}
}
