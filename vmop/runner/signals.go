package runner

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// SameRequest is the time in which two requests to stop are one: a key repeats
// while it is held down, and timeout(1) sends its signal to the process and then to
// its group.
const SameRequest = 300 * time.Millisecond

// Debounced calls f for a call that has none within [SameRequest] before it. It is
// for one goroutine.
func Debounced(f func()) func() {
	var last time.Time
	return func() {
		if time.Since(last) > SameRequest {
			f()
		}
		last = time.Now()
	}
}

// TakeQuitSignal lets the process's QUIT end the machine without waiting for the guest,
// until the function that it returns is called, which waits for it. Other than TERM it
// means the same however often it comes and however late: QEMU is told to quit, and is
// never killed for it as by a third [Engine.Stop]. The state says that it is taken.
func (e *Engine) TakeQuitSignal() (end func()) {
	end = onSignals(func() { e.Hurry(-1, true) }, syscall.SIGQUIT)
	e.mu.Lock()
	e.state.QuitSignal = true
	e.mu.Unlock()
	return end
}

// OnStopSignals calls f for each TERM, INT and HUP until the function that it
// returns is called, which waits for it: f is [Debounced] of [Engine.Stop], as a
// rule. A log that nobody reads any more is no reason to stop, so PIPE does
// nothing; it is caught rather than ignored, which children would inherit.
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
