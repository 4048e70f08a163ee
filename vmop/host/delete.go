package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/runner"
)

// DeleteStopped removes a machine that does not run, or what a deleted one has left, and returns the
// files that it kept. Disks outside of the machine's directory are never touched. An image in it that
// another machine has as a disk is not removed: the error names that machine, and nothing is changed.
func (h *Host) DeleteStopped(m Machine, o DeleteOptions) (kept []File, err error) {
	ask := o.Confirm
	o.Confirm = func(precious []File) error {
		if err := h.checkUnshared(&m, precious); err != nil {
			return fmt.Errorf("delete %s: %w", m.FullName(), err)
		}
		if ask == nil {
			return nil
		}
		return ask(precious)
	}
	return m.remove(o)
}

func (h *Host) checkUnshared(m *Machine, files []File) error {
	var images []string
	for _, f := range files {
		if f.Kind == FileDisk {
			images = append(images, filepath.Join(m.Data, f.Name))
		}
	}
	return h.checkOwn(m, images...)
}

// Delete is [Host.DeleteStopped] without a look at the definitions of other machines: an image that one
// of them has as a disk is removed unless a QEMU has it open.
//
// Deprecated: Use [Host.DeleteStopped].
func (m *Machine) Delete(o DeleteOptions) (kept []File, err error) {
	ask := o.Confirm
	o.Confirm = func(precious []File) error {
		for _, f := range precious {
			if f.Kind != FileDisk {
				continue
			}
			if err := checkUnused(filepath.Join(m.Data, f.Name)); err != nil {
				return fmt.Errorf("delete %s: %w", m.FullName(), err)
			}
		}
		if ask == nil {
			return nil
		}
		return ask(precious)
	}
	return m.remove(o)
}

// remove removes the machine as [Host.DeleteStopped] does, without looking at other machines.
func (m *Machine) remove(o DeleteOptions) (kept []File, err error) {
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
	if len(files) == 1 && files[0].Name == runner.LockFile { // likewise; the only file is this lock
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
	// The lock goes last: after that, the machine may be created again.
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

// mergeKept merges the overlays of an interrupted copy, unless all their images are to be removed.
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
