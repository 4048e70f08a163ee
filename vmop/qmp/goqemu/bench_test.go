package goqemu_test

import (
	"bufio"
	"context"
	"net"
	"testing"
	"time"

	goqemu "github.com/digitalocean/go-qemu/qmp"

	"github.com/vmop/sdk/vmop/qmp"
	adapter "github.com/vmop/sdk/vmop/qmp/goqemu"
	"github.com/vmop/sdk/vmop/qmp/internal/qemutest"
)

// BenchmarkQueryStatus compares one round trip of query-status to a real QEMU,
// over monitors of the same process: a bare socket as the floor, the client,
// the client behind go-qemu's interface, and go-qemu's own monitor.
//
// A lone command of the client carries no id. The last case shows what an id
// would cost: QEMU 7.2 reads its monitor byte by byte.
func BenchmarkQueryStatus(b *testing.B) {
	m := qemutest.Start(b, 5, "-machine", "none")
	ctx := b.Context()

	b.Run("bare", func(b *testing.B) { bare(b, m.Sockets[0], `{"execute":"query-status"}`+"\n") })
	b.Run("client", func(b *testing.B) {
		c, err := qmp.Dial(ctx, m.Sockets[1], qmp.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := qmp.Do(ctx, c, qmp.QueryStatus{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("client-deadline", func(b *testing.B) {
		c, err := qmp.Dial(ctx, m.Sockets[1], qmp.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		b.ReportAllocs()
		for b.Loop() {
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			if _, err := qmp.Do(bounded, c, qmp.QueryStatus{}); err != nil {
				b.Fatal(err)
			}
			cancel()
		}
	})
	b.Run("client-behind-go-qemu", func(b *testing.B) {
		mon := adapter.Dial(ctx, m.Sockets[2], qmp.Options{})
		run(b, mon)
	})
	b.Run("go-qemu-socketmonitor", func(b *testing.B) {
		mon, err := goqemu.NewSocketMonitor("unix", m.Sockets[3], time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		run(b, mon)
	})
	b.Run("bare-with-id", func(b *testing.B) { bare(b, m.Sockets[4], `{"execute":"query-status","id":12345}`+"\n") })
}

func run(b *testing.B, mon goqemu.Monitor) {
	if err := mon.Connect(); err != nil {
		b.Fatal(err)
	}
	defer mon.Disconnect()
	command := []byte(`{"execute":"query-status"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mon.Run(command); err != nil {
			b.Fatal(err)
		}
	}
}

func bare(b *testing.B, socket, command string) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	exchange := func(command string) {
		if command != "" {
			if _, err := conn.Write([]byte(command)); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	exchange("")
	exchange(`{"execute":"qmp_capabilities"}` + "\n")
	b.ReportAllocs()
	for b.Loop() {
		exchange(command)
	}
}
