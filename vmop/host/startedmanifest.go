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

// errNoStarted says that it is not known what a machine was started with.
var errNoStarted = errors.New("what it was started with is not known: an earlier version has started it, or it is about to end")

// noteStarted keeps which disks of a manifest a machine that runs has now.
func (m *Machine) noteStarted(vm *spec.VirtualMachine) error {
	data, err := spec.Marshal(vm)
	if err != nil {
		return err
	}
	return atomicfile.Replace(m.startedFile(), data)
}

// isDisk reports whether a change is that of a disk which comes or goes.
func isDisk(c changes.Change) bool { return c.Operation != spec.OperationReplace && c.IsDisk() }

// started is the manifest that a machine that runs has.
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

// isPlugging reports whether a change is that of a disk which comes or goes while the
// machine runs.
func isPlugging(c changes.Change) bool { return c.Applied == changes.AppliedLive && isDisk(c) }
