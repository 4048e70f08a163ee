package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
)

// agentGreeting bounds the wait for an answer on the guest agent's channel, which may not be an
// agent's.
const agentGreeting = 5 * time.Second

// agent returns nil with the reason if the guest has no agent.
func (m *Machine) agent(ctx context.Context, c *qmp.Client) (*qga.Client, string, error) {
	chardevs, err := qmp.Do(ctx, c, qmp.QueryChardev{})
	if err != nil {
		return nil, "", err
	}
	open := func(d qmp.ChardevInfo) bool { return d.Label == qemucmd.GuestAgentChardev && d.FrontendOpen }
	if !slices.ContainsFunc(chardevs, open) {
		return nil, "it has no guest agent to freeze its file systems", nil
	}
	agent, err := qga.Dial(ctx, m.Socket(qemucmd.SocketGuestAgent))
	if err != nil {
		return nil, "", err
	}
	greeting, cancel := context.WithTimeout(ctx, agentGreeting)
	defer cancel()
	if err := agent.Ping(greeting); err != nil {
		return nil, "its agent does not answer: " + firstLine(err), agent.Close()
	}
	return agent, "", nil
}

// Thaw thaws the file systems of an executing guest, and reports whether any were frozen, as an
// interrupted copy may leave them. A guest without an agent has none.
func (m *Machine) Thaw(ctx context.Context) (thawed bool, err error) {
	err = m.monitor(ctx, func(c *qmp.Client) (err error) {
		thawed, err = m.thaw(ctx, c)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("thaw the file systems of %s: %w", m.FullName(), err)
	}
	return thawed, nil
}

func (m *Machine) thaw(ctx context.Context, c *qmp.Client) (thawed bool, err error) {
	agent, _, err := m.agent(ctx, c)
	if agent == nil || err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	answer, cancel := context.WithTimeout(ctx, agentGreeting)
	defer cancel()
	status, err := agent.FSFreezeStatus(answer)
	if errors.Is(err, qga.ErrCommandNotFound) || err == nil && status != qga.FSFrozen {
		return false, nil
	}
	if err == nil {
		_, err = agent.FSThaw(ctx)
	}
	return err == nil, err
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
