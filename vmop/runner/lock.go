package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is the lock file in a machine's data and runtime directories.
const lockName = "lock"

// Holder is a process that holds a machine's lock.
type Holder struct {
	PID int
	// Executable is the base name of what the process runs.
	Executable string
}

// lockDir locks a directory, or says that it is locked. The lock belongs to the
// open file and so to every process that inherits it: QEMU holds it on when its
// runner is killed.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			err = errors.Join(err, f.Close())
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errLocked
			}
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		// A runner that ends removes its runtime directory: what was locked
		// may not be there any more.
		if mine, err := f.Stat(); err == nil {
			if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
				return f, nil
			}
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
	}
}

var errLocked = errors.New("the directory is locked")

// Holders lists the processes that run a machine, by the lock file of its data
// directory that they have open: the runner and its QEMU, or an orphaned QEMU
// alone. This process is not among them. Processes of other users are seen only
// by root.
func Holders(dataDir string) ([]Holder, error) {
	holders, err := allHolders(dataDir)
	return slices.DeleteFunc(holders, func(h Holder) bool { return h.isHelper() || h.PID == os.Getpid() }), err
}

// allHolders lists the helpers too, and this process where another engine in it
// runs the machine.
func allHolders(dataDir string) ([]Holder, error) {
	want, err := os.Stat(filepath.Join(dataDir, lockName))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("find the holder of the lock: %w", err)
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("find the holder of the lock: %w", err)
	}
	var out []Holder
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		if !holds(pid, want) {
			continue
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			continue // it ended meanwhile
		}
		out = append(out, Holder{PID: pid, Executable: filepath.Base(strings.TrimSuffix(exe, " (deleted)"))})
	}
	return out, nil
}

func holds(pid int, want os.FileInfo) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		// Stat would block on nothing and touch nothing: it follows the magic link.
		if got, err := os.Stat(filepath.Join(dir, fd.Name())); err == nil && os.SameFile(got, want) {
			return true
		}
	}
	return false
}

// IsQEMU says whether the process is a QEMU system emulator.
func (h Holder) IsQEMU() bool {
	return strings.HasPrefix(h.Executable, "qemu-system-") || h.Executable == "qemu-kvm"
}

// isHelper says whether the process serves a QEMU.
func (h Holder) isHelper() bool { return h.Executable == "swtpm" }

// what names the process in a message.
func (h Holder) what() string {
	if h.IsQEMU() {
		return "QEMU"
	}
	return h.Executable
}

// endHolder ends a process, not a child, that holds the lock of a directory:
// TERM, on which QEMU flushes its disks, and KILL after the grace.
func endHolder(ctx context.Context, pid int, dir string, grace time.Duration) error {
	lock, err := os.Stat(filepath.Join(dir, lockName))
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	// From here on the number cannot become another process's; it may have.
	if !holds(pid, lock) {
		return nil
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
		deadline := time.Now().Add(grace)
		for {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("wait for the end of process %d: %w", pid, err)
			}
			left := time.Until(deadline)
			if left <= 0 {
				break
			}
			// A second at a time, so that the context is honoured.
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(min(left, time.Second).Milliseconds())+1)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("wait for the end of process %d: %w", pid, err)
			}
			if n > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("process %d does not end, not even killed", pid)
}
