package live_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
)

var statusTypes = []string{live.Running, live.Booted, live.VmopAgentConnected, live.UserLoggedIn, live.ConsoleConnected}

var anyFacts = rapid.Custom(func(t *rapid.T) live.Facts {
	client := rapid.Custom(func(t *rapid.T) live.Client {
		return live.Client{
			Protocol: rapid.SampledFrom([]string{"spice", "vnc"}).Draw(t, "protocol"),
			Host:     rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "unix"}).Draw(t, "host"),
			Port:     rapid.SampledFrom([]string{"", "1"}).Draw(t, "port"),
		}
	})
	return live.Facts{
		Stage:   rapid.SampledFrom([]live.Stage{live.StageStarting, live.StageRunning, live.StageRunning, live.StageTerminating, live.StageStopped}).Draw(t, "stage"),
		Message: rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "message"),
		Booted:  rapid.Bool().Draw(t, "booted"),
		Login: live.Login{
			Connected: rapid.Bool().Draw(t, "agent"),
			Wanted:    rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(t, "wanted"),
			Confirmed: rapid.Bool().Draw(t, "confirmed"),
			Message:   rapid.SampledFrom([]string{"", "no answer"}).Draw(t, "login message"),
		},
		Clients:    rapid.SliceOfN(client, 0, 3).Draw(t, "clients"),
		Generation: rapid.Int64Range(0, 3).Draw(t, "generation"),
	}
})

// Over any history: the conditions are complete and well-formed, times change
// with the status only and never go back, events are those of the transitions,
// and the same facts again are no news.
func TestReportProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before live.Reported
		now := time.Unix(1_700_000_000, 0)
		var opened, closed, events int
		for _, f := range rapid.SliceOfN(anyFacts, 1, 20).Draw(t, "facts") {
			// Clocks are set back.
			now = now.Add(time.Duration(rapid.IntRange(-5, 60).Draw(t, "seconds")) * time.Second)
			facts, kept := fmt.Sprintf("%#v", f), fmt.Sprintf("%#v", before)
			after, emitted := live.Report(before, f, now)
			if facts != fmt.Sprintf("%#v", f) || kept != fmt.Sprintf("%#v", before) {
				t.Fatal("an argument was changed")
			}
			wellFormed(t, after, f)
			for i, c := range after.Conditions {
				if len(before.Conditions) == 0 {
					continue
				}
				old := before.Conditions[i]
				switch {
				case old.Status == c.Status && !old.LastTransitionTime.Equal(c.LastTransitionTime):
					t.Fatalf("the time changed without the status: %+v, %+v", old, c)
				case c.LastTransitionTime.Before(old.LastTransitionTime):
					t.Fatalf("the time went back: %+v, %+v", old, c)
				}
			}
			status := 0
			for _, e := range emitted {
				switch {
				case e.Action == live.ActionStatus:
					status++
					if e.Reason != after.Conditions[0].Reason {
						t.Fatalf("event %+v of %+v", e, after.Conditions[0])
					}
				case e.Reason == "Connection from 10.0.0.1" || e.Reason == "Connection from 10.0.0.2" || e.Reason == "Connection from unix":
					opened++
				case e.Reason == "Disconnected from 10.0.0.1" || e.Reason == "Disconnected from 10.0.0.2" || e.Reason == "Disconnected from unix":
					closed++
				default:
					t.Fatalf("event %+v", e)
				}
			}
			changed := len(before.Conditions) == 0 || before.Conditions[0].Reason != after.Conditions[0].Reason
			if changed != (status == 1) || status > 1 {
				t.Fatalf("%d events of the stage, changed %v: %+v", status, changed, emitted)
			}
			if opened-closed != len(after.Clients) {
				t.Fatalf("%d clients came, %d left, and there are %v", opened, closed, after.Clients)
			}
			slices.Reverse(f.Clients) // which have no order
			again, repeated := live.Report(after, f, now.Add(time.Minute))
			if !reflect.DeepEqual(again, after) || len(repeated) > 0 {
				t.Fatalf("reported twice:\n%+v\n%+v\n%+v", after, again, repeated)
			}
			before = after
			events += len(emitted)
		}
		if events == 0 {
			t.Fatal("no event at all")
		}
	})
}

func wellFormed(t *rapid.T, r live.Reported, f live.Facts) {
	var types []string
	status, reason := map[string]live.Status{}, map[string]string{}
	for _, c := range r.Conditions {
		types = append(types, c.Type)
		status[c.Type], reason[c.Type] = c.Status, c.Reason
		if c.Status != live.True && c.Status != live.False || c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration != f.Generation {
			t.Fatalf("%+v", c)
		}
	}
	if !slices.Equal(types, statusTypes) {
		t.Fatalf("types %v", types)
	}
	for kind, s := range status {
		if kind != live.Running && s == live.True && status[live.Running] != live.True {
			t.Fatalf("%s of a machine that does not run: %+v", kind, r)
		}
		if kind != live.Running && kind != live.Booted && status[live.Running] == live.False && reason[kind] != live.ReasonVMStopped {
			t.Fatalf("%s: %s of a machine that does not run", kind, reason[kind])
		}
	}
	if reason[live.Running] != reason[live.Booted] {
		t.Fatalf("%+v", r)
	}
	if status[live.UserLoggedIn] == live.True && (status[live.VmopAgentConnected] != live.True || f.Login.Wanted == "" || !f.Login.Confirmed) {
		t.Fatalf("%+v", r)
	}
}

// VM-Operator's table of conditions, row by row.
func TestReportReasons(t *testing.T) {
	type row struct {
		status live.Status
		reason string
	}
	yes := func(reason string) row { return row{live.True, reason} }
	no := func(reason string) row { return row{live.False, reason} }
	alice := live.Login{Connected: true, Wanted: "alice"}
	confirmed := alice
	confirmed.Confirmed = true
	for _, tt := range []struct {
		name  string
		facts live.Facts
		want  []row
	}{
		{"starting", live.Facts{Stage: live.StageStarting, Login: live.Login{Wanted: "alice"}},
			[]row{no("RunnerStarted"), no("RunnerStarted"), no("VmStopped"), no("VmStopped"), no("VmStopped")}},
		{"the guest executes", live.Facts{Stage: live.StageRunning},
			[]row{yes("VmStarted"), no("VmStarted"), no("VmopAgentDisconnected"), no("NotRequested"), no("Disconnected")}},
		{"the guest agent answered", live.Facts{Stage: live.StageRunning, Booted: true, Login: live.Login{Wanted: "alice"}},
			[]row{yes("VmBooted"), yes("VmBooted"), no("VmopAgentDisconnected"), no("VmopAgentDisconnected"), no("Disconnected")}},
		{"a login is under way", live.Facts{Stage: live.StageRunning, Booted: true, Login: alice, Clients: []live.Client{{Host: "a"}}},
			[]row{yes("VmBooted"), yes("VmBooted"), yes("VmopAgentStarted"), no("Processing"), yes("Connected")}},
		{"logged in", live.Facts{Stage: live.StageRunning, Booted: true, Login: confirmed},
			[]row{yes("VmBooted"), yes("VmBooted"), yes("VmopAgentStarted"), yes("LoggedIn"), no("Disconnected")}},
		{"shutting down", live.Facts{Stage: live.StageTerminating, Booted: true, Login: confirmed},
			[]row{yes("VmTerminating"), no("VmTerminating"), yes("VmopAgentStarted"), yes("LoggedIn"), no("Disconnected")}},
		{"stopped", live.Facts{Stage: live.StageStopped, Booted: true, Login: confirmed, Clients: []live.Client{{Host: "a"}}},
			[]row{no("VmStopped"), no("VmStopped"), no("VmStopped"), no("VmStopped"), no("VmStopped")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := live.Report(live.Reported{}, tt.facts, time.Unix(0, 0))
			var got []row
			for _, c := range r.Conditions {
				got = append(got, row{c.Status, c.Reason})
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func ExampleReport() {
	viewer := live.Client{Protocol: "spice", Host: "10.0.0.7", Port: "40112"}
	var reported live.Reported
	for second, f := range []live.Facts{
		{Stage: live.StageStarting},
		{Stage: live.StageRunning},
		{Stage: live.StageRunning, Booted: true, Clients: []live.Client{viewer}},
		{Stage: live.StageRunning, Booted: true, Clients: []live.Client{viewer}},
		{Stage: live.StageRunning, Booted: true},
	} {
		var events []live.Event
		reported, events = live.Report(reported, f, time.Unix(int64(second), 0))
		for _, e := range events {
			fmt.Println(second, e.Action, e.Reason)
		}
	}
	c := reported.Conditions[0]
	fmt.Println(c.Type, c.Status, c.Reason, c.LastTransitionTime.Unix())
	// Output:
	// 0 StatusUpdate RunnerStarted
	// 1 StatusUpdate VmStarted
	// 2 StatusUpdate VmBooted
	// 2 ConsoleConnectionUpdate Connection from 10.0.0.7
	// 4 ConsoleConnectionUpdate Disconnected from 10.0.0.7
	// Running True VmBooted 1
}

// A machine whose guest is paused is there, and does not say that its guest executes; no
// event is told of that twice.
func TestReportOfAPausedGuest(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	running, _ := live.Report(live.Reported{}, live.Facts{Stage: live.StageRunning}, now)
	paused, events := live.Report(running, live.Facts{Stage: live.StageRunning, Paused: true}, now.Add(time.Minute))
	c := paused.Conditions[0]
	if c.Type != live.Running || c.Status != live.True || c.Message != "QEMU runs, and the guest is paused" || !c.LastTransitionTime.Equal(now) || len(events) > 0 {
		t.Errorf("%+v, %v", c, events)
	}
	again, events := live.Report(paused, live.Facts{Stage: live.StageRunning}, now.Add(time.Hour))
	if again.Conditions[0] != running.Conditions[0] || len(events) > 0 {
		t.Errorf("%+v, %v", again.Conditions[0], events)
	}
}
