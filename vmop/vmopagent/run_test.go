package vmopagent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/vmopagent"
)

// running is a Run with the guest's end of its connection.
type running struct {
	guest  net.Conn
	lines  *bufio.Reader
	users  chan string
	ports  chan bool
	states chan vmopagent.State
	cancel context.CancelFunc
	ended  chan error
}

func start(m *vmopagent.Machine) *running {
	host, guest := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{
		guest: guest, lines: bufio.NewReader(guest),
		users: make(chan string), ports: make(chan bool),
		states: make(chan vmopagent.State, 100), cancel: cancel, ended: make(chan error, 1),
	}
	go func() {
		r.ended <- vmopagent.Run(ctx, host, m, vmopagent.Inputs{Users: r.users, Ports: r.ports}, func(s vmopagent.State) { r.states <- s })
	}()
	return r
}

func (r *running) expect(t *testing.T, want string) {
	t.Helper()
	if got, err := r.lines.ReadString('\n'); got != want+"\n" {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func (r *running) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(r.guest, text); err != nil {
		t.Fatal(err)
	}
}

func (r *running) state(t *testing.T, want vmopagent.State) {
	t.Helper()
	if got := <-r.states; got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vmopagent.NewMachine(vmopagent.Config{}, "alice")
		r := start(m)
		defer r.cancel()
		r.state(t, vmopagent.State{Wanted: "alice", Reason: vmopagent.ReasonDisconnected})
		r.say(t, strings.Repeat("noise ", 10000)+"\n22")
		r.say(t, "0 hello\r\n")
		r.expect(t, "login alice")
		r.state(t, vmopagent.State{Wanted: "alice", Connected: true, Reason: vmopagent.ReasonProcessing})
		r.say(t, "102 working\n201 done\n")
		r.state(t, vmopagent.State{Wanted: "alice", Connected: true, LoggedInUser: "alice", Reason: vmopagent.ReasonLoggedIn})
		r.users <- "alice" // says nothing and reports nothing
		r.users <- "bob"
		r.expect(t, "login bob")
		r.state(t, vmopagent.State{Wanted: "bob", Connected: true, LoggedInUser: "alice", Reason: vmopagent.ReasonProcessing})
		time.Sleep(vmopagent.DefaultTimeout) // the bubble's time
		r.state(t, vmopagent.State{Wanted: "bob", Connected: true, Reason: vmopagent.ReasonProcessing, Failure: vmopagent.FailureNoAnswer, Message: "login bob: no answer within 1m0s"})
		r.expect(t, "login bob") // again, after the pause
		r.say(t, "201 done\n")
		r.state(t, vmopagent.State{Wanted: "bob", Connected: true, LoggedInUser: "bob", Reason: vmopagent.ReasonLoggedIn})
		time.Sleep(time.Hour)
		r.ports <- false
		r.state(t, vmopagent.State{Wanted: "bob", Reason: vmopagent.ReasonDisconnected})
		r.ports <- true
		r.say(t, "220 again\n")
		r.expect(t, "login bob")
		r.say(t, "201\n")
		r.state(t, vmopagent.State{Wanted: "bob", Connected: true, Reason: vmopagent.ReasonProcessing})
		r.state(t, vmopagent.State{Wanted: "bob", Connected: true, LoggedInUser: "bob", Reason: vmopagent.ReasonLoggedIn})
		// The connection ends, and another one goes on with the same machine.
		_ = r.guest.Close()
		if err := <-r.ended; !errors.Is(err, vmopagent.ErrDisconnected) || !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		r.state(t, vmopagent.State{Wanted: "bob", Reason: vmopagent.ReasonDisconnected})
		r = start(m)
		r.state(t, vmopagent.State{Wanted: "bob", Reason: vmopagent.ReasonDisconnected})
		r.cancel()
		if err := <-r.ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

func TestRunEndsWhileItWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []string{"context", "deadline"} {
			r := start(vmopagent.NewMachine(vmopagent.Config{}, "alice"))
			r.say(t, "220\n") // and nobody reads
			synctest.Wait()
			want := vmopagent.ErrDisconnected
			if end == "context" {
				r.cancel()
				want = context.Canceled
			}
			if err := <-r.ended; !errors.Is(err, want) {
				t.Errorf("%s: %v", end, err)
			}
			r.cancel()
			_ = r.guest.Close()
		}
	})
}

func ExampleRun() {
	host, guest := net.Pipe()
	go func() { // an agent
		lines := bufio.NewScanner(guest)
		fmt.Fprintln(guest, "220 hello")
		for lines.Scan() {
			fmt.Fprintln(guest, "201", strings.TrimPrefix(lines.Text(), "login "), "is logged in")
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	m := vmopagent.NewMachine(vmopagent.Config{}, "alice")
	err := vmopagent.Run(ctx, host, m, vmopagent.Inputs{}, func(s vmopagent.State) {
		fmt.Printf("%s %q\n", s.Reason, s.LoggedInUser)
		if s.Reason == vmopagent.ReasonLoggedIn {
			cancel()
		}
	})
	fmt.Println(err)
	// Output:
	// VmopAgentDisconnected ""
	// Processing ""
	// LoggedIn "alice"
	// VmopAgentDisconnected ""
	// context canceled
}
