package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// LockFile is the lock file in a machine's data and runtime directories.
const LockFile = "lock"

// ErrLocked says that another process has the lock of a directory.
var ErrLocked = errors.New("the directory is locked")

// Holder is a process that holds a machine's lock.
type Holder struct {
	PID int
	// Executable is the base name of what the process runs.
	Executable string
}

// Lock locks a directory as a runner does, or fails with [ErrLocked]. The lock
// belongs to the open file and so to every process that inherits it: QEMU holds it
// on when its runner is killed.
func Lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, LockFile)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			err = errors.Join(err, f.Close())
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, ErrLocked
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
	want, err := os.Stat(filepath.Join(dataDir, LockFile))
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
func (h Holder) isHelper() bool { return slices.Contains(qemucmd.HelperNames(), h.Executable) }

// what names the process in a message.
func (h Holder) what() string {
	if h.IsQEMU() {
		return "QEMU"
	}
	return h.Executable
}
