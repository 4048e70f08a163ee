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

// untouched is nil of a machine that a start has given an identity, or has noted the
// disks of.
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

// undo removes what a start has made whose guest has never executed: the images that its
// engine says it has made, and the identity that nobody has seen. Nothing is touched that
// was there before, that lies elsewhere, or that another start may have used since; last is
// the state in which this one has ended.
func (j *Job) undo(made []string, last runner.State) (err error) {
	u, d := j.Untouched, j.Directories
	if u == nil {
		return nil
	}
	lock, err := runner.LockFor(d.Data, "changed")
	if errors.Is(err, runner.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil // it is another's, or is gone
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	now, err := runner.ReadState(d.StateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // this one has not come to have the machine
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
	// The definition first: a disk that it has, and that is gone, keeps the machine from
	// starting.
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

// forgetStart removes the state of a start that was undone: whoever has asked for it has
// been told. One of a service of systemd, which may have started it alone, stays.
func (j *Job) forgetStart() (err error) {
	d := j.Directories
	if j.Untouched == nil || !slices.Contains(j.Untouched.Files, manifestFile) || j.service != "" {
		return nil // also of one that nobody had created
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
		return err // another start has made something of it
	}
	if err := os.Remove(d.StateFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Discard removes what the first start of a machine has left that did not come to
// execute its guest: manifest, definition, state, log, and the images that this start has
// made. Nothing is removed of a machine that was there before, that somebody else has started
// meanwhile, or that a deleted one of its name has left something of; discarded reports which
// it was. A machine that was created, and not started yet, is again one that was not started
// yet, with what it was given and its log. The error is [ErrBusy] if somebody else works with the machine by now.
func (j *Job) Discard() (discarded bool, err error) {
	if !j.first {
		return false, j.forgetStart()
	}
	m := Machine{Directories: j.Directories, Namespace: j.Config.Runner.Namespace, Name: j.Config.Runner.VM.Name}
	if kept, err := os.ReadFile(m.ManifestFile()); err == nil && !bytes.Equal(kept, j.Manifest) {
		return false, nil // somebody else has made one meanwhile
	}
	_, err = m.Delete(DeleteOptions{Disks: true})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return err == nil, err
}
