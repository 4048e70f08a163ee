package runner

import (
	"context"
	"errors"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
)

var errNoAgent = errors.New("no guest agent is connected")

func agentShutdown(ctx context.Context, c *qmp.Client, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, agentDeadline)
	defer cancel()
	open, err := channelOpen(ctx, c, qemucmd.GuestAgentChardev)
	if err != nil {
		return err
	}
	if !open {
		return errNoAgent
	}
	agent, err := qga.Dial(ctx, socket)
	if err != nil {
		return err
	}
	return errors.Join(agent.Shutdown(ctx, qga.Powerdown), agent.Close())
}

// channelOpen reports whether the guest has its end of a channel open: otherwise written data stays
// in the socket for ever.
func channelOpen(ctx context.Context, c *qmp.Client, label string) (bool, error) {
	chardevs, err := qmp.Do(ctx, c, qmp.QueryChardev{})
	if err != nil {
		return false, err
	}
	for _, d := range chardevs {
		if d.Label == label {
			return d.FrontendOpen, nil
		}
	}
	return false, nil
}
