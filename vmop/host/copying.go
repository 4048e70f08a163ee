package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// CopyOptions are the options of copying disks.
type CopyOptions struct {
	// Progress is called with the number of copied bytes and their total; it may be nil.
	Progress func(done, total int64)
	// Copied is called with the consistency of the disks of a copy; it may be nil.
	Copied func(Consistency)
}

// Consistency is the consistency of a copy's disks with each other.
type Consistency struct {
	// Running reports whether the machine ran meanwhile.
	Running bool
	// Frozen reports whether the guest agent had frozen the file systems at the moment of the copy;
	// Unfrozen is why not, for people. Neither is set for a machine that did not run.
	Frozen   bool
	Unfrozen string
}

type heldDisk struct {
	name, path string
	// template reports whether the machine creates the image if it is missing.
	template bool
	size     int64
}

// disks returns the images of a machine, which must exist and, unless it runs, not be in use.
func (h *Host) disks(o *spec.Object, running bool) ([]heldDisk, error) {
	local, err := h.Local(o, Given{})
	if err != nil {
		return nil, err
	}
	c, err := machineconfig.ForHost(o.VirtualMachine, local)
	if err != nil {
		return nil, err
	}
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	if err := h.checkMerged(d, &c); err != nil {
		return nil, err
	}
	template := map[string]bool{}
	for _, d := range machineconfig.Disks(o.VirtualMachine) {
		template[d.Name] = d.Entry.Template() != nil
	}
	var out []heldDisk
	var errs []error
	for _, d := range startDisks(&c, exists) {
		if d.made {
			errs = append(errs, fmt.Errorf("disk %q has no image yet: start the machine once", d.name))
			continue
		}
		info, err := os.Stat(d.path)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("disk %q: %w", d.name, err))
			continue
		case !info.Mode().IsRegular():
			errs = append(errs, fmt.Errorf("disk %q: %s is no file, and only images that are files are copied", d.name, d.path))
			continue
		}
		if running {
			// QEMU has it open.
		} else if err := checkUnused(d.path); err != nil {
			errs = append(errs, fmt.Errorf("disk %q: %w", d.name, err))
		}
		out = append(out, heldDisk{name: d.name, path: d.path, template: template[d.name], size: info.Size()})
	}
	return out, errors.Join(errs...)
}

type copying struct {
	options     CopyOptions
	done, total int64
}

func (c *copying) copyDisks(ctx context.Context, dir string, disks []heldDisk, fileOf func(heldDisk) string) error {
	var files []string
	for _, d := range disks {
		n, err := allocated(d.path)
		if err != nil {
			return err
		}
		c.total += n
		files = append(files, d.path)
	}
	if err := checkRoom(dir, files); err != nil {
		return err
	}
	for _, d := range disks {
		err := filecopy.Copy(ctx, d.path, filepath.Join(dir, fileOf(d)), func(n int64) {
			c.done += n
			if c.options.Progress != nil {
				c.options.Progress(min(c.done, c.total), c.total)
			}
		})
		if err != nil {
			return fmt.Errorf("disk %q: %w", d.name, err)
		}
	}
	return nil
}

func copyFiles(ctx context.Context, from, to string, names []string) error {
	for _, name := range names {
		if err := filecopy.Copy(ctx, filepath.Join(from, name), filepath.Join(to, name), func(int64) {}); err != nil {
			return err
		}
	}
	return nil
}

// hold prevents the start of a machine that does not run; a running one needs no lock. It first
// merges overlays of an interrupted copy. Others see doing, see [Machine.Busy].
func (m *Machine) hold(ctx context.Context, doing string) (release func() error, err error) {
	if m.Running() {
		_, err := m.finishCopy(ctx)
		return func() error { return nil }, err
	}
	lock, err := m.lockStopped(ctx, doing)
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

func (h *Host) free(namespace, name string) (Directories, error) {
	d, err := h.Directories(namespace, name)
	if err != nil {
		return d, err
	}
	if !exists(d.Data) {
		return d, nil
	}
	if _, err := h.Machine(namespace, name); errors.Is(err, ErrNotFound) {
		return d, fmt.Errorf("%s: disks of a deleted machine of that name are left: %s", FullName(namespace, name), d.Data)
	}
	return d, fmt.Errorf("%s: %w", FullName(namespace, name), ErrExists)
}

// abandonedAge is the minimum age of an abandoned directory: one that was just created may not be
// locked yet.
const abandonedAge = time.Minute

func removeAbandoned(parent, prefix string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.IsDir() {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < abandonedAge {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := runner.Lock(dir)
		if err != nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(dir), lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

func writeParts(record, dir string, o spec.Object, def Definition, carried map[string]runner.CarriedDisk, others bool) error {
	data, err := runner.CarriedRecord(record, carried, others)
	if err == nil && data != nil {
		err = atomicfile.Replace(filepath.Join(dir, runner.RecordFile), data)
	}
	d := Directories{Data: dir}
	return errors.Join(err, def.write(d), atomicfile.Replace(d.ManifestFile(), manifestText(&o)), atomicfile.SyncDir(dir))
}
