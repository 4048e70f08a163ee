package runner

import (
	"context"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// happened passes on what concerns the agents in the guest.
func (m *machine) happened(ev qmp.Event) error {
	switch ev.Name {
	case "VSERPORT_CHANGE":
		data, err := qmp.DecodeEvent[qmp.VSerPortChangeEvent](ev)
		if err != nil {
			return err
		}
		m.port(data.ID, data.Open)
	case "RESET":
		if m.guest != nil {
			m.guest.reset()
		}
	case "RESUME":
		if m.guest != nil {
			m.guest.resumed()
		}
	case "NIC_RX_FILTER_CHANGED":
		if m.guest != nil {
			m.guest.networkChanged()
		}
	default:
		if m.guest != nil && (ev.Name == "RTC_CHANGE" || letIn(ev.Name)) {
			m.guest.stirred()
		}
	}
	return nil
}

func (m *machine) port(id string, open bool) {
	switch {
	case id == qemucmd.GuestAgentChannel && m.guest != nil:
		m.guest.port(open)
	case id == qemucmd.VMOPAgentChannel && m.login != nil:
		m.login.port(open)
	}
}

// rereadPorts asks for the state of the agents' ports after events were lost.
func (m *machine) rereadPorts() error {
	for id, chardev := range map[string]string{
		qemucmd.GuestAgentChannel: qemucmd.GuestAgentChardev, qemucmd.VMOPAgentChannel: qemucmd.VMOPAgentChardev,
	} {
		ctx, cancel := context.WithTimeout(context.Background(), commandDeadline)
		open, err := channelOpen(ctx, m.client, chardev)
		cancel()
		if err != nil {
			return err
		}
		m.port(id, open)
	}
	return nil
}

// wantedUser is the user whom the VMOP agent is to log in; empty is none.
func wantedUser(c *runnerconfig.Config) string {
	if d := c.Runner.VM.Display; d != nil {
		return d.LoggedInUser
	}
	return ""
}
