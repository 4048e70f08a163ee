package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/runner"
)

// FileKind says what a file in a machine's directory is.
type FileKind int

// The kinds of files.
const (
	// FileForeign is one that nobody here made.
	FileForeign FileKind = iota
	// FileOwn is about the machine as it was run.
	FileOwn
	// FileIdentity is one that the disks' content may depend on.
	FileIdentity
	// FileDisk is a disk image.
	FileDisk
	// FileSnapshots is the directory with the machine's snapshots.
	FileSnapshots
	// FileOverlays is the directory with what the guest writes while its disks are
	// copied, and that is not in their images yet.
	FileOverlays
)

// File is an entry of a machine's directory.
type File struct {
	// Name is relative to the directory.
	Name string
	Kind FileKind
	// Size in bytes.
	Size int64
	// Holds says what an identity file has in it, in words for people.
	Holds string
}

// classify tells by its name what an entry is. What is no plain file is not ours,
// whatever its name.
func classify(name string, mode fs.FileMode) (kind FileKind, holds string) {
	is := func(patterns ...string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, name); return ok })
	}
	switch {
	case mode.IsDir() && name == snapshotsDir:
		return FileSnapshots, "snapshots"
	case mode.IsDir() && name == overlay.Dir:
		return FileOverlays, "what its guest wrote during a copy that was interrupted"
	case mode.IsDir() && is(stagingName, pendingPrefix+"*"): // of a change that never was made
		return FileOwn, ""
	case !mode.IsRegular():
		return FileForeign, ""
	}
	if is(manifestFile, definitionFile, stateFile, logFile, oldLogFile, knownHostsFile, knownHostsFile+".old", runner.LockFile, "."+manifestFile+".*", "."+definitionFile+".*", "."+stateFile+".*") {
		return FileOwn, ""
	}
	if holds, ok := runner.IdentityFile(name); ok {
		return FileIdentity, holds
	}
	if is("*.img") {
		return FileDisk, ""
	}
	return FileForeign, ""
}

// removedBy reports whether an entry goes. The identity goes with the disks only: a
// disk, wherever it is, may be unreadable without its TPM.
func (f File) removedBy(o DeleteOptions) bool {
	switch f.Kind {
	case FileOwn:
		return true
	case FileIdentity, FileDisk, FileSnapshots, FileOverlays:
		return o.Disks
	}
	return false
}

// Files lists the entries of the machine's directory.
func (m *Machine) Files() ([]File, error) {
	entries, err := os.ReadDir(m.Data)
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", m.FullName(), err)
	}
	var out []File
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // replaced meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("files of %s: %w", m.FullName(), err)
		}
		f := File{Name: e.Name(), Size: info.Size()}
		f.Kind, f.Holds = classify(e.Name(), info.Mode())
		if f.Kind == FileSnapshots {
			snapshots, err := m.Snapshots()
			if err != nil {
				return nil, err
			}
			f.Size = 0
			for _, s := range snapshots {
				f.Size += s.Allocated
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// ErrBusy says that somebody else starts, copies, changes or deletes the machine at this
// moment. The error has a [*runner.BusyError] where it is known what is done, and by whom.
var ErrBusy = errors.New("another command is at work on it")

// DeleteOptions say what goes with a machine.
type DeleteOptions struct {
	// Disks removes the images in the machine's directory too, and what belongs to
	// them: UUID, UEFI variables, TPM state, snapshots. This cannot be undone.
	Disks bool
	// Confirm is called, if not nil, while nobody can start the machine and before
	// anything is removed, with the images and identity files that would be gone;
	// its error ends the deletion.
	Confirm func([]File) error
}

// Delete removes a machine that does not run, and returns what it kept. Disks that
// are not in the machine's directory are never touched.
func (m *Machine) Delete(o DeleteOptions) (kept []File, err error) {
	full := m.FullName()
	if m.Running() {
		return nil, fmt.Errorf("%s runs (%s): stop it first", full, m.Status)
	}
	lock, err := runner.LockFor(m.Data, "deleted")
	switch {
	case errors.Is(err, fs.ErrNotExist): // deleted since it was found
		return nil, fmt.Errorf("%s: %w", full, ErrNotFound)
	case errors.Is(err, runner.ErrLocked):
		return nil, fmt.Errorf("delete %s: %w", full, m.errBusy())
	case err != nil:
		return nil, fmt.Errorf("delete %s: %w", full, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := settle(m.Directories, m.Namespace, m.Name); err != nil {
		return nil, fmt.Errorf("delete %s: %w", full, err)
	}
	if err := m.mergeKept(o); err != nil {
		return nil, fmt.Errorf("delete %s: %w", full, err)
	}
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	if len(files) == 1 && files[0].Name == runner.LockFile { // as above, and it is this one's lock
		return nil, errors.Join(fmt.Errorf("%s: %w", full, ErrNotFound), os.Remove(filepath.Join(m.Data, runner.LockFile)), removeEmpty(m.Data))
	}
	var precious, going []File
	for _, f := range files {
		switch {
		case !f.removedBy(o):
			kept = append(kept, f)
			continue
		case f.Kind != FileOwn:
			precious = append(precious, f)
		}
		going = append(going, f)
	}
	if len(precious) > 0 && o.Confirm != nil {
		if err := o.Confirm(precious); err != nil {
			return nil, err
		}
	}
	// The lock goes last: with it, somebody else may make the machine anew.
	slices.SortStableFunc(going, func(a, b File) int {
		switch {
		case a.Name == runner.LockFile:
			return 1
		case b.Name == runner.LockFile:
			return -1
		}
		return 0
	})
	var errs []error
	for _, f := range going {
		if f.Name == runner.LockFile && len(errs) > 0 {
			break
		}
		remove := os.Remove
		if f.Kind == FileSnapshots || f.Kind == FileOverlays || f.Kind == FileOwn {
			remove = os.RemoveAll // they may be directories
		}
		if err := remove(filepath.Join(m.Data, f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("delete %s: %w", full, err)
	}
	if len(kept) == 0 {
		return nil, removeEmpty(m.Data)
	}
	return kept, nil
}

// mergeKept merges what a copy has left, unless all images that it belongs to go with
// the machine.
func (m *Machine) mergeKept(o DeleteOptions) error {
	j, err := overlay.Read(m.Data)
	if err != nil {
		return err
	}
	elsewhere := func(d overlay.Disk) bool { return filepath.IsAbs(d.Image) }
	if o.Disks && (j == nil || !slices.ContainsFunc(j.Disks, elsewhere)) {
		return nil
	}
	return m.mergeStopped(context.Background())
}

// removeEmpty removes a machine's directory, and its namespace's if that was the
// last one. What somebody makes in them at this moment stays.
func removeEmpty(dir string) error {
	for _, dir := range []string{dir, filepath.Dir(dir)} {
		err := os.Remove(dir)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Identity lists the files with what the guest depends on beside its disks, in the
// order of what they hold.
func (m *Machine) Identity() ([]File, error) {
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f File) bool { return f.Kind != FileIdentity || f.Holds == "" })
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Holds, b.Holds) })
	return files, nil
}
