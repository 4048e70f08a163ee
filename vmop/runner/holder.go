package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// HolderProcess is a process, not a child of this one, that holds a machine's lock. It is
// identified by a pidfd, so that a reused process id cannot be mistaken for it.
type HolderProcess struct {
	pid, fd int
}

// OpenHolder opens a process that holds the lock of a directory. It returns nil if the process has
// ended, or no longer holds that lock. The result must be closed.
func OpenHolder(dir string, pid int) (*HolderProcess, error) {
	lock, err := os.Stat(filepath.Join(dir, LockFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	// From here on the process id cannot be reused; it may have been before.
	if !holds(pid, lock) {
		return nil, unix.Close(fd)
	}
	return &HolderProcess{pid: pid, fd: fd}, nil
}

// Close closes the descriptor; the process goes on.
func (p *HolderProcess) Close() error { return unix.Close(p.fd) }

// Signal sends a signal. A process that has ended is no error.
func (p *HolderProcess) Signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.pid, err)
	}
	return nil
}

// Wait waits for the process's end, for as long as ctx allows and, if limit is
// above 0, no longer than that. The error is the context's cause.
func (p *HolderProcess) Wait(ctx context.Context, limit time.Duration) (ended bool, err error) {
	// The pipe wakes the poll when ctx ends.
	r, w, err := os.Pipe()
	if err != nil {
		return false, fmt.Errorf("wait for the end of process %d: %w", p.pid, err)
	}
	defer r.Close()
	stop := context.AfterFunc(ctx, func() { _ = w.Close() })
	defer func() {
		if stop() {
			_ = w.Close()
		}
	}()
	timeout := -1
	if limit > 0 {
		timeout = int(limit.Milliseconds()) + 1
	}
	for {
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(r.Fd())}}
		n, err := unix.Poll(fds, timeout)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, fmt.Errorf("wait for the end of process %d: %w", p.pid, err)
		case fds[0].Revents != 0:
			return true, nil
		case n == 0:
			return false, nil
		default:
			return false, context.Cause(ctx)
		}
	}
}

func holds(pid int, want os.FileInfo) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		// Stat follows the magic link: it neither blocks nor opens the file.
		if got, err := os.Stat(filepath.Join(dir, fd.Name())); err == nil && os.SameFile(got, want) {
			return true
		}
	}
	return false
}
