package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// statusCondition finds one of VM-Operator's conditions of a state.
func statusCondition(s State, kind string) live.StatusCondition {
	for _, c := range s.StatusConditions {
		if c.Type == kind {
			return c
		}
	}
	return live.StatusCondition{}
}

// has reports whether a state has a condition with a reason.
func has(kind, reason string) func(State) bool {
	return func(s State) bool { return statusCondition(s, kind).Reason == reason }
}

// received are the commands that the tiny guest's login agent was sent.
func received(c *tinyguest.Console) []string {
	var out []string
	for line := range strings.Lines(c.Transcript()) {
		if _, text, ok := strings.Cut(line, "agent received: "); ok {
			out = append(out, strings.TrimSpace(text))
		}
	}
	return out
}

// The tiny guest's agents, over the real ports: a user is logged in when the agent
// starts and whenever another one is wanted, and no other change of the
// configuration sends anything. A reset begins anew.
func TestAgents(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordAgent, tinyguest.WordGuestAgent)
	vm := &c.Runner.VM
	secret := t.TempDir()
	put(t, filepath.Join(secret, "display-password"), "first")
	c.Runner.Generation = 1
	vm.MaximumCPUs = 2
	vm.Display = &runnerconfig.Display{LoggedInUser: "alice", SPICE: &runnerconfig.SPICE{Socket: filepath.Join(d.Runtime, qemucmd.SocketSPICE.FileName())}}
	runnerconfig.Default(&c)
	r := start(t, c, d, func(o *Options) { o.DisplaySecretDir = secret })
	user := func(name string) func(*runnerconfig.Runner) {
		return func(r *runnerconfig.Runner) {
			display := *r.VM.Display
			display.LoggedInUser = name
			r.VM.Display = &display
		}
	}

	console := r.console(t)
	s := r.now(t, "the user is logged in", func(s State) bool {
		return has(live.UserLoggedIn, live.ReasonLoggedIn)(s) && s.Guest.Booted
	})
	if s.Login.User != "alice" || !has(live.VmopAgentConnected, live.ReasonVmopAgentStarted)(s) {
		t.Errorf("%+v, %+v", s.Login, s.StatusConditions)
	}
	r.now(t, "the guest has told what it is", func(s State) bool { return s.Guest.OSInfo != nil && s.Guest.Problem != "" })
	s = r.State()
	var os struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(s.Guest.OSInfo, &os); err != nil || os.ID != "vmop-guest" {
		t.Errorf("operating system %s, %v", s.Guest.OSInfo, err)
	}
	if !strings.Contains(s.Guest.Problem, "guest-get-host-name") {
		t.Errorf("problem %q", s.Guest.Problem)
	}
	for _, k := range s.StatusConditions {
		if k.ObservedGeneration != 1 {
			t.Errorf("%+v", k)
		}
	}

	// What is no matter of the agent's sends it nothing.
	put(t, filepath.Join(secret, "display-password"), "second")
	r.rereadDisplaySecret()
	r.now(t, "another password", func(s State) bool { return s.DisplayPasswordSerial == 2 })
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs, r.Generation = 2, 2 })
	r.now(t, "two CPUs", func(s State) bool { return s.CPUs == 2 && statusCondition(s, live.Running).ObservedGeneration == 2 })
	r.reconfigure(t, &c, user("bob"))
	r.now(t, "the other user is logged in", func(s State) bool {
		return s.Login.User == "bob" && has(live.UserLoggedIn, live.ReasonLoggedIn)(s)
	})
	r.reconfigure(t, &c, user(""))
	r.now(t, "nobody is logged in", func(s State) bool { return s.Login.User == "" && has(live.UserLoggedIn, live.ReasonNotRequested)(s) })
	expect(t, console, "agent received: logout") // the console may be late
	if got, want := received(console), []string{"login alice", "login bob", "logout"}; !slices.Equal(got, want) {
		t.Errorf("the agent received %q, want %q", got, want)
	}

	// Others have their turn at the guest agent's port.
	agent, err := qga.Dial(t.Context(), r.State().Socket(qemucmd.SocketGuestAgent))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(agent.Ping(withPatience(t)), agent.Close()); err != nil {
		t.Error(err)
	}

	r.reconfigure(t, &c, user("carol"))
	r.now(t, "carol is logged in", has(live.UserLoggedIn, live.ReasonLoggedIn))
	one := int64(1)
	r.log.forget()
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.ResetCounter = &one })
	r.until(t, "the guest boots again", func(s State) bool {
		return !s.Guest.Booted && s.Guest.OSInfo == nil && has(live.Booted, live.ReasonVMStarted)(s)
	})
	r.until(t, "the agent is gone", has(live.UserLoggedIn, live.ReasonVmopAgentDisconnected))
	r.now(t, "everything is as before", func(s State) bool {
		return s.Guest.OSInfo != nil && s.Login.User == "carol" && has(live.Booted, live.ReasonVMBooted)(s)
	})

	r.Stop()
	if o, err := r.wait(t); err != nil || o.Cause != CauseRequested {
		t.Errorf("outcome %+v, %v", o, err)
	}
	s = r.State()
	for _, k := range s.StatusConditions {
		if k.Status != live.False || k.Reason != live.ReasonVMStopped {
			t.Errorf("%+v", k)
		}
	}
	if s.Login != (Login{}) || s.Guest.Booted || s.Guest.OSInfo != nil {
		t.Errorf("of a machine that is gone: %+v", s)
	}
	want := []string{"RunnerStarted", "VmStarted", "VmBooted", "VmStarted", "VmBooted", "VmTerminating", "VmStopped"}
	if got := r.eventsOf(live.ActionStatus); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	nothingLeft(t, d)
}

// The agent of the examples, which is killed and started again.
func TestAgentRestarts(t *testing.T) {
	t.Parallel()
	guest := guestWith(t, "vmop-agent", "../../examples/vmop-agent")
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.MaximumRAM = 192 << 20
	c.Runner.VM.KernelBoot.Kernel, c.Runner.VM.KernelBoot.Initrd = guest.Kernel, guest.Initrd
	c.Runner.VM.Display = &runnerconfig.Display{LoggedInUser: "alice"}
	runnerconfig.Default(&c)
	r := start(t, c, d)
	console := r.console(t)
	if s := r.State(); !has(live.UserLoggedIn, live.ReasonVmopAgentDisconnected)(s) || s.Guest.Booted {
		t.Errorf("%+v", s.StatusConditions)
	}
	run := func() string {
		t.Helper()
		process, ok := strings.CutPrefix(strings.TrimSpace(command(t, console, "exec /bin/vmop-agent")), "process ")
		if !ok {
			t.Fatal(process)
		}
		return process
	}
	process := run()
	r.now(t, "alice is logged in", has(live.UserLoggedIn, live.ReasonLoggedIn))
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.Display = &runnerconfig.Display{Outputs: 1, LoggedInUser: "root"} })
	s := r.now(t, "root is refused", func(s State) bool { return strings.Contains(s.Login.Message, "504") })
	if got := statusCondition(s, live.UserLoggedIn); got.Reason != live.ReasonProcessing || !strings.Contains(got.Message, "504") {
		t.Errorf("%+v", got)
	}
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.Display = &runnerconfig.Display{Outputs: 1, LoggedInUser: "bob"} })
	r.now(t, "bob is logged in", func(s State) bool { return s.Login.User == "bob" })
	command(t, console, "kill "+process)
	r.now(t, "the agent is gone", func(s State) bool {
		return has(live.VmopAgentConnected, live.ReasonVmopAgentDisconnected)(s) && s.Login.User == "" && statusCondition(s, live.UserLoggedIn).Status == live.False
	})
	run()
	r.now(t, "bob is logged in again", func(s State) bool {
		return s.Login.User == "bob" && has(live.UserLoggedIn, live.ReasonLoggedIn)(s)
	})
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// talk lets a fake agent answer the questions.
func talk(t *testing.T, handlers map[string]qgatest.Handler) (answers, error) {
	t.Helper()
	host, guest := net.Pipe()
	agent := &qgatest.Agent{Handlers: handlers}
	done := make(chan struct{})
	go func() {
		defer close(done)
		agent.Serve(guest)
	}()
	client := qga.New(host)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a, err := askAgent(ctx, client)
	_ = client.Close()
	_ = guest.Close()
	<-done
	return a, err
}

func TestAnswers(t *testing.T) {
	say := func(v string) qgatest.Handler {
		return func(qgatest.Request) (any, error) { return json.RawMessage(v), nil }
	}
	disabled := func(qgatest.Request) (any, error) {
		return nil, &qgatest.Error{Class: qga.ClassGeneric, Desc: "Command guest-get-osinfo has been disabled"}
	}
	const lo = `{"name":"lo","ip-addresses":[{"ip-address":"127.0.0.1","prefix":8,"ip-address-type":"ipv4"}]}`
	const link = `{"name":"eth0","hardware-address":"52:54:00:00:00:01","ip-addresses":[{"ip-address":"fe80::1","prefix":64,"ip-address-type":"ipv6"}]}`
	const eth = `{"name":"eth0","hardware-address":"52:54:00:00:00:01","ip-addresses":[{"ip-address":"10.0.2.15","prefix":24,"ip-address-type":"ipv4"}]}`
	before := Guest{AgentConnected: true, OSInfo: json.RawMessage(`{"id":"old"}`), HostName: "old"}
	for _, tt := range []struct {
		name     string
		handlers map[string]qgatest.Handler
		want     Guest
		problem  string
		complete bool
	}{
		{"everything", map[string]qgatest.Handler{"guest-get-osinfo": say(`{ "id": "debian" }`), "guest-get-host-name": say(`{"host-name":"web"}`), "guest-network-get-interfaces": say("[" + lo + "," + eth + "]")},
			Guest{OSInfo: json.RawMessage(`{"id":"debian"}`), HostName: "web", Interfaces: []GuestInterface{
				{Name: "lo", Addresses: []string{"127.0.0.1/8"}}, {Name: "eth0", MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.2.15/24"}},
			}}, "", true},
		{"no address yet", map[string]qgatest.Handler{"guest-get-osinfo": say(`{}`), "guest-get-host-name": say(`{"host-name":"web\n\u202e"}`), "guest-network-get-interfaces": say("[" + lo + "," + link + "]")},
			Guest{HostName: "web??", Interfaces: []GuestInterface{
				{Name: "lo", Addresses: []string{"127.0.0.1/8"}}, {Name: "eth0", MAC: "52:54:00:00:00:01", Addresses: []string{"fe80::1/64"}},
			}}, "", false},
		{"switched off", map[string]qgatest.Handler{"guest-get-osinfo": disabled},
			Guest{OSInfo: before.OSInfo, HostName: "old"}, "guest-get-osinfo has been disabled", true},
		{"talkative", map[string]qgatest.Handler{"guest-get-osinfo": func(qgatest.Request) (any, error) {
			return nil, &qgatest.Error{Class: qga.ClassGeneric, Desc: strings.Repeat("no ", 1<<14)}
		}}, Guest{OSInfo: before.OSInfo, HostName: "old"}, "guest-get-osinfo: \"no no", true},
		{"too much, and what no status can hold", map[string]qgatest.Handler{"guest-get-osinfo": say(`{"id":"` + strings.Repeat("x", 5000) + `","pretty-name":"De\u007fbi\u0085an","evil":{"a":1}}`), "guest-get-host-name": say(`{"host-name":"` + strings.Repeat("ä", 300) + `"}`), "guest-network-get-interfaces": say("[]")},
			Guest{OSInfo: json.RawMessage(`{"id":"` + strings.Repeat("x", 256) + `","pretty-name":"De?bi?an"}`), HostName: strings.Repeat("ä", 128)}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := talk(t, tt.handlers)
			if err != nil || a.complete() != tt.complete {
				t.Errorf("%v, complete %v", err, a.complete())
			}
			got := before.clone()
			a.into(&got, err)
			if !strings.Contains(got.Problem, tt.problem) || tt.problem == "" && got.Problem != "" {
				t.Errorf("problem %q", got.Problem)
			}
			if len(got.Problem) > 2048 {
				t.Errorf("%d bytes of a problem", len(got.Problem))
			}
			got.Problem, tt.want.AgentConnected, tt.want.Booted = "", true, true
			if g, w := text(t, got), text(t, tt.want); g != w {
				t.Errorf("%s, want %s", g, w)
			}
		})
	}
	if reachable(netip.MustParseAddr("169.254.1.1")) || !reachable(netip.MustParseAddr("2001:db8::1")) {
		t.Error("addresses are taken for others")
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
