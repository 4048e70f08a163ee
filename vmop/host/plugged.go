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

// What a machine that runs has of the disks of its manifest is kept beside what it was
// started with, in one file: the manifest of its start, with the disks that have come and
// without those that have gone since.

// deviceChanges are the disks that come and go while a machine runs.
type deviceChanges struct {
	h *Host
	m *Machine
	// had is the manifest that the machine had, now with the disks that it has meanwhile,
	// wants the one that it is to have, and config its configuration with what is given.
	had, wants *spec.Object
	now        *spec.VirtualMachine
	config     *runnerconfig.Config
	given      map[string]string
	// plugged are the disks that can go, by their claims.
	plugged []string
	// became are the changes from what the machine has, by operation and path, as they are
	// carried out.
	became map[string]changes.Change
}

// changeDevices plugs the disks that a manifest has more than the machine that runs, and
// has its guest release those that it has no more, where nothing else of the manifest
// waits for a restart. What the machine has no place for waits for its next start. A guest
// that does not release a disk has the error [ErrNotReleased].
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
	release, err := m.hold(ctx, "changed") // completes a copy that was interrupted
	if err != nil {
		return nil, err
	}
	for _, op := range []string{spec.OperationRemove, spec.OperationAdd} { // what goes leaves a place
		for _, change := range all {
			if change.Operation == op && isPlugging(change) {
				err = errors.Join(err, d.carryOut(ctx, change))
			}
		}
	}
	return d, errors.Join(err, release())
}

// diskAt is the disk of a machine at a path of its manifest, and its position among all.
func diskAt(vm *spec.VirtualMachine, path string) (int, machineconfig.Disk, error) {
	return findDisk(vm, path, func(d *machineconfig.Disk) bool { return d.Field() == path })
}

// diskNamed is the disk of a machine of a name.
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

// findPlugged finds which disks are where they can go from, of those that the manifest has
// no more, and of those that it has more: somebody may have attached them. What the guest
// has released is forgotten.
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
				continue // no file, which never was plugged
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

// forgetDisk takes a disk out of a machine.
func forgetDisk(vm *spec.VirtualMachine, name string) {
	_, disk, err := diskNamed(vm, name)
	switch {
	case err != nil: // it has it not
	case disk.Ref != nil:
		vm.Spec.BlockDeviceRefs = slices.Delete(vm.Spec.BlockDeviceRefs, disk.Index, disk.Index+1)
	default:
		vm.Spec.VM.Disks = slices.Delete(vm.Spec.VM.Disks, disk.Index, disk.Index+1)
	}
}

// carryOut plugs a disk, or has it released, and notes that the machine has it, or has
// not.
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

// remove has the guest release the disk at a path of what it had.
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

// add plugs the disk at a path of what the machine is to have.
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

// plug plugs a disk, whose image is made if it is not there yet.
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

// mayPlug refuses what cannot be another disk of the machine, and reports whether it has
// it already: whoever plugged it could not write that down.
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

// makeImage makes the empty image of a disk, as a start does, and as a start does not in
// place of one that there was.
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

// note changes what is known of what the machine is made of.
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

// tell says of the changes of a manifest what has become of its disks, which is more or
// less than the manifests say: the machine may have had other disks than the former one.
func (d *deviceChanges) tell(found []changes.Change) {
	left := map[string]changes.Change{} // by path, and those that should have gone by ""
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
