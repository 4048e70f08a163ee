package runner

import (
	"context"
	"net"
	"slices"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
)

// observeVNC queries the display's VNC clients. QEMU lists a client from its connection on; only an
// event reports its admission. Clients on a UNIX socket have one name, so that all count as
// admitted once one is; only the machine's owner can connect there.
func (f *follower) observeVNC(ctx context.Context, in desired) error {
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

func vncEvent(ev qmp.Event) (func(*desired), error) {
	switch ev.Name {
	case "VNC_INITIALIZED":
		data, err := qmp.DecodeEvent[qmp.VNCInitializedEvent](ev)
		if err != nil {
			return nil, err
		}
		return func(w *desired) { w.console, w.viewers = true, append(w.viewers, vncClient(data.Client)) }, nil
	case "VNC_DISCONNECTED":
		return viewersChanged, nil
	}
	return nil, nil // connected, but not admitted yet
}
