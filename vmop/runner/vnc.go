package runner

import (
	"context"
	"net"
	"slices"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
)

// observeVNC finds out who is connected to the display by VNC. QEMU lists a
// client from its connection on, and tells only by an event that it was let in.
// Clients on a UNIX socket have one name, so that all of them count from when one
// was let in; only the machine's owner gets there.
func (f *follower) observeVNC(ctx context.Context, in wish) error {
	servers, err := answer(ctx, f.client, qmp.QueryVNCServers{})
	if err != nil {
		if refusal(err) {
			return nil
		}
		return err
	}
	seen := map[string]bool{}
	var clients []live.Client
	for _, s := range servers {
		for _, c := range s.Clients {
			name := vncClient(c)
			if !in.lost && !f.viewers[name] && !slices.Contains(in.viewers, name) {
				continue
			}
			seen[name] = true
			if c.Family == "unix" {
				c.Host, c.Service = "unix", ""
			}
			clients = append(clients, live.Client{Protocol: live.VNC, Host: c.Host, Port: c.Service})
		}
	}
	f.viewers = seen
	f.e.consoleClients(live.VNC, clients)
	return nil
}

func vncClient(c qmp.VNCClient) string { return net.JoinHostPort(c.Host, c.Service) }
