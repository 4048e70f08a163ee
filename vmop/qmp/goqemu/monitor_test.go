package goqemu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/go-qemu/qmp/raw"

	"github.com/vmop/sdk/vmop/qmp"
	adapter "github.com/vmop/sdk/vmop/qmp/goqemu"
	"github.com/vmop/sdk/vmop/qmp/internal/qemutest"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// deadline bounds the tests with a real QEMU; they take some milliseconds.
const deadline = 2 * time.Minute

// go-qemu's generated commands run over the adapter.
func TestRawCommandsOnARealMachine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	m := qemutest.Start(t, 1, "-machine", "q35", "-name", "adapted", "-device", "virtio-balloon-pci")
	mon := adapter.Dial(ctx, m.Sockets[0], qmp.Options{})
	if _, err := mon.Run([]byte(`{"execute":"query-status"}`)); !errors.Is(err, adapter.ErrNotConnected) {
		t.Errorf("got %v before Connect", err)
	}
	for range 2 { // and again after Disconnect
		if err := mon.Connect(); err != nil {
			t.Fatal(err)
		}
		events, err := mon.Events(ctx)
		if err != nil {
			t.Fatal(err)
		}
		typed := raw.NewMonitor(mon)
		name, err := typed.QueryName()
		if err != nil || name.Name == nil || *name.Name != "adapted" {
			t.Errorf("name %+v, %v", name, err)
		}
		if version, err := typed.QueryVersion(); err != nil || version.Qemu.Major < 7 {
			t.Errorf("version %+v, %v", version, err)
		}
		if balloon, err := typed.QueryBalloon(); err != nil || balloon.Actual != 128<<20 {
			t.Errorf("balloon %+v, %v", balloon, err)
		}
		if pci, err := typed.QueryPCI(); err != nil || len(pci) != 1 {
			t.Errorf("PCI %+v, %v", pci, err)
		}
		// Over 64 KiB, which ends go-qemu's own monitor (go-qemu #159).
		if reply, err := mon.Run([]byte(`{"execute":"query-qmp-schema"}`)); err != nil || len(reply) < 64<<10 {
			t.Errorf("schema of %d bytes, %v", len(reply), err)
		}
		if err := typed.DeviceDel("nowhere"); !errors.Is(err, qmp.ErrDeviceNotFound) {
			t.Errorf("got %v", err)
		}
		if err := typed.Cont(); err != nil {
			t.Error(err)
		}
		if err := typed.Stop(); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"RESUME", "STOP"} {
			e := <-events
			if e.Event != want || e.Timestamp.Seconds == 0 {
				t.Errorf("event %+v, want %s", e, want)
			}
		}
		if err := mon.Disconnect(); err != nil {
			t.Error(err)
		}
		if _, open := <-events; open {
			t.Error("stream of events is still open")
		}
	}
}

// over returns a connected monitor on a fake server, in a bubble.
func over(t *testing.T, o qmptest.Options) (mon *adapter.Monitor, s *qmptest.Server, end func()) {
	t.Helper()
	near, far := net.Pipe()
	s = qmptest.Start(far, o)
	c, err := qmp.NewClient(context.Background(), near, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mon = adapter.New(context.Background(), c)
	if err := mon.Connect(); err != nil {
		t.Fatal(err)
	}
	return mon, s, func() {
		if err := mon.Disconnect(); err != nil {
			t.Error(err)
		}
		_ = c.Close()
		s.Close()
	}
}

// The id is the caller's business: it may be anything, and is not what goes
// over the wire.
func TestIDsAreReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mon, _, end := over(t, qmptest.Options{Default: func(c *qmptest.Call) {
			var args map[string]any
			_ = c.Arguments(&args)
			c.Return(args)
		}})
		defer end()
		for _, id := range []string{``, `,"id":5`, `,"id":"x"`, `,"id":{"a":[1]}`} {
			got, err := mon.Run([]byte(`{"execute":"x","arguments":{"k":"v"}` + id + `}`))
			if want := `{"return":{"k":"v"}` + id + `}`; err != nil || string(got) != want {
				t.Errorf("got %s and %v, want %s", got, err, want)
			}
		}
		if _, err := mon.Run([]byte(`{"execute":`)); err == nil {
			t.Error("no error for half a command")
		}
		if _, err := mon.Run([]byte(`{}`)); err == nil {
			t.Error("no error for a command without a name")
		}
	})
}

// Events after a reply do not overwrite it (go-qemu #226), and an unread stream
// blocks neither Run nor Disconnect.
func TestBurstsHarmNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mon, _, end := over(t, qmptest.Options{Default: func(c *qmptest.Call) {
			c.Return(bytes.Repeat([]byte("r"), 300))
			for i := range 1000 {
				c.Server.Emit("BURST", map[string]any{"n": i})
			}
		}})
		defer end()
		if _, err := mon.Events(context.Background()); err != nil { // never read
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		read, err := mon.Events(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var first string
		for range 20 {
			got, err := mon.Run([]byte(`{"execute":"x"}`))
			if first == "" {
				first = string(got)
			}
			if err != nil || string(got) != first {
				t.Errorf("got %s and %v", got, err)
			}
		}
		if e := <-read; e.Event != "BURST" || e.Data["n"] == nil {
			t.Errorf("event %+v", e)
		}
		cancel()
		for range read { // ends with its context
		}
	})
}

func TestLostConnectionEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mon, s, end := over(t, qmptest.Options{})
		defer end()
		events, err := mon.Events(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		s.Emit("STOP", nil)
		s.Hangup()
		var got []string
		for e := range events {
			got = append(got, e.Event)
		}
		if fmt.Sprint(got) != "[STOP]" {
			t.Errorf("got %q", got)
		}
		if _, err := mon.Run([]byte(`{"execute":"x"}`)); !errors.Is(err, qmp.ErrDisconnected) {
			t.Errorf("got %v", err)
		}
		if err := mon.Connect(); !errors.Is(err, qmp.ErrDisconnected) {
			t.Errorf("reconnected a client that is gone: %v", err)
		}
	})
}

// Connect hangs while another client holds the monitor (go-qemu #206, #214);
// Disconnect ends that.
func TestDisconnectInterruptsConnect(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	m := qemutest.Start(t, 1, "-machine", "none")
	holder, err := qmp.Dial(ctx, m.Sockets[0], qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	mon := adapter.Dial(ctx, m.Sockets[0], qmp.Options{})
	var connecting sync.WaitGroup
	connecting.Go(func() {
		if err := mon.Connect(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		connecting.Wait()
	}()
	for { // Connect may not have begun when Disconnect is called
		if err := mon.Disconnect(); err != nil {
			t.Error(err)
		}
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
