package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
)

// Bounds of a guest's answers, which end up in an object's status: a guest is not trusted.
const (
	maxInterfaces = 32
	maxAddresses  = 32  // of one interface
	maxGuestName  = 255 // bytes
	maxProblem    = 512 // bytes of one refusal
)

// guestInfo queries the guest agent. The agent's socket serves one client at a time, and others use
// it too (vmop-cli guest, the shutdown): each query is one short conversation, and is repeated
// later if another client holds the socket.
type guestInfo struct {
	e      *Engine
	client *qmp.Client
	socket string
	wake   chan struct{} // of follow

	mu      sync.Mutex
	inquiry live.Inquiry
	epoch   int // counts openings, closings and resets, which void earlier queries
}

func newGuestInfo(e *Engine, client *qmp.Client, socket string) *guestInfo {
	return &guestInfo{e: e, client: client, socket: socket, wake: make(chan struct{}, 1)}
}

func (g *guestInfo) change(void bool, next func(live.Inquiry) live.Inquiry) {
	g.mu.Lock()
	g.inquiry = next(g.inquiry)
	if void {
		g.epoch++
	}
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

func (g *guestInfo) port(open bool) {
	if open {
		g.change(true, func(q live.Inquiry) live.Inquiry { return q.Opened(time.Now()) })
	} else {
		g.change(true, live.Inquiry.Closed)
	}
	g.e.updateGuest(func(s *Guest) { s.AgentConnected = open })
}

func (g *guestInfo) reset() {
	g.change(true, live.Inquiry.Closed)
	g.e.updateGuest(func(s *Guest) { *s = Guest{} })
}

func (g *guestInfo) resumed() {
	g.change(false, func(q live.Inquiry) live.Inquiry { return q.Resumed(time.Now()) })
}

func (g *guestInfo) networkChanged() {
	g.change(false, func(q live.Inquiry) live.Inquiry { return q.NetworkChanged(time.Now()) })
}

func (g *guestInfo) signOfLife() {
	g.change(false, func(q live.Inquiry) live.Inquiry { return q.Stirred(time.Now()) })
}

func (e *Engine) updateGuest(change func(*Guest)) {
	e.reports(func() {
		after := e.state.Guest.clone()
		change(&after)
		if !reflect.DeepEqual(after, e.state.Guest) {
			e.state.Guest = after
			e.queueState()
		}
	})
}

func (g *guestInfo) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.client.Done():
			return
		case <-g.wake:
		case <-timer.C:
		}
		timer.Stop()
		g.mu.Lock()
		q, epoch := g.inquiry, g.epoch
		g.mu.Unlock()
		if q.Due.IsZero() {
			continue
		}
		if wait := time.Until(q.Due); wait > 0 {
			timer.Reset(wait)
			continue
		}
		complete := g.ask(ctx, epoch)
		g.mu.Lock()
		if g.epoch == epoch {
			g.inquiry = g.inquiry.Answered(time.Now(), complete)
		}
		due := g.inquiry.Due
		g.mu.Unlock()
		if !due.IsZero() {
			timer.Reset(time.Until(due))
		}
	}
}

// ask queries the agent once; complete reports that nothing is missing in its answers.
func (g *guestInfo) ask(ctx context.Context, epoch int) (complete bool) {
	// Otherwise QEMU does not announce the next change.
	_, _ = answer(ctx, g.client, queryRXFilter{}) // refused without such a card
	ctx, cancel := context.WithTimeout(ctx, guestDeadline)
	defer cancel()
	agent, err := qga.Dial(ctx, g.socket)
	if err != nil {
		return false // the machine ends, or QEMU is busy
	}
	answers, err := askAgent(ctx, agent)
	_ = agent.Close()
	if ctx.Err() != nil && !answers.booted {
		err = qga.ErrNoAnswer
	}
	g.mu.Lock()
	void := g.epoch != epoch
	g.mu.Unlock()
	if void {
		return false
	}
	g.e.updateGuest(func(s *Guest) { answers.into(s, err) })
	return err == nil && answers.complete()
}

type answers struct {
	booted     bool
	os         *qga.OSInfo
	hostName   *string
	interfaces []qga.Interface
	refused    []string // with the reasons
	noNetwork  bool     // it does not report its interfaces
}

// askAgent makes all queries. Only an answer to the synchronization proves that there is an agent;
// what it is not permitted to answer is left out.
func askAgent(ctx context.Context, agent *qga.Client) (answers, error) {
	var a answers
	if err := agent.Sync(ctx); err != nil {
		return a, err
	}
	a.booted = true
	for _, ask := range []func() error{
		func() error {
			os, err := agent.OSInfo(ctx)
			if err == nil {
				a.os = &os
			}
			return err
		},
		func() error {
			name, err := agent.HostName(ctx)
			if err == nil {
				a.hostName = &name
			}
			return err
		},
		func() error {
			interfaces, err := agent.Interfaces(ctx)
			a.interfaces, a.noNetwork = interfaces, err != nil
			return err
		},
	} {
		switch err := ask(); {
		case errors.As(err, new(*qga.Error)), errors.Is(err, qga.ErrProtocol):
			a.refused = append(a.refused, problemText(err))
		case err != nil:
			return a, err
		}
	}
	return a, nil
}

// complete reports whether the guest has a reachable address, or cannot report addresses.
func (a *answers) complete() bool {
	if a.noNetwork {
		return true
	}
	for _, i := range a.interfaces {
		for _, p := range i.Addresses {
			if reachable(p.Addr()) {
				return true
			}
		}
	}
	return false
}

func reachable(a netip.Addr) bool {
	return !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsUnspecified()
}

func (a *answers) into(g *Guest, err error) {
	g.Booted = g.Booted || a.booted
	problems := slices.Clip(a.refused)
	if err != nil && a.booted {
		problems = append(problems, problemText(err))
	}
	if a.os != nil {
		g.OSInfo = osInfo(a.os.Raw)
	}
	if a.hostName != nil {
		g.HostName = guestText(*a.hostName)
	}
	if !a.noNetwork && a.booted {
		g.Interfaces = nil
		for _, i := range a.interfaces[:min(len(a.interfaces), maxInterfaces)] {
			out := GuestInterface{Name: guestText(i.Name), MAC: guestText(i.HardwareAddress)}
			for _, p := range i.Addresses[:min(len(i.Addresses), maxAddresses)] {
				out.Addresses = append(out.Addresses, p.String())
			}
			g.Interfaces = append(g.Interfaces, out)
		}
	}
	if a.booted {
		g.Problem = strings.Join(problems, "; ")
	} else if err != nil && g.AgentConnected && !g.Booted {
		g.Problem = problemText(err)
	}
}

// osInfoKeys are the members of GuestOSInfo, all of them strings (qga/qapi-schema.json).
var osInfoKeys = []string{
	"id", "kernel-release", "kernel-version", "machine", "name",
	"pretty-name", "variant", "variant-id", "version", "version-id",
}

func osInfo(answer json.RawMessage) json.RawMessage {
	var said map[string]json.RawMessage
	if json.Unmarshal(answer, &said) != nil {
		return nil
	}
	known := map[string]string{}
	for _, key := range osInfoKeys {
		var text string
		if json.Unmarshal(said[key], &text) == nil && text != "" {
			known[key] = guestText(text)
		}
	}
	if len(known) == 0 {
		return nil
	}
	out, err := json.Marshal(known)
	if err != nil {
		return nil
	}
	return out
}

func problemText(err error) string {
	text := printable(err.Error())
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "..."
	}
	return text
}

// guestText makes a name that a guest chose safe for a status.
func guestText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	for i := range s {
		if i > maxGuestName {
			return s[:i]
		}
	}
	return s
}

// queryRXFilter queries the filters of the network cards. QEMU announces a change
// (NIC_RX_FILTER_CHANGED) only if it was queried since the last one.
type queryRXFilter struct{}

// QMP implements qmp.Command.
func (queryRXFilter) QMP() (string, json.RawMessage) { return "query-rx-filter", nil }
