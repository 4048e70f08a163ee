package runner

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// SameRequest is the time in which two requests to stop count as one: a key repeats while it is
// held down, and timeout(1) sends its signal to the process and then to its group.
const SameRequest = 300 * time.Millisecond

// Debounced returns a function that calls f unless it was called within [SameRequest] before. It is
// not safe for concurrent use.
func Debounced(f func()) func() {
	var last time.Time
	return func() {
		if time.Since(last) > SameRequest {
			f()
		}
		last = time.Now()
	}
}

// TakeQuitSignal makes SIGQUIT end the machine without waiting for the guest, until the returned
// function is called, which waits for a call in progress. Unlike SIGTERM, it has the same effect
// however often and late it comes: QEMU is told to quit, but never killed as by a third
// [Engine.Stop]. [State.QuitSignal] reports it.
func (e *Engine) TakeQuitSignal() (end func()) {
	end = onSignals(func() { e.Hurry(-1, true) }, syscall.SIGQUIT)
	e.mu.Lock()
	e.state.QuitSignal = true
	e.mu.Unlock()
	return end
}

// OnStopSignals calls f for each SIGTERM, SIGINT and SIGHUP until the returned function is called,
// which waits for a call in progress: f is usually [Debounced] of [Engine.Stop]. SIGPIPE does
// nothing, since a closed log is no reason to stop; it is caught rather than ignored, which
// children would inherit.
func OnStopSignals(f func()) (end func()) {
	return onSignals(f, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

func onSignals(f func(), which ...os.Signal) (end func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, which...)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				f()
			case <-pipes:
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		<-ended
	}
}
