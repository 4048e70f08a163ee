package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runner"
)

// Several files of a machine are changed atomically: the new ones are put into a directory within
// the machine's, which is renamed to pendingDir once it is complete. From then on the change is in
// effect: every reader of the machine first moves the files to their places (see settle). Before,
// the directory is garbage. Because the name includes the machine's, renaming a machine's directory
// puts the change for its new name into effect.
const (
	stagingName   = ".staging"
	pendingPrefix = ".pending."
	// removedFile lists, within a pending change, the files to be removed.
	removedFile = ".removed.json"
)

func pendingDir(dir, namespace, name string) string {
	return filepath.Join(dir, pendingPrefix+namespaceOr(namespace)+"."+name)
}

func stage(dir string) (string, error) {
	staging := filepath.Join(dir, stagingName)
	if err := os.RemoveAll(staging); err != nil { // of a change that never took effect
		return "", err
	}
	return staging, os.Mkdir(staging, 0o700)
}

// commit puts a staged change into effect. remove are names of files to be removed; none may be
// among the new ones.
func commit(dir, namespace, name string, remove []string) error {
	staging := filepath.Join(dir, stagingName)
	data, err := json.Marshal(remove)
	if err != nil {
		return err
	}
	if err := errors.Join(atomicfile.Replace(filepath.Join(staging, removedFile), data), atomicfile.SyncDir(staging)); err != nil {
		return err
	}
	pending := pendingDir(dir, namespace, name)
	if err := os.RemoveAll(pending); err != nil { // of a machine that did not get that name
		return err
	}
	if err := os.Rename(staging, pending); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// settle completes a pending change. The machine must not be started meanwhile. It may be
// interrupted and repeated at any moment.
func settle(d Directories, namespace, name string) error {
	pending := pendingDir(d.Data, namespace, name)
	entries, err := os.ReadDir(pending)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var remove []string
	list := filepath.Join(pending, removedFile)
	data, err := os.ReadFile(list)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(data, &remove); err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
	}
	for _, name := range remove {
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("%s: %q is no file's name", list, name)
		}
		if err := os.Remove(filepath.Join(d.Data, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, e := range entries {
		if e.Name() == removedFile {
			continue
		}
		if err := os.Rename(filepath.Join(pending, e.Name()), filepath.Join(d.Data, e.Name())); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncDir(d.Data); err != nil {
		return err
	}
	if err := os.Remove(list); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(pending)
}

// settleIdle is settle for callers without the machine's lock. If another process has locked the
// machine, it completes the change.
func settleIdle(d Directories, namespace, name string) error {
	if _, err := os.Lstat(pendingDir(d.Data, namespace, name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := runner.LockFor(d.Data, "changed")
	if errors.Is(err, runner.ErrLocked) {
		return nil
	}
	if err == nil {
		err = errors.Join(settle(d, namespace, name), lock.Close())
	}
	if err != nil {
		return fmt.Errorf("complete the last change of %s: %w", FullName(namespace, name), err)
	}
	return nil
}

func moveNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not supported by every file system
		if exists(to) {
			err = fs.ErrExist
		} else {
			err = os.Rename(from, to)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return errors.Join(atomicfile.SyncDir(filepath.Dir(to)), atomicfile.SyncDir(filepath.Dir(from)))
}

// lockStopped locks a machine that does not run, which prevents its start, and completes what was
// interrupted.
func (m *Machine) lockStopped(ctx context.Context, doing string) (*os.File, error) {
	if m.Running() {
		return nil, fmt.Errorf("%s runs (%s): stop it first", m.FullName(), m.Status)
	}
	lock, err := runner.LockFor(m.Data, doing)
	if errors.Is(err, runner.ErrLocked) {
		err = m.errBusy()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.FullName(), err)
	}
	if err := settle(m.Directories, m.Namespace, m.Name); err != nil {
		return nil, errors.Join(fmt.Errorf("complete the last change of %s: %w", m.FullName(), err), lock.Close())
	}
	if err := m.mergeStopped(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (m *Machine) mergeStopped(ctx context.Context) error {
	if _, err := runner.MergeOverlays(ctx, m.Data); err != nil {
		return fmt.Errorf("complete the copy of %s that was interrupted: %w", m.FullName(), err)
	}
	return nil
}
