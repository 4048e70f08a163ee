package runner

import (
	"context"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
)

// mainChannel is the type of the channel that each SPICE client has once.
const mainChannel = 1

// observeSPICE queries the display's SPICE clients. Its events cannot be summed up: a client has
// many channels, and one on a UNIX socket no address.
func (f *follower) observeSPICE(ctx context.Context, _ desired) error {
	info, err := answer(ctx, f.client, qmp.QuerySpice{})
	if err != nil {
		if refusal(err) {
			return nil
		}
		return err
	}
	var clients []live.Client
	for _, c := range info.Channels {
		if c.ChannelType != mainChannel {
			continue
		}
		client := live.Client{Protocol: live.SPICE, Host: c.Host, Port: c.Port}
		if c.Family == "unix" {
			client.Host, client.Port = "unix", ""
		}
		clients = append(clients, client)
	}
	f.e.consoleClients(live.SPICE, clients)
	return nil
}

func spiceEvent(qmp.Event) (func(*desired), error) { return viewersChanged, nil }
