package runner

import (
	"context"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

var agentEvents = func() handlers[*machine] {
	h := handlers[*machine]{}
	with(h, func(m *machine, data qmp.VSerPortChangeEvent) { m.port(data.ID, data.Open) })
	guest := func(do func(*guestInfo), events ...qmp.EventData) {
		h.at(func(m *machine) {
			if m.guest != nil {
				do(m.guest)
			}
		}, events...)
	}
	guest((*guestInfo).reset, qmp.ResetEvent{})
	guest((*guestInfo).resumed, qmp.ResumeEvent{})
	guest((*guestInfo).networkChanged, qmp.NICRxFilterChangedEvent{})
	guest((*guestInfo).signOfLife, qmp.RTCChangeEvent{})
	return h
}()

func (m *machine) happened(ev qmp.Event) error {
	if do, is := agentEvents[ev.Name]; is {
		return do(m, ev)
	}
	if m.guest != nil && letIn(ev.Name) {
		m.guest.signOfLife()
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
