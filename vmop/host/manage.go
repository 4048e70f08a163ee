package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrExists is the error when this host already has a machine of a name.
var ErrExists = errors.New("there is a machine of that name already")

// Create adds a machine without starting it. One that was loaded must be defaulted and valid; one
// created by a program, in an object with nothing else, is defaulted and validated. The error has a
// machineconfig.Error for each thing that this host lacks, or is [ErrExists].
func (h *Host) Create(o *spec.Object, g Given) (Machine, error) {
	o, err := written(o)
	if err != nil {
		return Machine{}, err
	}
	m, err := h.Machine(o.Namespace, o.Name)
	if err == nil {
		return m, fmt.Errorf("%s: %w", m.FullName(), ErrExists)
	}
	if !errors.Is(err, ErrNotFound) {
		return m, err
	}
	if _, _, err := h.configuration(o, g); err != nil {
		return m, err
	}
	if err := m.make(o, g); err != nil {
		return m, err
	}
	return h.Machine(o.Namespace, o.Name)
}

// make creates a machine, perhaps in the directory that a deleted one has left. Of two concurrent
// calls one succeeds; on an error no empty directory is left.
func (m *Machine) make(o *spec.Object, g Given) (err error) {
	defer func() {
		if err != nil {
			_ = os.Remove(m.Data) // it fails if anything is in it
		}
	}()
	lock, err := m.makeLocked()
	if errors.Is(err, runner.ErrLocked) {
		return fmt.Errorf("%s: %w", m.FullName(), ErrExists)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !errors.Is(err, ErrExists) {
			_ = os.Remove(filepath.Join(m.Data, runner.LockFile))
		}
		err = errors.Join(err, lock.Close())
	}()
	if exists(m.ManifestFile()) {
		return fmt.Errorf("%s: %w", m.FullName(), ErrExists)
	}
	return m.keep(o, g)
}

// makeLocked creates the machine's directory and locks it. Another process that deletes a machine
// of that name, or fails to create one, may remove it in between.
func (m *Machine) makeLocked() (lock *os.File, err error) {
	const others = 100 // far more than there are
	for range others {
		if err = makePrivate(m.Data); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("directory of the machine: %w", err)
		}
		if lock, err = runner.LockFor(m.Data, "made"); !errors.Is(err, fs.ErrNotExist) {
			return lock, err
		}
	}
	return nil, err
}

// Awaiting are the changes of the manifest since the machine was started that take effect with its
// next start. They are empty for a machine that does not run, and unknown if an older version has
// started it.
func (m *Machine) Awaiting() ([]changes.Change, error) {
	if !m.Running() {
		return nil, nil
	}
	started, err := m.started()
	if err != nil {
		return nil, err
	}
	now, err := m.Object()
	if err != nil {
		return nil, err
	}
	all := Changes(started.VirtualMachine, now.VirtualMachine)
	for i := range all {
		if isPlugging(all[i]) { // it was not possible, or was done but not recorded
			all[i].Applied, all[i].Reason = changes.AppliedRestart, ""
		}
	}
	return slices.DeleteFunc(all, func(c changes.Change) bool { return c.Applied != changes.AppliedRestart }), nil
}
