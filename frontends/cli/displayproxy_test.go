package main

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"

	"errors"
	"syscall"

	"github.com/vmop/sdk/vmop/qmp"
)

// Several viewers at once each have a connection of their own, both ways, until
// they or the user end it.
// tooManyFiles is a listener that cannot take its first connection at once.
type tooManyFiles struct {
	net.Listener
	failed bool
}

func (l *tooManyFiles) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// A failure to take a connection that passes is told, and ends nothing.
func TestRelayOutlivesTooManyFiles(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	display, err := net.Listen("unix", filepath.Join(t.TempDir(), "display"))
	if err != nil {
		t.Fatal(err)
	}
	defer display.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	told := make(chan error, 1)
	go func() {
		done <- relay(ctx, &tooManyFiles{Listener: l}, "unix", display.Addr().String(), func(err error) { told <- err })
	}()
	if err := <-told; !errors.Is(err, syscall.EMFILE) {
		t.Errorf("told %v", err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	arrived := make(chan error, 1)
	go func() {
		far, err := display.Accept()
		if err == nil {
			err = far.Close()
		}
		arrived <- err
	}()
	select {
	case err := <-arrived:
		if err != nil {
			t.Error(err)
		}
	case err := <-done:
		t.Fatalf("the relay ended: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRelay(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "display")
	display, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer display.Close()
	go func() {
		for {
			c, err := display.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- relay(ctx, l, "unix", socket, func(err error) { t.Errorf("relay: %v", err) })
	}()
	var viewers []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		viewers = append(viewers, c)
	}
	for i, c := range viewers[1:] {
		text := string(rune('a' + i))
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); string(got) != text || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	cancel() // with one viewer still there
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(viewers[0]); err != nil {
		t.Logf("the end of the last viewer: %v", err)
	}
}

func TestVNCConnection(t *testing.T) {
	for _, tt := range []struct {
		info        qmp.VNCInfo
		uri, viewer string
	}{
		{qmp.VNCInfo{Family: "unix", Service: "/run/a b/vnc.sock"}, "vnc+unix:///run/a b/vnc.sock", "/run/a b/vnc.sock"},
		{qmp.VNCInfo{Family: "ipv4", Host: "0.0.0.0", Service: "5901"}, "vnc://127.0.0.1:5901", "127.0.0.1::5901"},
		{qmp.VNCInfo{Family: "ipv6", Host: "::", Service: "5901"}, "vnc://[::1]:5901", "[::1]::5901"},
	} {
		d, err := vncConnection(&tt.info)
		if err != nil || d.URI != tt.uri || vncViewers[0].args(d)[0] != tt.viewer {
			t.Errorf("%+v, %v, %v", d, err, vncViewers[0].args(d))
		}
	}
}
