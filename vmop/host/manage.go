package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrExists says that this host has a machine of a name already.
var ErrExists = errors.New("there is a machine of that name already")

// ErrNoManifest says that no manifest is kept with a machine.
var ErrNoManifest = errors.New("no manifest is kept with the machine")

// Create keeps a machine without starting it. One that was loaded must be defaulted and
// valid; one that a program has made, in an object with nothing else, becomes so.
// The error has a machineconfig.Error for each thing that this host does not have, or is
// [ErrExists].
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

// make keeps a machine that there was none of a moment ago, in the directory that a
// deleted one may have left. Of two that make it at once one does; one that cannot
// leaves no empty directory.
func (m *Machine) make(o *spec.Object, g Given) (err error) {
	defer func() {
		if err != nil {
			_ = os.Remove(m.Data) // which is not empty if there is anything of a machine
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

// makeLocked makes the machine's directory and locks it. Whoever deletes a machine of
// that name, or gives up making one, may remove it in between.
func (m *Machine) makeLocked() (lock *os.File, err error) {
	const others = 100 // far more than there are
	for range others {
		if err = makePrivate(m.Data); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("directory of the machine: %w", err)
		}
		if lock, err = runner.LockFor(m.Data, "made"); !errors.Is(err, fs.ErrNotExist) {
			return lock, err
		}
	}
	return nil, err
}

// keep writes down what a machine is made of.
func (d Directories) keep(o *spec.Object, g Given) error {
	def, err := d.Definition()
	if err != nil {
		return err
	}
	def.Given = g.canonical(o.VirtualMachine).over(def.Given)
	return errors.Join(def.write(d), atomicfile.Replace(d.ManifestFile(), manifestText(o)))
}

// Object is the machine's manifest, defaulted and valid. The error is
// [ErrNoManifest], or says what is wrong with it.
func (m *Machine) Object() (spec.Object, error) {
	data, err := os.ReadFile(m.ManifestFile())
	if errors.Is(err, fs.ErrNotExist) {
		return spec.Object{}, fmt.Errorf("%s: %w", m.FullName(), ErrNoManifest)
	}
	if err != nil {
		return spec.Object{}, err
	}
	return m.objectOf(m.ManifestFile(), data)
}

// objectOf is the manifest of the machine in a file.
func (m *Machine) objectOf(file string, data []byte) (spec.Object, error) {
	objects, err := spec.Load(file, data, spec.Options{Default: true, Validate: true})
	if err != nil {
		return spec.Object{}, err
	}
	for _, o := range objects {
		if o.VirtualMachine != nil && o.Name == m.Name && namespaceOr(o.Namespace) == m.Namespace {
			return o, nil
		}
	}
	return spec.Object{}, fmt.Errorf("%s: there is no VirtualMachine %s in it", file, m.FullName())
}

// Awaiting are the changes of the manifest since the machine was started that it gets
// at its next start only. A machine that does not run has none, and of one that a
// version before this has started they are not known.
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
		if isPlugging(all[i]) { // it was not possible, or nobody could write down that it was done
			all[i].Applied, all[i].Reason = changes.AppliedRestart, ""
		}
	}
	return slices.DeleteFunc(all, func(c changes.Change) bool { return c.Applied != changes.AppliedRestart }), nil
}

// Applied is what has become of a new manifest.
type Applied struct {
	// Changes are the differences, with what each needs; see [Changes].
	Changes []changes.Change
	// Running says that the machine runs and was told.
	Running bool
	// Waiting are the conditions of the running machine that are not as the
	// manifest says, RestartRequired among them.
	Waiting []live.Condition
}

// Apply makes a manifest, defaulted and valid, that of a machine that exists, and has
// a machine that runs follow it as far as it can while it runs. It returns when that
// is done, or when ctx ends.
func (h *Host) Apply(ctx context.Context, m Machine, o *spec.Object, g Given) (Applied, error) {
	var out Applied
	if o == nil || o.VirtualMachine == nil {
		return out, errNoMachine
	}
	if o.Name != m.Name || namespaceOr(o.Namespace) != m.Namespace {
		return out, fmt.Errorf("the manifest is that of %s, not of %s", FullName(o.Namespace, o.Name), m.FullName())
	}
	before, err := m.Object()
	if err != nil && !errors.Is(err, ErrNoManifest) {
		before = spec.Object{} // it is replaced, whatever is wrong with it
	}
	if before.VirtualMachine != nil {
		out.Changes = Changes(before.VirtualMachine, o.VirtualMachine)
		if def, err := m.Definition(); err == nil && len(def.Used) == 0 && !exists(filepath.Join(m.Data, runner.UUIDFile)) {
			// It was not started yet, and its disks will be what is said now. One without
			// disks that was has a UUID.
			for i := range out.Changes {
				out.Changes[i].Applied, out.Changes[i].Reason = changes.AppliedRestart, ""
			}
		}
		def, err := m.Definition()
		if err != nil {
			return out, err
		}
		keepSizes(out.Changes, o.VirtualMachine, g.canonical(o.VirtualMachine).over(def.Given).Disks)
	}
	c, _, err := h.configuration(o, g)
	if err != nil {
		return out, err
	}
	if m.Runner != 0 {
		devices, err := h.changeDevices(ctx, &m, o, g, &c)
		if err != nil {
			return out, err
		}
		devices.tell(out.Changes)
	}
	if err := m.keep(o, g); err != nil {
		return out, err
	}
	if m.Runner == 0 {
		return out, nil
	}
	out.Running = true
	c.Runner.Generation = m.State.Generation + 1
	data, err := json.Marshal(c)
	if err != nil {
		return out, err
	}
	if err := atomicfile.Replace(filepath.Join(m.runtimeDir(), runner.ConfigFile), data); err != nil {
		return out, fmt.Errorf("tell the machine: %w", err)
	}
	m, err = h.Wait(ctx, m, func(now *Machine) (bool, error) {
		if !now.Running() {
			return true, nil
		}
		s := &now.State
		refused := slices.ContainsFunc(s.Conditions, func(c live.Condition) bool {
			return c.Type == runner.ConfigurationAccepted && c.Status != live.True
		})
		settled := !slices.ContainsFunc(s.Conditions, func(c live.Condition) bool { return c.Reason == live.ReasonAdjusting })
		return refused || s.Generation >= c.Runner.Generation && settled, nil
	})
	for _, c := range m.State.Conditions {
		if bad := c.Status != live.True; c.Type == live.RestartRequired && !bad || waits(c) {
			out.Waiting = append(out.Waiting, c)
		}
	}
	return out, err
}

// waits reports whether a condition says that the machine is not as it should be.
func waits(c live.Condition) bool {
	return c.Type != live.RestartRequired && c.Type != live.GuestExecuting && c.Status == live.False
}
