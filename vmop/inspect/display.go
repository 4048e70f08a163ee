package inspect

import (
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/spec"
)

func (r *Report) displayQueries() []func(context.Context, *qmp.Client) error {
	return []func(context.Context, *qmp.Client) error{r.querySPICE, r.queryVNC}
}

func (r *Report) querySPICE(ctx context.Context, c *qmp.Client) error {
	s, err := qmp.Do(ctx, c, qmp.QuerySpice{})
	if err != nil || !s.Enabled {
		return err
	}
	d := Display{Protocol: live.SPICE, Auth: s.Auth, Address: s.Host}
	if s.Port > 0 {
		d.Address = net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	}
	clients := map[int64]bool{}
	for _, ch := range s.Channels {
		clients[ch.ConnectionID] = true
	}
	d.Clients = len(clients)
	r.Displays = append(r.Displays, d)
	return nil
}

func (r *Report) queryVNC(ctx context.Context, c *qmp.Client) error {
	servers, err := qmp.Do(ctx, c, qmp.QueryVNCServers{})
	if err != nil {
		return err
	}
	for _, s := range servers {
		d := Display{Protocol: live.VNC, Auth: s.Auth, Clients: len(s.Clients)}
		for _, l := range s.Server {
			at := l.Service // the path of a socket
			if l.Family != "unix" {
				at = net.JoinHostPort(l.Host, l.Service)
			}
			// A host name may stand for an IPv4 and an IPv6 address.
			switch {
			case l.Websocket && d.Websocket == "":
				d.Websocket = at
			case !l.Websocket && d.Address == "":
				d.Address = at
			}
		}
		r.Displays = append(r.Displays, d)
	}
	return nil
}

func wantedDisplays(d *spec.Display) []string {
	var out []string
	for _, s := range d.Servers() {
		out = append(out, s.Protocol)
	}
	return out
}

func (r *Report) displayRows(wanted []string) [][2]string {
	var rows [][2]string
	served := map[string]bool{}
	for _, d := range r.Displays {
		served[d.Protocol] = true
		manifest := textout.None
		if slices.Contains(wanted, d.Protocol) {
			manifest = d.Protocol
		}
		rows = append(rows, [2]string{d.String(), manifest})
	}
	for _, protocol := range wanted {
		if !served[protocol] {
			rows = append(rows, [2]string{"", protocol})
		}
	}
	if len(rows) == 0 {
		rows = append(rows, [2]string{"", textout.None})
	}
	return rows
}
