package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runner"
)

// untouched returns nil for a machine that has an identity or recorded disks from an earlier start.
func (d Directories) untouched() (*Untouched, error) {
	def, err := d.Definition()
	if err != nil {
		return nil, err
	}
	if exists(filepath.Join(d.Data, runner.UUIDFile)) || len(def.Used) > 0 {
		return nil, nil
	}
	u := &Untouched{Definition: def}
	entries, err := os.ReadDir(d.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		u.Files = append(u.Files, e.Name())
	}
	u.Record, err = os.ReadFile(filepath.Join(d.Data, runner.RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return u, err
}

// undo removes the images that a start's engine reports as created, and the identity that no guest
// has seen. It does not touch what existed before, what is elsewhere, or what another start may
// have used since; last is the last state of this start.
func (j *Job) undo(made []string, last runner.State) (err error) {
	u, d := j.Untouched, j.Directories
	if u == nil {
		return nil
	}
	lock, err := runner.LockFor(d.Data, "changed")
	if errors.Is(err, runner.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil // it is another start's, or does not exist
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	now, err := runner.ReadState(d.StateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // this start never had the machine
	}
	if err != nil || !now.Since.Equal(last.Since) || now.Phase != runner.PhaseStopped {
		return err
	}
	var errs []error
	remove := func(name string) {
		if err := os.Remove(filepath.Join(d.Data, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	// The definition first: if it named a deleted disk, the machine could not start.
	def := j.Definition
	def.Used = u.Definition.Used
	if err := def.write(d); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.Data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(u.Files, e.Name()) {
			continue
		}
		switch kind, _ := classify(e.Name(), e.Type()); {
		case kind == FileIdentity:
			remove(e.Name())
		case kind == FileDisk && slices.Contains(made, filepath.Join(d.Data, e.Name())):
			remove(e.Name())
		}
	}
	if u.Record != nil {
		errs = append(errs, atomicfile.Replace(filepath.Join(d.Data, runner.RecordFile), u.Record))
	}
	return errors.Join(errs...)
}

// forgetStart removes the state of an undone start: the caller already has the error. The state of
// a systemd service is kept, since systemd may have started it by itself.
func (j *Job) forgetStart() (err error) {
	d := j.Directories
	if j.Untouched == nil || !slices.Contains(j.Untouched.Files, manifestFile) || j.service != "" {
		return nil // or the machine was not created before
	}
	lock, err := runner.LockFor(d.Data, "changed")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, runner.ErrLocked):
		return fmt.Errorf("%s: %w", j.FullName(), d.errBusy())
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if now, err := d.untouched(); err != nil || now == nil {
		return err // another start has created something of it
	}
	if err := os.Remove(d.StateFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Discard removes what the first start of a machine has left if its guest never executed: manifest,
// definition, state, log, and the images that this start has created. It removes nothing of a
// machine that existed before, that was started otherwise meanwhile, or of whose name a deleted
// machine has left something; discarded reports whether it did. A machine that was created, but not
// started, returns to that state, with what it was given and its log. The error is [ErrBusy] if
// another process works on the machine.
func (j *Job) Discard() (discarded bool, err error) {
	if !j.first {
		return false, j.forgetStart()
	}
	m := Machine{Directories: j.Directories, Namespace: j.Config.Runner.Namespace, Name: j.Config.Runner.VM.Name}
	if kept, err := os.ReadFile(m.ManifestFile()); err == nil && !bytes.Equal(kept, j.Manifest) {
		return false, nil // another process has created one meanwhile
	}
	_, err = m.remove(DeleteOptions{Disks: true})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return err == nil, err
}
