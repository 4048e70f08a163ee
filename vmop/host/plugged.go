package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// The present disks of a running machine are kept in the manifest that it was started with: disks
// plugged since are added to it, and unplugged ones removed.

type deviceChanges struct {
	h *Host
	m *Machine
	// had is the manifest with the machine's present disks, wants the new one, and config its
	// configuration.
	had, wants *spec.Object
	now        *spec.VirtualMachine
	config     *runnerconfig.Config
	given      map[string]string
	// plugged are the disks that can be unplugged, by their claims.
	plugged []string
	// became are the executed changes, by operation and path.
	became map[string]changes.Change
}

// changeDevices plugs the disks that a manifest adds to a running machine, and has its guest
// release those that it removes, if nothing else of the manifest waits for a restart. A disk
// without a free place waits for the next start. The error is [ErrNotReleased] if the guest does
// not release a disk.
func (h *Host) changeDevices(ctx context.Context, m *Machine, o *spec.Object, g Given, c *runnerconfig.Config) (*deviceChanges, error) {
	if m.Status != StatusRunning && m.Status != StatusPaused {
		return nil, nil // it starts, or ends: all waits for the next start
	}
	had, err := m.started()
	if errors.Is(err, errNoStarted) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &deviceChanges{
		h: h, m: m, had: &had, wants: o, now: had.VirtualMachine.DeepCopy(), config: c,
		given: g.canonical(o.VirtualMachine).Disks, became: map[string]changes.Change{},
	}
	if err := d.findPlugged(ctx); err != nil {
		return nil, err
	}
	all := between(d.had.VirtualMachine, o.VirtualMachine, d.plugged)
	for _, change := range all {
		d.became[change.Operation+change.Path] = change
	}
	if !slices.ContainsFunc(all, isPlugging) {
		return d, nil
	}
	release, err := m.hold(ctx, "changed") // this completes an interrupted copy
	if err != nil {
		return nil, err
	}
	for _, op := range []string{spec.OperationRemove, spec.OperationAdd} { // removals free places
		for _, change := range all {
			if change.Operation == op && isPlugging(change) {
				err = errors.Join(err, d.carryOut(ctx, change))
			}
		}
	}
	return d, errors.Join(err, release())
}

func diskAt(vm *spec.VirtualMachine, path string) (int, machineconfig.Disk, error) {
	return findDisk(vm, path, func(d *machineconfig.Disk) bool { return d.Field() == path })
}

func diskNamed(vm *spec.VirtualMachine, name string) (int, machineconfig.Disk, error) {
	return findDisk(vm, name, func(d *machineconfig.Disk) bool { return d.Name == name })
}

func findDisk(vm *spec.VirtualMachine, what string, is func(*machineconfig.Disk) bool) (int, machineconfig.Disk, error) {
	for i, d := range machineconfig.Disks(vm) {
		if is(&d) {
			return i, d, nil
		}
	}
	return 0, machineconfig.Disk{}, fmt.Errorf("%s: there is no such disk", what)
}

// findPlugged finds which removed disks can be unplugged, and which added ones are there already,
// since another command may have attached them. It forgets disks that the guest has released.
func (d *deviceChanges) findPlugged(ctx context.Context) error {
	def, err := d.m.Definition()
	if err != nil {
		return err
	}
	differ := map[string]heldDisk{} // by the claims
	for i, disk := range machineconfig.Disks(d.wants.VirtualMachine) {
		if _, _, err := diskNamed(d.had.VirtualMachine, disk.Name); err != nil && disk.Claim != "" {
			differ[disk.Claim] = heldDisk{name: disk.Name, path: d.config.Runner.VM.Drives[i].Where()}
		}
	}
	gone := map[string]bool{}
	for _, disk := range machineconfig.Disks(d.had.VirtualMachine) {
		if _, _, err := diskNamed(d.wants.VirtualMachine, disk.Name); err == nil || disk.Claim == "" {
			continue
		}
		held := heldDisk{name: disk.Name, path: def.Used[disk.Name]}
		if held.path == "" {
			if held, _, err = d.h.imageOf(d.had, disk.Name); err != nil {
				continue // it is no file, and so was never plugged
			}
		}
		differ[disk.Claim], gone[disk.Claim] = held, true
	}
	if len(differ) == 0 {
		return nil
	}
	forgotten := false
	err = d.m.monitor(ctx, func(c *qmp.Client) error {
		for _, claim := range slices.Sorted(maps.Keys(differ)) {
			found, err := findIn(ctx, c, []heldDisk{differ[claim]})
			switch {
			case err == nil && portOf(found[0].node) >= 0:
				d.plugged = append(d.plugged, claim)
			case errors.Is(err, errStartedWithout) && gone[claim]:
				forgotten = true
				forgetDisk(d.now, differ[claim].name)
			}
		}
		return nil
	})
	if err != nil || !forgotten {
		return err
	}
	d.had.VirtualMachine = d.now.DeepCopy()
	return d.m.noteStarted(d.now)
}

func forgetDisk(vm *spec.VirtualMachine, name string) {
	_, disk, err := diskNamed(vm, name)
	switch {
	case err != nil: // it is not there
	case disk.Ref != nil:
		vm.Spec.BlockDeviceRefs = slices.Delete(vm.Spec.BlockDeviceRefs, disk.Index, disk.Index+1)
	default:
		vm.Spec.VM.Disks = slices.Delete(vm.Spec.VM.Disks, disk.Index, disk.Index+1)
	}
}

func (d *deviceChanges) carryOut(ctx context.Context, change changes.Change) error {
	var err error
	name := ""
	if change.Operation == spec.OperationRemove {
		name, err = d.remove(ctx, change.Path)
	} else {
		name, err = d.add(ctx, change.Path)
	}
	if noPlace := (*noPlaceError)(nil); errors.As(err, &noPlace) {
		change.Applied, change.Reason = changes.AppliedRestart, noPlace.Error()
		d.became[change.Operation+change.Path] = change
		return nil
	}
	if err != nil {
		return fmt.Errorf("disk %q: %w", name, err)
	}
	d.became[change.Operation+change.Path] = change
	return d.m.noteStarted(d.now)
}

func (d *deviceChanges) remove(ctx context.Context, path string) (name string, err error) {
	_, disk, err := diskAt(d.had.VirtualMachine, path)
	if err != nil {
		return path, err
	}
	if err := d.unplug(ctx, &disk); err != nil {
		return disk.Name, err
	}
	forgetDisk(d.now, disk.Name)
	return disk.Name, nil
}

func (d *deviceChanges) add(ctx context.Context, path string) (name string, err error) {
	i, disk, err := diskAt(d.wants.VirtualMachine, path)
	if err != nil {
		return path, err
	}
	drives := d.config.Runner.VM.Drives
	if err := d.plug(ctx, &disk, &drives[i], runnerconfig.DiskSerials(drives)[i]); err != nil {
		return disk.Name, err
	}
	if disk.Ref != nil {
		d.now.Spec.BlockDeviceRefs = append(d.now.Spec.BlockDeviceRefs, *disk.Ref)
	} else {
		d.now.Spec.VM.Disks = append(d.now.Spec.VM.Disks, *disk.Entry)
	}
	return disk.Name, nil
}

func (d *deviceChanges) plug(ctx context.Context, disk *machineconfig.Disk, drive *runnerconfig.Drive, serial string) (err error) {
	path := drive.Where()
	if _, serr := os.Stat(path); errors.Is(serr, fs.ErrNotExist) && drive.File != "" && drive.Size > 0 {
		if drive.Image != nil {
			return &noPlaceError{"it is a copy of an image, which a start makes"}
		}
		made, merr := d.makeImage(drive)
		if merr != nil {
			return merr
		}
		defer func() {
			if made && err != nil {
				err = errors.Join(err, discard(path))
			}
		}()
	}
	there, err := d.mayPlug(ctx, disk.Name, path)
	if err != nil {
		return err
	}
	if !there {
		if err := d.m.plug(ctx, disk.Name, path, serial); err != nil {
			return err
		}
	}
	return d.note(func(def *Definition) {
		def.Used[disk.Name] = path
		if d.given[disk.Name] != "" {
			def.Disks[disk.Name] = path
		}
	})
}

// mayPlug checks that an image can be another disk of the machine, and reports whether it already
// is one: a previous command may have failed to record that.
func (d *deviceChanges) mayPlug(ctx context.Context, name, path string) (there bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, &noPlaceError{path + " is no file, and only images are plugged"}
	}
	for other, used := range d.h.diskPaths(d.m) {
		if i, err := os.Stat(used); err == nil && other != name && os.SameFile(info, i) {
			return false, fmt.Errorf("%s is the machine's disk %s", path, other)
		}
	}
	err = d.m.monitor(ctx, func(c *qmp.Client) error {
		_, err := findIn(ctx, c, []heldDisk{{name: name, path: path}})
		return err
	})
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, errStartedWithout):
		return false, err
	}
	if err := checkUpload(path); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return false, checkUnused(path)
}

// makeImage creates the empty image of a disk by a start's rules: not in place of one that existed
// before.
func (d *deviceChanges) makeImage(drive *runnerconfig.Drive) (made bool, err error) {
	def, err := d.m.Definition()
	if err != nil {
		return false, err
	}
	known, err := d.m.known(def)
	if err != nil {
		return false, err
	}
	if err := checkDisks(startDisks(d.config, hasContent), known, nil); err != nil {
		return false, &noPlaceError{err.Error()}
	}
	return runner.CreateImage(drive.Where(), int64(drive.Size))
}

// unplug has the guest release a disk, which may be given to another machine then.
func (d *deviceChanges) unplug(ctx context.Context, disk *machineconfig.Disk) error {
	held, _, err := d.h.imageOf(d.had, disk.Name)
	if err != nil {
		return err
	}
	if err := d.m.unplug(ctx, held); err != nil {
		return err
	}
	return d.note(func(def *Definition) {
		delete(def.Used, disk.Name)
		delete(def.Disks, disk.Name)
	})
}

func (d *deviceChanges) note(change func(*Definition)) error {
	def, err := d.m.Definition()
	if err != nil {
		return err
	}
	if def.Used == nil {
		def.Used = map[string]string{}
	}
	if def.Disks == nil {
		def.Disks = map[string]string{}
	}
	change(&def)
	return def.write(d.m.Directories)
}

// tell records in a manifest's changes what was done with its disks. It can differ from the
// manifests' differences: the machine may have had other disks than its previous manifest.
func (d *deviceChanges) tell(found []changes.Change) {
	left := map[string]changes.Change{} // by path; removals that failed by ""
	if d != nil {
		for _, c := range between(d.now, d.wants.VirtualMachine, nil) {
			if !c.IsDisk() {
				continue
			}
			if was, ok := d.became[c.Operation+c.Path]; ok {
				c.Reason = was.Reason
			}
			left[c.Path] = c
			if c.Operation == spec.OperationRemove {
				left[""] = c
			}
		}
	}
	for i := range found {
		c := &found[i]
		if !c.IsDisk() || c.Applied == changes.AppliedNever {
			continue
		}
		is, waits := left[c.Path]
		if !waits && c.Operation == spec.OperationRemove {
			is, waits = left[""]
		}
		switch {
		case waits:
			c.Applied, c.Reason = changes.AppliedRestart, is.Reason
		case d != nil:
			c.Applied = changes.AppliedLive
		case c.Applied == changes.AppliedLive:
			c.Applied, c.Reason = changes.AppliedRestart, "the machine is starting or ending, or an earlier version has started it"
		}
	}
}
