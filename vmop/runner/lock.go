package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// Holder is a process that holds a machine's lock.
type Holder struct {
	PID int
	// Executable is the base name of the process's executable.
	Executable string
	// Doing is what the process does with a machine that does not run, as a participle such as
	// "cloned"; empty for a runner and for QEMU. See [LockFor].
	Doing string
}

// BusyError is the error when another process works on a machine that does not run. It is
// [ErrLocked].
type BusyError struct {
	PID int
	// Doing is as in [Holder].
	Doing string
}

func (e *BusyError) Error() string { return fmt.Sprintf("it is being %s (process %d)", e.Doing, e.PID) }

// Is reports whether target is [ErrLocked].
func (e *BusyError) Is(target error) bool { return target == ErrLocked }

// unseenHolders is how often a lock may be held by nobody who can be seen until it is another
// user's.
const unseenHolders = 10

// Lock locks a directory as a runner does, or fails with [ErrLocked]. The lock belongs to the open
// file and so to every process that inherits it: QEMU still holds it when its runner is killed.
func Lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, LockFile)
	for unseen := 0; ; {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			err = errors.Join(err, f.Close())
			if !errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("lock %s: %w", dir, err)
			}
			// A process that is being started releases it in a moment, or has done so; then the
			// next one may have it.
			holders, starting, err := lookForHolders(dir)
			if !starting {
				unseen++
			}
			if err != nil || len(holders) > 0 || unseen == unseenHolders {
				return nil, ErrLocked
			}
			time.Sleep(startInterval)
			continue
		}
		// A runner that ends removes its runtime directory: the locked file may have been deleted.
		if mine, err := f.Stat(); err == nil {
			if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
				if mine.Size() == 0 {
					return f, nil
				}
				// The content of the previous holder does not apply to this one.
				if err := f.Truncate(0); err != nil {
					return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
				}
				return f, nil
			}
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
	}
}

// LockFor is [Lock] for other work than running the machine. [Holders] reports it to others as a
// lower-case participle such as "cloned".
func LockFor(dir, doing string) (*os.File, error) {
	f, err := Lock(dir)
	if err != nil {
		return nil, err
	}
	// A full file system must not prevent the removal of files.
	_, _ = f.WriteAt(fmt.Appendf(nil, "%d %s", os.Getpid(), doing), 0)
	return f, nil
}

func lockedFor(dir string) (pid int, doing string) {
	// The open must not block if another kind of file is in place of the lock.
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, ""
	}
	defer f.Close()
	var text [64]byte
	n, err := f.ReadAt(text[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, ""
	}
	number, doing, _ := strings.Cut(string(text[:n]), " ")
	pid, err = strconv.Atoi(number)
	if err != nil || doing == "" || strings.Trim(doing, "abcdefghijklmnopqrstuvwxyz ") != "" {
		return 0, ""
	}
	return pid, doing
}

// Holders lists the processes that have a machine, by the lock file of its data directory that they
// have open: the runner and its QEMU, an orphaned QEMU alone, or one that works on a machine that
// does not run. It excludes this process. Only root sees the processes of other users.
func Holders(dataDir string) ([]Holder, error) {
	holders, err := allHolders(dataDir)
	return slices.DeleteFunc(holders, func(h Holder) bool { return h.isHelper() || h.PID == os.Getpid() }), err
}

// allHolders includes the helpers, and this process if another engine in it runs the machine.
func allHolders(dataDir string) ([]Holder, error) {
	holders, _, err := lookForHolders(dataDir)
	return holders, err
}

// lookForHolders is allHolders, and reports whether a process that is being started has the lock
// open.
func lookForHolders(dataDir string) (out []Holder, starting bool, err error) {
	want, err := os.Stat(filepath.Join(dataDir, LockFile))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("find the holder of the lock: %w", err)
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false, fmt.Errorf("find the holder of the lock: %w", err)
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue // it ended meanwhile
		}
		if !holds(pid, want) {
			continue
		}
		if beingStarted(pid) {
			starting = true
			continue
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			continue
		}
		out = append(out, Holder{PID: pid, Executable: filepath.Base(strings.TrimSuffix(exe, " (deleted)"))})
	}
	worker, doing := lockedFor(dataDir)
	for i := range out {
		if out[i].PID == worker {
			out[i].Doing = doing
		}
	}
	return out, starting, nil
}

// startLimit is the maximum age of a process that counts as being started. An older copy of its
// parent is a holder like any other.
const startLimit = 10 * time.Second

// beingStarted reports whether this process is just starting the other one: until it executes its
// own program, it has open whatever this one has, including the locks of other machines.
func beingStarted(pid int) bool {
	if pid == os.Getpid() {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	parent, age, err := parentAndAge(stat)
	if err != nil || parent != os.Getpid() || age > startLimit {
		return false
	}
	// It has the same memory and arguments. A program that starts itself has other arguments.
	mine, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return false
	}
	its, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Equal(mine, its)
}

func parentAndAge(stat []byte) (parent int, age time.Duration, err error) {
	const (
		parentField, startField = 4 - 3, 22 - 3 // indexes after the second field; the first is the third
		ticks                   = 100           // USER_HZ is the same everywhere
	)
	// The name, in parentheses, may contain any characters.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= startField {
		return 0, 0, fmt.Errorf("%d fields in %q", len(fields), stat)
	}
	if parent, err = strconv.Atoi(fields[parentField]); err != nil {
		return 0, 0, err
	}
	began, err := strconv.ParseInt(fields[startField], 10, 64)
	if err != nil {
		return 0, 0, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, 0, err
	}
	return parent, time.Duration(now.Nano()) - time.Duration(began)*(time.Second/ticks), nil
}

// IsQEMU reports whether the process is a QEMU system emulator.
func (h Holder) IsQEMU() bool {
	return strings.HasPrefix(h.Executable, "qemu-system-") || h.Executable == "qemu-kvm"
}

func (h Holder) isHelper() bool { return slices.Contains(qemucmd.HelperNames(), h.Executable) }

func (h Holder) what() string {
	if h.IsQEMU() {
		return "QEMU"
	}
	return h.Executable
}

func (e *Engine) lockAll(ctx context.Context) error {
	for _, dir := range []string{e.o.Directories.Data, e.o.Directories.Runtime} {
		f, err := e.lock(ctx, dir)
		if err != nil {
			return err
		}
		e.locks = append(e.locks, f)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.locked = true
	return nil
}

// lock locks a directory. It first ends an orphaned QEMU that holds the lock, and waits for a
// holder that is about to end.
func (e *Engine) lock(ctx context.Context, dir string) (*os.File, error) {
	for deadline := deadlineIn(orphanGrace); ; {
		f, err := Lock(dir)
		if !errors.Is(err, ErrLocked) {
			return f, err
		}
		ended, err := e.endOrphan(ctx, dir)
		if err != nil {
			return nil, err
		}
		if ended {
			deadline = deadlineIn(orphanGrace)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s: %w, by a process that this user cannot see", dir, ErrRunning)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockInterval):
		}
	}
}

func (e *Engine) unlock() error {
	// No report about the directories may follow once another engine has them.
	e.reports(func() { e.locked = false })
	var errs []error
	for _, f := range e.locks {
		errs = append(errs, f.Close())
	}
	e.locks = nil
	return errors.Join(errs...)
}

// endOrphan ends a QEMU whose runner has ended, with its helpers, and reports whether there was
// one. It fails with [ErrRunning] if a runner lives, and with a [*BusyError] if another process
// works on the machine. The QEMU in a runtime directory that is not in the data directory is
// another machine's, and is left alone.
func (e *Engine) endOrphan(ctx context.Context, dir string) (ended bool, err error) {
	holders, err := allHolders(dir)
	if err != nil {
		return false, err
	}
	for _, h := range holders {
		if h.Doing != "" {
			return false, &BusyError{PID: h.PID, Doing: h.Doing}
		}
		if !h.IsQEMU() && !h.isHelper() {
			return false, fmt.Errorf("%s: %w (process %d, %s)", dir, ErrRunning, h.PID, h.Executable)
		}
		if dir != e.o.Directories.Data {
			return false, fmt.Errorf("%s: %w: it is the runtime directory of the QEMU of another data directory (process %d)", dir, ErrRunning, h.PID)
		}
	}
	for _, helpers := range []bool{false, true} { // helpers end when their QEMU has
		for _, h := range holders {
			if h.isHelper() != helpers {
				continue
			}
			e.message(LevelWarning, "found %s (process %d) without its runner: ending it", h.what(), h.PID)
			if err := endHolder(ctx, h.PID, dir, orphanGrace); err != nil {
				return false, fmt.Errorf("end the orphaned %s: %w", h.what(), err)
			}
		}
	}
	return len(holders) > 0, nil
}

// endHolder ends a process, not a child, that holds the lock of a directory: SIGTERM, on which QEMU
// flushes its disks, and SIGKILL after the grace.
func endHolder(ctx context.Context, pid int, dir string, grace time.Duration) error {
	p, err := OpenHolder(dir, pid)
	if p == nil || err != nil {
		return err
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := p.Signal(sig); err != nil {
			return errors.Join(err, p.Close())
		}
		if ended, err := p.Wait(ctx, grace); ended || err != nil {
			return errors.Join(err, p.Close())
		}
	}
	return errors.Join(fmt.Errorf("process %d does not end, not even killed", pid), p.Close())
}
