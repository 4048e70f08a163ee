package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

func (m *Machine) startedFile() string { return filepath.Join(m.runtimeDir(), runner.StartedFile) }

// errNoStarted is the error when it is unknown what a machine was started with.
var errNoStarted = errors.New("what it was started with is not known: an earlier version has started it, or it is about to end")

// noteStarted records the present disks of a running machine.
func (m *Machine) noteStarted(vm *spec.VirtualMachine) error {
	data, err := spec.Marshal(vm)
	if err != nil {
		return err
	}
	return atomicfile.Replace(m.startedFile(), data)
}

// isDisk reports whether a change adds or removes a disk.
func isDisk(c changes.Change) bool { return c.Operation != spec.OperationReplace && c.IsDisk() }

// started returns the manifest of the running machine.
func (m *Machine) started() (spec.Object, error) {
	data, err := os.ReadFile(m.startedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return spec.Object{}, fmt.Errorf("%s: %w", m.FullName(), errNoStarted)
	}
	if err != nil {
		return spec.Object{}, err
	}
	return m.objectOf(m.startedFile(), data)
}

// isPlugging reports whether a change adds or removes a disk while the machine runs.
func isPlugging(c changes.Change) bool { return c.Applied == changes.AppliedLive && isDisk(c) }
