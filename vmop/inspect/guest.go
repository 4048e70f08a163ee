package inspect

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
)

// Guest is what the agents in the guest have reported to the runner.
type Guest struct {
	Booted          bool
	HostName        string
	OperatingSystem string
	Interfaces      []Interface
	// LoggedInUser was confirmed by the VMOP agent; WantedUser is to be logged in.
	LoggedInUser string
	WantedUser   string
	// Problems are questions and commands in which the agents failed.
	Problems []string
}

// Interface is a network interface as the guest sees it.
type Interface struct {
	Name string
	MAC  string
	// Addresses are in CIDR notation.
	Addresses []string
}

func inside(s *runner.State) *Guest {
	r := &Guest{
		Booted: s.Guest.Booted, HostName: s.Guest.HostName,
		LoggedInUser: s.Login.User, WantedUser: s.Login.Wanted,
	}
	var os struct {
		Name   string `json:"name"`
		Pretty string `json:"pretty-name"`
	}
	// The agent may omit any of it.
	if err := json.Unmarshal(s.Guest.OSInfo, &os); err == nil {
		r.OperatingSystem = cmp.Or(os.Pretty, os.Name)
	}
	for _, i := range s.Guest.Interfaces {
		r.Interfaces = append(r.Interfaces, Interface{Name: i.Name, MAC: i.MAC, Addresses: i.Addresses})
	}
	for _, p := range []string{s.Guest.Problem, s.Login.Message} {
		if p != "" {
			r.Problems = append(r.Problems, p)
		}
	}
	return r
}

func (r *Guest) rows() [][]string {
	if r == nil {
		return nil
	}
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("System", r.OperatingSystem)
	add("Host name", r.HostName)
	if r.WantedUser != "" && r.LoggedInUser != r.WantedUser {
		add("Logged in", textout.OrNone(r.LoggedInUser)+", wanted is "+r.WantedUser)
	} else {
		add("Logged in", r.LoggedInUser)
	}
	add("Agents", strings.Join(r.Problems, "; "))
	return rows
}

func (r *Guest) interfaceRows() [][]string {
	if r == nil {
		return nil
	}
	var rows [][]string
	for _, i := range r.Interfaces {
		rows = append(rows, []string{i.Name, textout.OrNone(i.MAC), textout.OrNone(strings.Join(i.Addresses, ", "))})
	}
	return rows
}

func conditionRows(conditions []Condition, now time.Time) [][]string {
	var rows [][]string
	for _, c := range conditions {
		rows = append(rows, []string{c.Type, string(c.Status), c.Reason, textout.Age(now, c.LastTransitionTime), c.Message})
	}
	return rows
}

// Condition is a condition of a machine. Those about pending changes have no known time.
type Condition struct {
	Type               string
	Status             live.Status
	ObservedGeneration int64
	LastTransitionTime time.Time
	Reason             string
	Message            string
}

func notReady(m *host.Machine) string {
	switch {
	case m.Ready() == live.True:
		return "the guest executes"
	case m.Message() != "":
		return m.Message()
	case m.Status == host.StatusPaused:
		return "the guest is paused"
	}
	return ""
}

// conditionsOf returns VM-Operator's conditions and those about pending changes. Ready, which
// clusters have, comes first: the others only report that QEMU runs, Ready that the guest executes.
func conditionsOf(m *host.Machine) []Condition {
	if m == nil {
		return nil
	}
	s := &m.State
	out := []Condition{{Type: conditions.Ready, Status: m.Ready(), Reason: strings.ReplaceAll(string(m.Status), " ", ""), Message: notReady(m)}}
	for _, c := range s.StatusConditions {
		out = append(out, Condition(c))
	}
	for _, c := range s.Conditions {
		out = append(out, Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
	}
	return out
}
