package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vmop/sdk/internal/spice"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// spiceAt dials a SPICE server on a UNIX socket.
func spiceAt(socket string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
}

// spiceFrom dials a SPICE server on a port of this host from one of this host's
// many loopback addresses.
func spiceFrom(host string, port int) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
		return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}
}

// spiceMachine is a machine with a display at a port and a password.
func spiceMachine(t *testing.T, password string) (r *running, port int) {
	t.Helper()
	d := testDirs(t)
	c := testConfig(t)
	secret := t.TempDir()
	if err := os.WriteFile(filepath.Join(secret, "display-password"), []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	port = freeDisplayPort(t)
	c.Runner.VM.Display = &runnerconfig.Display{SPICE: &runnerconfig.SPICE{Port: &port, Address: "127.0.0.1"}}
	runnerconfig.Default(&c)
	r = start(t, c, d, func(o *Options) { o.DisplaySecretDir = secret })
	r.until(t, "the password is set", func(s State) bool { return s.Phase == PhaseBooting && s.DisplayPasswordSerial == 1 })
	return r, port
}

// openViewer opens a session with the channels of a viewer, four connections in
// all, and checks that the display shows something.
func openViewer(t *testing.T, host string, port int, password string) *spice.Client {
	t.Helper()
	c, err := spice.Open(withPatience(t), spiceFrom(host, port), password)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, kind := range []uint8{spice.Display, spice.Inputs, spice.Cursor} {
		width, height, err := c.Attach(withPatience(t), spice.Channel{Type: kind})
		if err != nil {
			t.Fatalf("channel %d: %v", kind, err)
		}
		if kind == spice.Display && (width <= 0 || height <= 0) {
			t.Errorf("a screen of %d x %d", width, height)
		}
	}
	return c
}

// asClient is how a viewer is reported.
func asClient(t *testing.T, c *spice.Client) live.Client {
	t.Helper()
	host, port, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return live.Client{Protocol: live.SPICE, Host: host, Port: port}
}

// viewers reports whether these are the clients of the display.
func viewers(want ...live.Client) func(State) bool {
	return func(s State) bool {
		connected := statusCondition(s, live.ConsoleConnected).Status == live.True
		return slices.Equal(s.ConsoleClients, want) && s.ConsoleClient == live.ClientHosts(want) && connected == (len(want) > 0)
	}
}

// Viewers with all their channels: each counts once, at the address of its main
// channel. Without the password nobody gets in or disturbs the others. As SPICE
// has it, a new viewer takes the display over.
func TestSPICETakeover(t *testing.T) {
	t.Parallel()
	r, port := spiceMachine(t, "geheimnis")
	refused := func() {
		t.Helper()
		c, err := spice.Open(withPatience(t), spiceFrom("127.0.0.9", port), "other")
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, spice.ErrRefused) {
			t.Errorf("a wrong password: %v", err)
		}
	}
	refused()
	first := openViewer(t, "127.0.0.2", port, "geheimnis")
	r.now(t, "the viewer is seen", viewers(asClient(t, first)))
	refused()

	// A channel that goes is no viewer that goes.
	if err := first.Detach(spice.Channel{Type: spice.Display}); err != nil {
		t.Fatal(err)
	}
	tool, err := qmp.Dial(withPatience(t), r.State().Socket(qemucmd.SocketToolMonitor), qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	for ctx := withPatience(t); ; {
		info, err := qmp.Do(ctx, tool, qmp.QuerySpice{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(info.Channels, func(c qmp.SpiceChannel) bool { return c.ChannelType == spice.Display }) {
			break
		}
	}
	if s := r.State(); !viewers(asClient(t, first))(s) {
		t.Errorf("without its display channel: %+v, %+v", s.ConsoleClients, statusCondition(s, live.ConsoleConnected))
	}
	select {
	case <-first.Done():
		t.Error("the viewer was disconnected")
	default:
	}

	second := openViewer(t, "127.0.0.4", port, "geheimnis")
	select {
	case <-first.Done():
	case <-withPatience(t).Done():
		t.Error("the first viewer is still there")
	}
	r.now(t, "the other viewer has the display", viewers(asClient(t, second)))
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	r.now(t, "nobody is there", viewers())
	got := r.eventsOf(live.ActionConsole)
	slices.Sort(got[min(1, len(got)):max(len(got)-1, 1)]) // who is seen first depends on QEMU
	want := []string{"Connection from 127.0.0.2", "Connection from 127.0.0.4", "Disconnected from 127.0.0.2", "Disconnected from 127.0.0.4"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	r.cancel()
	r.wait(t)
}

// Several viewers at once, which the SPICE server allows when this variable is
// set: the display is connected until the last one goes.
func TestSPICEViewersTogether(t *testing.T) {
	t.Setenv("SPICE_DEBUG_ALLOW_MC", "1")
	r, port := spiceMachine(t, "geheimnis")
	first := openViewer(t, "127.0.0.2", port, "geheimnis")
	second := openViewer(t, "127.0.0.4", port, "geheimnis")
	s := r.now(t, "both are seen", viewers(asClient(t, first), asClient(t, second)))
	since := statusCondition(s, live.ConsoleConnected).LastTransitionTime
	if s.ConsoleClient != "127.0.0.2, 127.0.0.4" {
		t.Errorf("clients %q", s.ConsoleClient)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	s = r.now(t, "one is left", viewers(asClient(t, second)))
	if got := statusCondition(s, live.ConsoleConnected).LastTransitionTime; !got.Equal(since) {
		t.Errorf("connected since %v, before since %v", got, since)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	r.now(t, "nobody is there", viewers())
	r.cancel()
	r.wait(t)
}
