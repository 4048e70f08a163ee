package runner

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A key that is held down is one request.
func TestDebounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		request := Debounced(func() { n++ })
		for range 50 {
			request()
			time.Sleep(SameRequest / 10)
		}
		if n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		time.Sleep(2 * SameRequest)
		if request(); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

func TestStopSignals(t *testing.T) {
	got := make(chan struct{}, 3)
	end := OnStopSignals(func() { got <- struct{}{} })
	for _, s := range []syscall.Signal{syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		if s == syscall.SIGPIPE {
			continue
		}
		select {
		case <-got:
		case <-time.After(time.Minute):
			t.Fatalf("%v asks for nothing", s)
		}
	}
	end()
	if len(got) > 0 {
		t.Error("a signal asks twice, or PIPE does")
	}
}
