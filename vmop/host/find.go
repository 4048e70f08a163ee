package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/runner"
)

// ListOptions select machines.
type ListOptions struct {
	// Namespace is that of the machines; empty selects all.
	Namespace string
	// Leftovers includes deleted machines of which disks are left.
	Leftovers bool
}

// List lists the machines of this host, in the order of their names.
func (h *Host) List(o ListOptions) ([]Machine, error) {
	var out []Machine
	namespaces, err := subdirectories(filepath.Join(h.root, machinesDir))
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		if o.Namespace != "" && o.Namespace != namespace {
			continue
		}
		names, err := subdirectories(filepath.Join(h.root, machinesDir, namespace))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			m, err := h.Machine(namespace, name)
			switch {
			case errors.Is(err, ErrNotFound):
				if left, err := m.Files(); !o.Leftovers || errors.Is(err, fs.ErrNotExist) || err == nil && len(left) == 0 {
					continue
				}
				m.Status = StatusDeleted
			case err != nil:
				return nil, err
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// Machine returns one machine. If the name does not exist, the error is [ErrNotFound], and the
// result has only the directories.
func (h *Host) Machine(namespace, name string) (Machine, error) {
	m := Machine{Namespace: namespaceOr(namespace), Name: name}
	var err error
	if m.Directories, err = h.Directories(namespace, name); err != nil {
		return m, err
	}
	// What cannot be completed prevents a start, but not listing the machine.
	_ = settleIdle(m.Directories, m.Namespace, name)
	holders, err := runner.Holders(m.Data)
	if err != nil {
		return m, err
	}
	m.Busy = busyOf(holders)
	m.State, err = runner.ReadState(m.StateFile())
	switch {
	case errors.Is(err, fs.ErrNotExist) && (len(holders) == 0 || m.Busy != nil):
		info, err := os.Stat(m.ManifestFile())
		if errors.Is(err, fs.ErrNotExist) {
			return m, fmt.Errorf("%s: %w", m.FullName(), ErrNotFound)
		}
		if err != nil {
			return m, err
		}
		m.State = runner.State{
			Name: m.Name, Namespace: m.Namespace, Phase: runner.PhaseStopped, Since: info.ModTime(), Message: "it was not started yet",
		}
	case errors.Is(err, fs.ErrNotExist): // it is just being started
	case err != nil:
		// One broken file must not hide the other machines.
		m.State = runner.State{Message: err.Error()}
	}
	m.Status, m.Runner, m.QEMU = judge(m.State, holders)
	m.Unmerged = overlay.Left(m.Data)
	// The runner's current state is in its runtime directory, even if the data directory is full.
	if now, err := runner.ReadState(filepath.Join(m.runtimeDir(), runner.RuntimeStateFile)); err == nil && m.Runner != 0 && now.RunnerPID == m.Runner {
		m.State = now
		m.Status, m.Runner, m.QEMU = judge(now, holders)
	}
	return m, nil
}

// AmbiguousError is the error when several machines have a name.
type AmbiguousError struct {
	// Name is the requested name.
	Name string
	// Machines are the full names of those that have it.
	Machines []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s: there are %s: name one of them", e.Name, strings.Join(e.Machines, " and "))
}

// Find returns the machine of a name: NAMESPACE/NAME, or NAME if that is unique in the namespace,
// or in all if the namespace is empty. The error is [ErrNotFound] or an [*AmbiguousError].
func (h *Host) Find(name, namespace string) (Machine, error) {
	return h.find(name, ListOptions{Namespace: namespace})
}

// FindAny is Find including deleted machines of which disks are left.
func (h *Host) FindAny(name, namespace string) (Machine, error) {
	return h.find(name, ListOptions{Namespace: namespace, Leftovers: true})
}

func (h *Host) find(arg string, o ListOptions) (Machine, error) {
	name := arg
	if n, rest, ok := strings.Cut(arg, "/"); ok {
		o.Namespace, name = n, rest
	}
	all, err := h.List(o)
	if err != nil {
		return Machine{}, err
	}
	var found []Machine
	var names []string
	for _, m := range all {
		if m.Name == name {
			found = append(found, m)
			names = append(names, m.FullName())
		}
	}
	switch len(found) {
	case 0:
		return Machine{}, fmt.Errorf("%s: %w", arg, ErrNotFound)
	case 1:
		return found[0], nil
	}
	return Machine{}, &AmbiguousError{Name: arg, Machines: names}
}
