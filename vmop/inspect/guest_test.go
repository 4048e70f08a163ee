package inspect

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
)

// What the agents have told, beside the conditions, as inspect shows it.
// What was plugged is what the manifest has by the disk's name, whatever its position.
func TestPluggedDisksAreThoseOfTheManifest(t *testing.T) {
	r := Report{
		Disks:  []Disk{{Device: "disk0"}, {Device: "plugged-more-claim"}},
		Wanted: &Wanted{Disks: []WantedDisk{{Device: "disk0", Name: "a-disk"}, {Device: "disk1", Name: "more-claim"}, {Device: "cd0"}}},
	}
	r.matchPlugged()
	if got := r.Wanted.Disks; got[0].Device != "disk0" || got[1].Device != "plugged-more-claim" || got[2].Device != "cd0" {
		t.Errorf("%+v", got)
	}
}

func TestInspectShowsTheGuest(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := runner.State{
		Guest: runner.Guest{
			AgentConnected: true, Booted: true, OSInfo: json.RawMessage(`{"id":"debian","pretty-name":"Debian GNU/Linux 12"}`), HostName: "desk",
			Interfaces: []runner.GuestInterface{{Name: "lo", Addresses: []string{"127.0.0.1/8"}}, {Name: "ens2", MAC: "52:54:00:12:34:56", Addresses: []string{"10.0.2.15/24", "fe80::1/64"}}},
		},
		Login: runner.Login{AgentConnected: true, Wanted: "bob", User: "alice", Reason: live.ReasonProcessing, Message: "login bob: the agent says 451 failed"},
	}
	reported, _ := live.Report(live.Reported{}, live.Facts{Stage: live.StageRunning, Booted: true, Login: live.Login{Connected: true, Wanted: "bob", Message: s.Login.Message}}, started)
	s.StatusConditions = reported.Conditions
	r := Report{
		Namespace: "lab", Name: "desk", Status: host.StatusRunning, Started: &started, UptimeSeconds: 90,
		Guest: inside(&s), Conditions: conditionsOf(&host.Machine{Status: host.StatusRunning, State: s}), now: started.Add(90 * time.Second),
	}
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "guest.txt", out.String())
}
