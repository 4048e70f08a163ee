package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/rfb"
	"github.com/vmop/sdk/internal/spice"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// freeDisplayPort is a port that SPICE and VNC can have and nobody uses now.
func freeDisplayPort(t *testing.T) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if port >= 5900 {
			return port
		}
	}
}

// The display by VNC on TCP, beside SPICE: its one password, the expiry, its
// clients, and WebSockets.
func TestVNCPassword(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	secret := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(secret, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("display-password", "firstfirst")
	port, websocket := freeDisplayPort(t), freeDisplayPort(t)
	c.Runner.VM.Display = &runnerconfig.Display{
		SPICE: &runnerconfig.SPICE{Socket: filepath.Join(d.Runtime, qemucmd.SocketSPICE.FileName())},
		VNC:   &runnerconfig.VNC{Port: &port, Address: "127.0.0.1", Websocket: &websocket},
	}
	runnerconfig.Default(&c)
	r := start(t, c, d, func(o *Options) { o.DisplaySecretDir = secret })
	s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	if set := condition(s, live.DisplayPasswordSet); s.DisplayPasswordSerial != 1 || set.Status != live.True || !strings.Contains(set.Message, "8 bytes") {
		t.Errorf("serial %d, %+v", s.DisplayPasswordSerial, set)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	refused := func(what, password string) {
		t.Helper()
		conn, _, err := rfb.Open(withPatience(t), "tcp", address, password)
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, rfb.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a wrong password", "other")
	conn, screen, err := rfb.Open(withPatience(t), "tcp", address, "firstfir") // what VNC compares of it
	if err != nil {
		t.Fatal(err)
	}
	if screen.Width <= 0 || screen.Height <= 0 || !screen.Password {
		t.Errorf("screen %+v", screen)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for colors := 0; colors < 2; { // until the firmware has written something
		picture, err := rfb.Picture(conn, screen)
		if err != nil {
			t.Fatal(err)
		}
		colors = rfb.Colors(picture)
	}
	us, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	s = r.now(t, "the client is seen", func(s State) bool {
		return s.ConsoleClient == us && statusCondition(s, live.ConsoleConnected).Status == live.True
	})
	if want := []live.Client{{Protocol: live.VNC, Host: us, Port: strings.TrimPrefix(conn.LocalAddr().String(), us+":")}}; !slices.Equal(s.ConsoleClients, want) {
		t.Errorf("clients %+v, want %+v", s.ConsoleClients, want)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	r.now(t, "the client is gone", func(s State) bool {
		return s.ConsoleClient == "" && statusCondition(s, live.ConsoleConnected).Status == live.False
	})

	write("display-password", "second")
	r.rereadDisplaySecret()
	s = r.now(t, "the password is changed", func(s State) bool { return s.DisplayPasswordSerial == 2 })
	refused("the old password", "firstfir")
	conn, _, err = rfb.Open(withPatience(t), "tcp", address, "second")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	viewer, err := spice.Open(withPatience(t), spiceAt(s.Socket(qemucmd.SocketSPICE)), "second")
	if err != nil {
		t.Fatal(err)
	}
	if err := viewer.Close(); err != nil {
		t.Error(err)
	}

	upgrade(t, websocket)

	write("password-expiry", "now")
	r.rereadDisplaySecret()
	for ctx := withPatience(t); ; { // the door is closed soon
		conn, _, err := rfb.Open(ctx, "tcp", address, "second")
		if errors.Is(err, rfb.ErrRefused) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := r.State().DisplayPasswordSerial; got != 2 {
		t.Errorf("serial %d, want one for each password", got)
	}
	if got := r.eventsOf(live.ActionConsole); !slices.Contains(got, "Connection from "+us) {
		t.Errorf("events %q", got)
	}
	if r.log.said("second") || r.log.said("firstfir") {
		t.Error("the password is told")
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// upgrade opens a WebSocket (RFC 6455, section 4.1) as noVNC does.
func upgrade(t *testing.T, port int) {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if deadline, ok := withPatience(t).Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: binary\r\nOrigin: http://localhost\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("the WebSocket is answered with %s", reply.Status)
	}
}

// Without a password there is a UNIX socket that only the machine's owner opens.
func TestVNCSocket(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.Display = &runnerconfig.Display{VNC: &runnerconfig.VNC{Socket: filepath.Join(d.Runtime, qemucmd.SocketVNC.FileName())}}
	runnerconfig.Default(&c)
	r := start(t, c, d)
	s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	if s.DisplayPasswordSerial != -1 {
		t.Errorf("serial %d", s.DisplayPasswordSerial)
	}
	socket := s.Socket(qemucmd.SocketVNC)
	screen := r.view(t, socket, "")
	if screen.Width <= 0 || screen.Height <= 0 || screen.Password {
		t.Errorf("screen %+v", screen)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// With a password, who opens the socket without it is no client of the console.
func TestVNCSocketWithPassword(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.Display = &runnerconfig.Display{VNC: &runnerconfig.VNC{Socket: filepath.Join(d.Runtime, qemucmd.SocketVNC.FileName())}}
	runnerconfig.Default(&c)
	secret := t.TempDir()
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(secret, "display-password"), []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	r := start(t, c, d, func(o *Options) { o.DisplaySecretDir = secret })
	s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	socket := s.Socket(qemucmd.SocketVNC)
	stranger, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stranger, make([]byte, len("RFB 003.008\n"))); err != nil {
		t.Fatal(err)
	}
	// Its end makes the runner look who is there.
	if _, _, err := rfb.Open(withPatience(t), "unix", socket, "other"); !errors.Is(err, rfb.ErrRefused) {
		t.Errorf("a wrong password: %v", err)
	}
	write("second")
	r.rereadDisplaySecret()
	r.now(t, "the password is changed", func(s State) bool { return s.DisplayPasswordSerial == 2 })
	if err := stranger.Close(); err != nil {
		t.Error(err)
	}
	if got := r.eventsOf(live.ActionConsole); len(got) > 0 {
		t.Errorf("before anybody was let in: events %q", got)
	}
	if screen := r.view(t, socket, "second"); !screen.Password {
		t.Error("there is no password")
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// view is a viewer on a socket, who comes, is seen, and goes.
func (r *running) view(t *testing.T, socket, password string) rfb.Screen {
	t.Helper()
	conn, screen, err := rfb.Open(withPatience(t), "unix", socket, password)
	if err != nil {
		t.Fatal(err)
	}
	r.now(t, "the client is seen", func(s State) bool { return s.ConsoleClient == "unix" })
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	r.now(t, "the client is gone", func(s State) bool { return s.ConsoleClient == "" })
	return screen
}
