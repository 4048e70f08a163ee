package runner

import (
	"os"
	"os/signal"
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

// QUIT asks not to wait for the guest, however often it comes, and never to kill QEMU.
func TestQuitSignal(t *testing.T) {
	e, err := New(Options{Config: fakeConfig(), Directories: Directories{Data: t.TempDir(), Runtime: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	end := e.TakeQuitSignal()
	if !e.State().QuitSignal {
		t.Error("the state does not say that QUIT is taken")
	}
	// A signal that arrives after its handler has gone would end the process with Go's
	// trace of all goroutines, and kill returns before another thread has taken it.
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGQUIT)
	defer signal.Stop(arrived)
	for range 5 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-arrived:
		case <-time.After(time.Minute):
			t.Fatal("QUIT does not arrive")
		}
		select {
		case <-e.stops[stopQuit].Done():
		case <-time.After(time.Minute):
			t.Fatal("QUIT asks for nothing")
		}
	}
	end()
	if e.stops[stopAsk].Err() == nil || e.stops[stopKill].Err() != nil {
		t.Errorf("asked: %v, killed: %v", e.stops[stopAsk].Err(), e.stops[stopKill].Err())
	}
	e.Stop() // by somebody who is less patient
	if e.stops[stopKill].Err() == nil {
		t.Error("whoever asks once more waits for QEMU")
	}
}
