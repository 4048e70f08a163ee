package runner

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/live"
)

const preparing = "preparing the machine"

// State returns the current state.
func (e *Engine) State() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.clone()
}

// reports changes what mu protects and then reports what the change has queued. Other calls to the
// engine do not wait for a slow reporter.
func (e *Engine) reports(change func()) {
	e.mu.Lock()
	func() {
		defer e.mu.Unlock()
		change()
	}()
	e.reporting.Lock()
	defer e.reporting.Unlock()
	for {
		e.mu.Lock()
		queued := e.queued
		e.queued = nil
		e.mu.Unlock()
		if len(queued) == 0 {
			return // another goroutine may have reported it
		}
		for i := range queued {
			if r := &queued[i]; r.state != nil {
				e.o.Reporter.State(*r.state)
			} else {
				e.o.Reporter.Message(r.message)
			}
		}
	}
}

func (e *Engine) update(change func(*State)) {
	var entered Phase
	e.reports(func() {
		before := e.state.Phase
		change(&e.state)
		if e.state.Phase != before {
			e.state.Since = time.Now()
			entered = e.state.Phase
		}
		e.queueState()
	})
	if entered != "" { // only now, so that waiters find it reported
		e.progress.enters(entered)
	}
}

// queueState queues the state, with VM-Operator's conditions, and then the events of the changes.
// It must be called with mu held.
func (e *Engine) queueState() {
	now := time.Now()
	var events []live.Event
	e.reported, events = live.Report(e.reported, e.state.facts(), now)
	e.state.StatusConditions = e.reported.Conditions
	s := e.state.clone()
	s.Unlocked = !e.locked
	e.queued = append(e.queued, report{state: &s})
	for _, ev := range events {
		text := ev.Reason
		if ev.Note != "" {
			text += ": " + ev.Note
		}
		e.queueMessage(Message{Time: now, Level: LevelInfo, Source: "runner", Text: text, Event: &ev})
	}
}

// queueMessage must be called with mu held.
func (e *Engine) queueMessage(m Message) { e.queued = append(e.queued, report{message: m}) }

func (e *Engine) enter(p Phase, format string, args ...any) {
	e.update(func(s *State) { s.Phase, s.Message = p, fmt.Sprintf(format, args...) })
}

func (e *Engine) terminating(message string) {
	e.message(LevelInfo, "%s", message)
	e.update(func(s *State) { s.Message = message })
}

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

func (e *Engine) message(level Level, format string, args ...any) {
	e.output(level, "runner", fmt.Sprintf(format, args...))
}

func (e *Engine) output(level Level, source, text string) {
	e.reports(func() { e.queueMessage(Message{Time: time.Now(), Level: level, Source: source, Text: text}) })
}

func (e *Engine) childLine(source, text string) { e.output(LevelInfo, source, text) }
