package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reapOrphans reaps orphaned processes where this process is the pod's init and inherits them. The
// engine reaps its own children. It works until the returned function is called.
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

// childInfo is the head of the kernel's siginfo_t of a SIGCHLD (sigaction(2)), which x/sys does not
// define.
type childInfo struct {
	signo, errno, code, _ int32
	pid                   int32
}

// reap reaps every ended child that is not in a process group of its own: the engine's children
// lead their groups, orphans are in the group that they were born in. The kernel reports one ended
// child at a time, so that the engine's hide those behind them until it reaps them, which it does
// at once.
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
