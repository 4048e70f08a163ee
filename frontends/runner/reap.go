package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reapOrphans collects processes that lost their parent where this one is the
// first of its pod, and so inherits them. The engine's own children are left to
// the engine. It works until the returned function is called.
func reapOrphans() (stop func()) {
	if os.Getpid() != 1 {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				reap()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

// childInfo is the head of the kernel's siginfo_t of a SIGCHLD (sigaction(2)),
// which x/sys does not spell out.
type childInfo struct {
	signo, errno, code, _ int32
	pid                   int32
}

// reap collects every ended child that is not in a process group of its own: the
// engine puts its children into groups that they lead, orphans are in the group
// that they were born in. The engine collects its own at once, so that waiting
// for it is short; it hides those behind it meanwhile.
func reap() {
	for patience := 100; patience > 0; {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil {
			return
		}
		pid := int((*childInfo)(unsafe.Pointer(&info)).pid)
		if pid == 0 {
			return
		}
		if group, err := unix.Getpgid(pid); err != nil || group == pid {
			patience--
			time.Sleep(time.Millisecond)
			continue
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			return
		}
	}
}
