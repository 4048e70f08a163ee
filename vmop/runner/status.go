package runner

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/live"
)

// report tells the state, with VM-Operator's conditions of it, and then the events
// of what has changed. The caller holds e.mu.
func (e *Engine) report() {
	now := time.Now()
	var events []live.Event
	e.reported, events = live.Report(e.reported, e.state.facts(), now)
	e.state.StatusConditions = e.reported.Conditions
	s := e.state.clone()
	s.Unlocked = !e.locked
	e.o.Reporter.State(s)
	for _, ev := range events {
		text := ev.Reason
		if ev.Note != "" {
			text += ": " + ev.Note
		}
		e.o.Reporter.Message(Message{Time: now, Level: LevelInfo, Source: "runner", Text: text, Event: &ev})
	}
}

// facts are what the conditions of a machine are made from.
func (s *State) facts() live.Facts {
	f := live.Facts{
		Message: s.Message, Paused: s.Paused, Booted: s.Guest.Booted, Clients: s.ConsoleClients, Generation: s.Generation,
		Login: live.Login{
			Connected: s.Login.AgentConnected, Wanted: s.Login.Wanted, Message: s.Login.Message,
			Confirmed: s.Login.Wanted != "" && s.Login.Reason == live.ReasonLoggedIn,
		},
	}
	switch s.Phase {
	case PhaseBooting:
		f.Stage = live.StageRunning
	case PhaseTerminating:
		f.Stage = live.StageTerminating
	case PhaseStopped:
		f.Stage = live.StageStopped
	default:
		f.Stage = live.StageStarting
	}
	return f
}

// consoleClients tells who is connected to the display by a protocol: all of its
// clients, each with its protocol, as they were found after an event.
func (e *Engine) consoleClients(protocol string, clients []live.Client) {
	e.mu.Lock()
	var before []live.Client
	for _, c := range e.state.ConsoleClients {
		if c.Protocol == protocol {
			before = append(before, c)
		}
	}
	e.mu.Unlock()
	if slices.Equal(before, clients) {
		return
	}
	e.update(func(s *State) {
		others := slices.DeleteFunc(slices.Clone(s.ConsoleClients), func(c live.Client) bool { return c.Protocol == protocol })
		s.ConsoleClients = append(others, clients...)
		s.ConsoleClient = live.ClientHosts(s.ConsoleClients)
	})
}
