// Package asnobody does things in tests as a user who has no rights, also if the test is root's:
// root may read and write everything, and would never see what users are refused.
package asnobody

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// Do calls f as the user nobody if the test runs as root. f must not call FailNow: it runs in
// another goroutine.
func Do(tb testing.TB, f func()) {
	tb.Helper()
	done := make(chan error)
	go func() {
		// The user changes for this thread only, which ends with the goroutine.
		runtime.LockOSThread()
		var errno syscall.Errno
		if os.Geteuid() == 0 {
			const nobody, keep = 65534, ^uintptr(0)
			_, _, errno = syscall.RawSyscall(syscall.SYS_SETRESUID, keep, nobody, keep)
		}
		if errno != 0 {
			done <- errno
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		tb.Fatal(err)
	}
}
