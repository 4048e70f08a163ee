package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
)

var engineEvents = func() handlers[*Engine] {
	h := handlers[*Engine]{}
	with(h, (*Engine).shutsDown)
	with(h, (*Engine).panics)
	with(h, (*Engine).dumps)
	with(h, (*Engine).watchdogExpired)
	with(h, (*Engine).wasReset)
	with(h, (*Engine).diskFailed)
	with(h, (*Engine).ejectAnswered)
	with(h, (*Engine).unplugRefused)
	with(h, (*Engine).jobChanged)
	h.at(func(e *Engine) { e.goesOn(); e.wakeFollower() }, qmp.ResumeEvent{})
	h.at((*Engine).wakeFollower, qmp.DeviceDeletedEvent{}, qmp.BalloonChangeEvent{}, qmp.DeviceTrayMovedEvent{}, qmp.StopEvent{})
	return h
}()

// watchAll follows QEMU's events until the connection ends. Events only trigger queries, whose
// answers are the facts.
func (e *Engine) watchAll(m *machine) {
	var rare sync.WaitGroup
	rare.Go(func() {
		for ev := range m.rareEvents.All(context.Background()) {
			if err := e.happened(ev); err != nil {
				e.message(LevelWarning, "%v", err)
			}
		}
	})
	e.watch(m)
	rare.Wait()
}

// watch follows all events except the rare ones. The agents' code also gets those, because it must
// see a reset in order with the others.
func (e *Engine) watch(m *machine) {
	for ev := range m.events.All(context.Background()) {
		err := m.happened(ev)
		if !slices.Contains(rareEvents, ev.Name) {
			err = errors.Join(err, e.happened(ev))
		}
		if err != nil {
			e.message(LevelWarning, "%v", err)
		}
		if ev.Missed > 0 {
			e.change(func(w *desired) { w.console, w.lost = true, true })
			if err := m.rereadPorts(); err != nil {
				e.message(LevelWarning, "%v", err)
			}
		}
	}
}

func (e *Engine) happened(ev qmp.Event) error {
	if do, is := engineEvents[ev.Name]; is {
		return do(e, ev)
	}
	return e.viewerEvent(ev)
}

func (e *Engine) shutsDown(data qmp.ShutdownEvent) {
	e.mu.Lock()
	e.end.shutdown = &data
	e.mu.Unlock()
	e.announced()
}

func (e *Engine) panics(data qmp.GuestPanickedEvent) {
	e.guestPanicked(fmt.Sprintf("the guest panicked, action %s%s", data.Action, panicCode(data.Info)))
	if data.Action == panicPoweroff {
		// QEMU ends now; QEMU 7.2 hangs for ever on a query meanwhile.
		e.announced()
		return
	}
	e.wakeFollower()
}

// dumps handles a panic after which the guest's crash kernel executes.
func (e *Engine) dumps(data qmp.GuestCrashLoadedEvent) {
	e.guestPanicked("the guest panicked, and its crash kernel writes a dump" + panicCode(data.Info))
	e.wakeFollower()
}

func (e *Engine) watchdogExpired(data qmp.WatchdogEvent) {
	e.message(LevelWarning, "the guest has not served its watchdog, action %s", data.Action)
	e.wakeFollower()
}

func (e *Engine) wasReset(data qmp.ResetEvent) {
	e.mu.Lock()
	e.end.panicked = false // the guest goes on: a later end has another cause
	e.mu.Unlock()
	e.goesOn()
	e.message(LevelInfo, "the machine was reset (%s)", data.Reason)
	e.change(func(w *desired) { w.resets++ })
}

func (e *Engine) diskFailed(data qmp.BlockIOErrorEvent) {
	e.message(LevelError, "disk error: %s of %s: %s, action %s", data.Operation, e.diskName(data.NodeName), data.Reason, data.Action)
	e.change(func(w *desired) { w.ioReason = data.Reason })
}

func (e *Engine) ejectAnswered(data qmp.ACPIDeviceOSTEvent) {
	if problem := unplugProblem(data.Info); problem != "" {
		e.refuse(data.Info.Device, problem)
	}
	e.wakeFollower()
}

func (e *Engine) unplugRefused(data qmp.DeviceUnplugGuestErrorEvent) {
	e.refuse(data.Device, "the guest refused")
}

func (e *Engine) jobChanged(data qmp.JobStatusChangeEvent) {
	if data.Status == qmp.JobNull { // a copied disk is open again
		e.wakeFollower()
	}
}

// panicPause is the least time between two events of panics: a guest can panic at any rate.
const panicPause = time.Minute

func (e *Engine) guestPanicked(text string) {
	e.reports(func() {
		now := time.Now()
		e.end.panicked = true
		e.state.GuestPanics++
		e.queueState()
		m := Message{Time: now, Level: LevelError, Source: "runner", Text: text}
		if e.end.panicTold.IsZero() || now.Sub(e.end.panicTold) >= panicPause {
			e.end.panicTold = now
			note := text
			if n := e.state.GuestPanics; n > 1 {
				note += fmt.Sprintf("; it is the panic number %d since the machine was started", n)
			}
			m.Event = &live.Event{Action: live.ActionGuest, Reason: live.ReasonGuestPanicked, Note: note, Warning: true}
		}
		e.queueMessage(m)
	})
}

// panicPoweroff is the action of a GUEST_PANICKED after which QEMU ends.
const panicPoweroff = "poweroff"

func panicCode(p *qmp.GuestPanic) string {
	if p == nil || p.Type != "hyper-v" {
		return ""
	}
	return fmt.Sprintf(", stop code %#x (%#x, %#x, %#x, %#x)", p.Arg1, p.Arg2, p.Arg3, p.Arg4, p.Arg5)
}

func (e *Engine) refuse(device, problem string) {
	e.change(func(w *desired) {
		if w.refused == nil {
			w.refused = map[string]string{}
		}
		w.refused[device] = problem
	})
}

// unplugProblem reads the guest's answer to the request to eject a device (ACPI 6.5, §6.3.5). 0x84
// means that the ejection is in progress.
func unplugProblem(i qmp.ACPIOSTInfo) string {
	const ejectRequest, ejectByOS, underWay = 3, 0x103, 0x84
	if i.Source != ejectRequest && i.Source != ejectByOS || i.Status == 0 || i.Status == underWay {
		return ""
	}
	return fmt.Sprintf("the guest refused to release %s (ACPI status %#x)", i.Device, i.Status)
}
