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

var errNoStarted = errors.New("what it was started with is not known: an earlier version has started it, or it is about to end")

func (m *Machine) noteStarted(vm *spec.VirtualMachine) error {
	data, err := spec.Marshal(vm)
	if err != nil {
		return err
	}
	return atomicfile.Replace(m.startedFile(), data)
}

func isDisk(c changes.Change) bool { return c.Operation != spec.OperationReplace && c.IsDisk() }

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

func isPlugging(c changes.Change) bool { return c.Applied == changes.AppliedLive && isDisk(c) }
