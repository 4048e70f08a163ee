package qga_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
)

func TestResultsAreDecoded(t *testing.T) {
	const osinfo = `{"id":"debian","pretty-name":"Debian GNU/Linux 12 (bookworm)","kernel-release":"6.1","odd":[1]}`
	agent := &qgatest.Agent{Handlers: map[string]qgatest.Handler{
		"guest-info":          returns(`{"version":"7.2","supported_commands":[{"name":"guest-ping","enabled":true,"success-response":true},{"name":"guest-exec","enabled":false}]}`),
		"guest-get-osinfo":    returns(osinfo),
		"guest-get-host-name": returns(`{"host-name":"web"}`),
		"guest-network-get-interfaces": returns(`[{"name":"lo","ip-addresses":[{"ip-address":"127.0.0.1","prefix":8}]},
			{"name":"eth0","hardware-address":"52:54:00:12:34:56","ip-addresses":[{"ip-address":"fe80::1%eth0","prefix":64}]},{"name":"eth1"}]`),
		"guest-get-time":             returns(`1700000000000000001`),
		"guest-fsfreeze-freeze":      returns(`3`),
		"guest-fsfreeze-thaw":        returns(`2`),
		"guest-fsfreeze-status":      returns(`"frozen"`),
		"guest-get-vcpus":            returns(`[{"logical-id":0,"online":true,"can-offline":false}]`),
		"guest-set-vcpus":            returns(`1`),
		"guest-exec":                 returns(`{"pid":42}`),
		"guest-exec-status":          returns(`{"exited":true,"exitcode":3,"out-data":"aGVsbG8=","err-truncated":true}`),
		"guest-fsfreeze-freeze-list": echoField("mountpoints"),
	}}
	c, ctx := connect(t, agent), soon(t)
	check := func(name string, want any, got any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	info, err := c.Info(ctx)
	check("Info", qga.Info{Version: "7.2", Commands: []qga.CommandInfo{{"guest-ping", true, true}, {"guest-exec", false, false}}}, info, err)
	check("Supports", []bool{true, false, false}, []bool{info.Supports("guest-ping"), info.Supports("guest-exec"), info.Supports("none")}, nil)
	osi, err := c.OSInfo(ctx)
	check("OSInfo", qga.OSInfo{ID: "debian", PrettyName: "Debian GNU/Linux 12 (bookworm)", KernelRelease: "6.1", Raw: []byte(osinfo)}, osi, err)
	name, err := c.HostName(ctx)
	check("HostName", "web", name, err)
	nics, err := c.Interfaces(ctx)
	check("Interfaces", []qga.Interface{
		{Name: "lo", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
		{Name: "eth0", HardwareAddress: "52:54:00:12:34:56", Addresses: []netip.Prefix{netip.MustParsePrefix("fe80::1/64")}},
		{Name: "eth1"},
	}, nics, err)
	now, err := c.GetTime(ctx)
	check("GetTime", time.Unix(1700000000, 1).UTC(), now, err)
	n, err := c.FSFreeze(ctx)
	check("FSFreeze", 3, n, err)
	n, err = c.FSFreeze(ctx, "/", "/home")
	check("FSFreeze of a list", 2, n, err)
	n, err = c.FSThaw(ctx)
	check("FSThaw", 2, n, err)
	frozen, err := c.FSFreezeStatus(ctx)
	check("FSFreezeStatus", qga.FSFrozen, frozen, err)
	cpus, err := c.GetVCPUs(ctx)
	check("GetVCPUs", []qga.VCPU{{Online: true}}, cpus, err)
	n, err = c.SetVCPUs(ctx, []qga.VCPU{{LogicalID: 1}})
	check("SetVCPUs", 1, n, err)
	if _, err = c.SetVCPUs(ctx, nil); !errors.Is(err, qga.ErrProtocol) {
		t.Errorf("SetVCPUs with a count that is too high: %v", err)
	}
	status, err := c.Run(ctx, qga.Program{Path: "echo", Args: []string{"hello; <&>"}, Input: []byte("in"), Capture: true})
	check("Run", qga.ExecStatus{Exited: true, ExitCode: 3, Stdout: []byte("hello"), StderrTruncated: true}, status, err)
	var sent string
	for _, r := range agent.Requests() {
		if r.Execute == "guest-exec" {
			sent = string(r.Arguments)
		}
	}
	check("request", `{"path":"echo","arg":["hello; \u003c\u0026\u003e"],"input-data":"aW4=","capture-output":true}`, sent, nil)
	if _, err := c.Execute(ctx, "none", nil); !errors.Is(err, qga.ErrCommandNotFound) {
		t.Error(err)
	}
}

// echoField answers with the length of a list in the arguments.
func echoField(name string) qgatest.Handler {
	return func(r qgatest.Request) (any, error) {
		return strings.Count(string(r.Arguments), "/"), nil
	}
}

func TestInterfacesRefusesWhatIsNoAddress(t *testing.T) {
	for _, text := range []string{
		`[{"name":"x","ip-addresses":[{"ip-address":"300.1.1.1","prefix":8}]}]`,
		`[{"name":"x","ip-addresses":[{"ip-address":"1.1.1.1","prefix":33}]}]`,
		`{}`,
	} {
		c := connect(t, &qgatest.Agent{Handlers: map[string]qgatest.Handler{"guest-network-get-interfaces": returns(text)}})
		if got, err := c.Interfaces(soon(t)); !errors.Is(err, qga.ErrProtocol) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestShutdown(t *testing.T) {
	silent := func(qgatest.Request) (any, error) { return nil, qgatest.ErrSilent }
	refuse := func(qgatest.Request) (any, error) { return nil, &qgatest.Error{Class: "GenericError", Desc: "busy"} }
	hangup := func(r qgatest.Request) qgatest.Fault {
		if r.Execute == "guest-shutdown" {
			return qgatest.Hangup
		}
		return qgatest.None
	}
	t.Run("taken", func(t *testing.T) {
		agent := &qgatest.Agent{Handlers: map[string]qgatest.Handler{"guest-shutdown": silent}}
		c := connect(t, agent)
		if err := c.Shutdown(soon(t), qga.Reboot); err != nil {
			t.Fatal(err)
		}
		if err := c.Ping(soon(t)); err != nil {
			t.Fatal(err)
		}
		requests := agent.Requests()
		if i := slices.IndexFunc(requests, func(r qgatest.Request) bool { return r.Execute == "guest-shutdown" }); string(requests[i].Arguments) != `{"mode":"reboot"}` {
			t.Errorf("sent %s", requests[i].Arguments)
		}
	})
	t.Run("refused", func(t *testing.T) {
		c := connect(t, &qgatest.Agent{Handlers: map[string]qgatest.Handler{"guest-shutdown": refuse}})
		var refusal *qga.Error
		if err := c.Shutdown(soon(t), qga.Powerdown); !errors.As(err, &refusal) || refusal.Command != "guest-shutdown" {
			t.Fatal(err)
		}
		if err := c.Ping(soon(t)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the machine is gone at once", func(t *testing.T) {
		c := connect(t, &qgatest.Agent{Fault: hangup})
		if err := c.Shutdown(soon(t), qga.Powerdown); err != nil {
			t.Fatal(err)
		}
		if err := c.Ping(soon(t)); !errors.Is(err, qga.ErrDisconnected) {
			t.Fatal(err)
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			agent := &qgatest.Agent{Fault: func(qgatest.Request) qgatest.Fault { return qgatest.Drop }}
			c := connect(t, agent)
			if err := c.Shutdown(context.Background(), qga.Powerdown); !errors.Is(err, qga.ErrNoAnswer) {
				t.Fatal(err)
			}
			for _, r := range agent.Requests() {
				if r.Execute == "guest-shutdown" {
					t.Error("a shutdown waits for the next agent")
				}
			}
		})
	})
}

// A guest without an agent: nobody reads the socket. The queue stays small, and
// the agent that starts at last is not flooded.
func TestSilenceIsNotFilledWithRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &qgatest.Agent{Fault: func(qgatest.Request) qgatest.Fault { return qgatest.Hold }}
		c := connect(t, agent)
		for range 100 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if err := c.Ping(ctx); !errors.Is(err, qga.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		if n := len(agent.Requests()); n > 8+100/8 {
			t.Errorf("%d requests for 100 calls", n)
		}
		agent.Fault = nil // nothing is being handled now
		agent.Release()
		if err := c.Ping(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// The same over a real socket whose buffer is full.
func TestWritingEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qga")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := qga.Dial(soon(t), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	// The agent answers a first synchronization, then the guest closes the port.
	go func() {
		buf := make([]byte, 4096)
		n, _ := peer.Read(buf)
		id := string(bytes.TrimRight(buf[bytes.LastIndexByte(buf[:n], ':')+1:n], "}\n"))
		_, _ = peer.Write([]byte("\xff{\"return\":" + id + "}\n"))
	}()
	if err := c.Sync(soon(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(ctx, qga.Program{Path: "cat", Input: make([]byte, 8<<20)}); !errors.Is(err, qga.ErrNoAnswer) {
		t.Fatal(err)
	}
	// An agent comes back, finds half a command and is usable.
	go new(qgatest.Agent).Serve(peer)
	if err := c.Ping(soon(t)); err != nil {
		t.Fatal(err)
	}
}

func TestALongReplyIsRefusedAndSkipped(t *testing.T) {
	c := connect(t, &qgatest.Agent{Handlers: map[string]qgatest.Handler{
		"guest-exec-status": func(qgatest.Request) (any, error) { return strings.Repeat("x", qga.MaxReply), nil },
	}})
	if _, err := c.Execute(soon(t), "guest-exec-status", nil); !errors.Is(err, qga.ErrTooLarge) {
		t.Fatal(err)
	}
	if err := c.Ping(soon(t)); err != nil {
		t.Fatal(err)
	}
}

// Few questions have long answers: a guest that gives one to another cannot have it
// decoded into a multiple, nor be listened to for ever.
func TestAnAnswerIsBounded(t *testing.T) {
	c := connect(t, &qgatest.Agent{Handlers: map[string]qgatest.Handler{
		"guest-network-get-interfaces": func(qgatest.Request) (any, error) {
			return json.RawMessage("[{}" + strings.Repeat(",{}", qga.MaxReply/3-10) + "]"), nil
		},
	}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.Interfaces(soon(t)); !errors.Is(err, qga.ErrTooLarge) {
		t.Fatal(err)
	}
	if err := c.Ping(soon(t)); !errors.Is(err, qga.ErrTooLarge) {
		t.Errorf("what was sent in addition: %v", err)
	}
	runtime.ReadMemStats(&after)
	// The agent of the test makes and sends the answer in this process, too.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*qga.MaxReply {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestCloseEndsTheCallInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, &qgatest.Agent{Fault: func(qgatest.Request) qgatest.Fault { return qgatest.Drop }})
		ended := make(chan error, 2)
		for range 2 { // one waits for the agent, the other for its turn
			go func() { ended <- c.Ping(context.Background()) }()
		}
		synctest.Wait()
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, qga.ErrClosed) {
				t.Error(err)
			}
		}
		if err := c.Ping(context.Background()); !errors.Is(err, qga.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestALostConnectionStaysLost(t *testing.T) {
	c := connect(t, &qgatest.Agent{Fault: func(qgatest.Request) qgatest.Fault { return qgatest.Hangup }})
	for range 2 {
		if err := c.Ping(soon(t)); !errors.Is(err, qga.ErrDisconnected) || !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	if _, err := qga.Dial(soon(t), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("dialled nothing")
	}
}

func TestErrorsAreSafeToPrint(t *testing.T) {
	err := &qga.Error{Command: "guest-exec", Class: qga.ClassGeneric, Desc: "a\x1b[2J\nb"}
	if got, want := err.Error(), `qga: guest-exec: "a\x1b[2J\nb"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
