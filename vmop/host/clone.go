package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// CopyOptions say how disks are copied.
type CopyOptions struct {
	// Progress is told how many bytes of how many are copied; nil tells nobody.
	Progress func(done, total int64)
	// Copied is told how the disks of a copy fit together; nil tells nobody.
	Copied func(Consistency)
}

// Consistency says how the disks of a copy fit together.
type Consistency struct {
	// Running says that the machine ran meanwhile.
	Running bool
	// Frozen says that the guest agent had frozen the file systems at the moment of the
	// copy, and Unfrozen why not, for people. Neither is set for a machine that did not run.
	Frozen   bool
	Unfrozen string
}

// heldDisk is a disk image that a machine has.
type heldDisk struct {
	name, path string
	// template says that the image is one that the machine makes if there is none.
	template bool
	// size is the file's, in bytes.
	size int64
}

// disks are the images of a machine, all of which are there. Those of one that does
// not run nobody else may have.
func (h *Host) disks(o *spec.Object, running bool) ([]heldDisk, error) {
	local, err := h.Local(o, Given{})
	if err != nil {
		return nil, err
	}
	c, err := machineconfig.ForHost(o.VirtualMachine, local)
	if err != nil {
		return nil, err
	}
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	if err := h.checkMerged(d, &c); err != nil {
		return nil, err
	}
	template := map[string]bool{}
	for _, d := range machineconfig.Disks(o.VirtualMachine) {
		template[d.Name] = d.Entry.Template() != nil
	}
	var out []heldDisk
	var errs []error
	for _, d := range startDisks(&c, exists) {
		if d.made {
			errs = append(errs, fmt.Errorf("disk %q has no image yet: start the machine once", d.name))
			continue
		}
		info, err := os.Stat(d.path)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("disk %q: %w", d.name, err))
			continue
		case !info.Mode().IsRegular():
			errs = append(errs, fmt.Errorf("disk %q: %s is no file, and only images that are files are copied", d.name, d.path))
			continue
		}
		if running {
			// QEMU has it.
		} else if err := checkUnused(d.path); err != nil {
			errs = append(errs, fmt.Errorf("disk %q: %w", d.name, err))
		}
		out = append(out, heldDisk{name: d.name, path: d.path, template: template[d.name], size: info.Size()})
	}
	return out, errors.Join(errs...)
}

// copying copies images into a directory.
type copying struct {
	options     CopyOptions
	done, total int64
}

// copyDisks copies images into a directory, under their names there.
func (c *copying) copyDisks(ctx context.Context, dir string, disks []heldDisk, fileOf func(heldDisk) string) error {
	var files []string
	for _, d := range disks {
		n, err := allocated(d.path)
		if err != nil {
			return err
		}
		c.total += n
		files = append(files, d.path)
	}
	if err := checkRoom(dir, files); err != nil {
		return err
	}
	for _, d := range disks {
		err := filecopy.Copy(ctx, d.path, filepath.Join(dir, fileOf(d)), func(n int64) {
			c.done += n
			if c.options.Progress != nil {
				c.options.Progress(min(c.done, c.total), c.total)
			}
		})
		if err != nil {
			return fmt.Errorf("disk %q: %w", d.name, err)
		}
	}
	return nil
}

// copyFiles copies small files from one directory to another.
func copyFiles(ctx context.Context, from, to string, names []string) error {
	for _, name := range names {
		if err := filecopy.Copy(ctx, filepath.Join(from, name), filepath.Join(to, name), func(int64) {}); err != nil {
			return err
		}
	}
	return nil
}

// free is where a machine of a new name would be. What is left of a deleted one is
// in the way, too.
func (h *Host) free(namespace, name string) (Directories, error) {
	d, err := h.Directories(namespace, name)
	if err != nil {
		return d, err
	}
	if !exists(d.Data) {
		return d, nil
	}
	if _, err := h.Machine(namespace, name); errors.Is(err, ErrNotFound) {
		return d, fmt.Errorf("%s: disks of a deleted machine of that name are left: %s", FullName(namespace, name), d.Data)
	}
	return d, fmt.Errorf("%s: %w", FullName(namespace, name), ErrExists)
}

// copyMachine copies the disks of a machine, as they are at one moment, to files in a
// directory. still is called at that moment, in which nothing in the machine changes.
// One that does not run is locked.
func (m *Machine) copyMachine(ctx context.Context, dir string, disks []heldDisk, fileOf func(heldDisk) string, options CopyOptions, still func() error) (how Consistency, total int64, err error) {
	copied := &copying{options: options}
	if m.Running() {
		how, err = m.copyRunning(ctx, dir, disks, fileOf, options, still)
	} else if err = copied.copyDisks(ctx, dir, disks, fileOf); err == nil {
		err = still()
	}
	if err != nil {
		return how, 0, err
	}
	for _, d := range disks {
		n, err := allocated(filepath.Join(dir, fileOf(d)))
		if err != nil {
			return how, 0, err
		}
		total += n
	}
	return how, total, nil
}

// hold keeps a machine that does not run from being started. One that runs has
// somebody who does so. Neither has overlays of a copy that was interrupted. What is
// done with it meanwhile others are told, see [Machine.Busy].
func (m *Machine) hold(ctx context.Context, doing string) (release func() error, err error) {
	if m.Running() {
		_, err := m.finishCopy(ctx)
		return func() error { return nil }, err
	}
	lock, err := m.lockStopped(ctx, doing)
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// Clone makes another machine of one: with copies of its disks, wherever they are, its
// UEFI variables and the state of its TPM, and with a UUID, MAC addresses and an
// instance-id for cloud-init of its own. What the guest has written down of itself on
// its disks, such as SSH host keys, it has too. Of a machine that runs the disks are
// copied as for [Host.CreateSnapshot]. The error is [ErrExists] if there is a machine
// of the new name. What is interrupted leaves no machine.
func (h *Host) Clone(ctx context.Context, m Machine, namespace, name string, options CopyOptions) (Machine, error) {
	fail := func(err error) (Machine, error) {
		return Machine{}, fmt.Errorf("clone %s: %w", m.FullName(), err)
	}
	to, err := h.free(namespace, name)
	if err != nil {
		return fail(err)
	}
	release, err := m.hold(ctx, "cloned")
	if err != nil {
		return fail(err)
	}
	defer release()
	o, err := m.Object()
	if err != nil {
		return fail(err)
	}
	named, err := namedManifest(&o, namespaceOr(namespace), name, true)
	if err != nil {
		return fail(err)
	}
	disks, err := h.disks(&o, m.Running())
	if err != nil {
		return fail(err)
	}
	def, err := m.Definition()
	if err != nil {
		return fail(err)
	}
	parent := filepath.Dir(to.Data)
	if err := makePrivate(parent); err != nil {
		return fail(err)
	}
	if err := removeAbandoned(parent, newClonePrefix); err != nil {
		return fail(err)
	}
	tmp, err := os.MkdirTemp(parent, newClonePrefix+name+"-")
	if err != nil {
		return fail(err)
	}
	if err := h.fillClone(ctx, &m, tmp, to, named, def, disks, options); err != nil {
		return fail(errors.Join(err, os.RemoveAll(tmp)))
	}
	return h.Machine(namespace, name)
}

// newClonePrefix begins the names of clones that are being made, each of which is locked.
const newClonePrefix = ".clone-"

func (h *Host) fillClone(ctx context.Context, m *Machine, tmp string, to Directories, named spec.Object, def Definition, disks []heldDisk, options CopyOptions) error {
	own, err := runner.Lock(tmp) // nobody takes it for abandoned
	if err != nil {
		return err
	}
	defer own.Close()
	// Copies that share blocks are made at once, and look at nothing on their way.
	if err := context.Cause(ctx); err != nil {
		return err
	}
	fileOf := func(d heldDisk) string { return d.name + ".img" }
	still := func() error {
		names, err := m.identityNames()
		if err != nil {
			return err
		}
		return copyFiles(ctx, m.Data, tmp, names)
	}
	how, _, err := m.copyMachine(ctx, tmp, disks, fileOf, options, still)
	if err != nil {
		return err
	}
	if options.Copied != nil {
		options.Copied(how)
	}
	carried := map[string]runner.CarriedDisk{}
	def.Disks, def.Used = map[string]string{}, map[string]string{}
	for _, d := range disks {
		path := filepath.Join(to.Data, fileOf(d))
		def.Used[d.name] = path
		if !d.template {
			def.Disks[d.name] = path
		}
		carried[d.path] = runner.CarriedDisk{Path: path, File: filepath.Join(tmp, fileOf(d)), Left: how.Running}
	}
	def.InstanceID = newInstanceID(named.Namespace, named.Name)
	if err := writeParts(m.Data, tmp, named, def, carried, false); err != nil {
		return err
	}
	return moveNew(tmp, to.Data)
}

// writeParts writes what a machine is made of beside its disks, of which record is
// the directory with the present record.
func writeParts(record, dir string, o spec.Object, def Definition, carried map[string]runner.CarriedDisk, others bool) error {
	data, err := runner.CarriedRecord(record, carried, others)
	if err == nil && data != nil {
		err = atomicfile.Replace(filepath.Join(dir, runner.RecordFile), data)
	}
	d := Directories{Data: dir}
	return errors.Join(err, def.write(d), atomicfile.Replace(d.ManifestFile(), manifestText(&o)), atomicfile.SyncDir(dir))
}

// newInstanceID is one that no guest has seen.
func newInstanceID(namespace, name string) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return namespaceOr(namespace) + "." + name + "-" + hex.EncodeToString(b[:])
}

// abandonedAge is how old a directory is at least that is taken for abandoned: one that
// was just made may not be locked yet.
const abandonedAge = time.Minute

// removeAbandoned removes directories of a prefix that nobody fills any more.
func removeAbandoned(parent, prefix string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.IsDir() {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < abandonedAge {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := runner.Lock(dir)
		if err != nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(dir), lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Rename gives a machine that does not run another name, and with it another
// directory. What the guest knows it by stays: UUID, MAC addresses, cloud-init's
// instance-id; its host name follows the name where cloud-init sets it. The error is
// [ErrExists] if there is a machine of the new name. Whatever interrupts it, the
// machine has the one name or the other.
func (h *Host) Rename(m Machine, namespace, name string) (Machine, error) {
	fail := func(err error) (Machine, error) {
		return m, fmt.Errorf("rename %s: %w", m.FullName(), err)
	}
	to, err := h.free(namespace, name)
	if err != nil {
		return fail(err)
	}
	if units := h.Enabled(m.Namespace, m.Name); len(units) > 0 {
		return fail(fmt.Errorf("%s starts it by its name: disable it first", units[0]))
	}
	lock, err := m.lockStopped(context.Background(), "renamed") // what takes long is rare, and should be done
	if err != nil {
		return fail(err)
	}
	defer lock.Close()
	if err := m.stageRename(to, namespace, name); err != nil {
		return fail(err)
	}
	if err := makePrivate(filepath.Dir(to.Data)); err != nil {
		return fail(err)
	}
	if err := moveNew(m.Data, to.Data); err != nil {
		return fail(err)
	}
	// It has the new name from here on.
	if err := settle(to, namespace, name); err != nil {
		return fail(err)
	}
	_ = os.Remove(filepath.Dir(m.Data)) // the namespace's, if that was the last one
	return h.Machine(namespace, name)
}

// stageRename prepares what will be different in the directory under its new name.
func (m *Machine) stageRename(to Directories, namespace, name string) error {
	o, err := m.Object()
	if err != nil {
		return err
	}
	named, err := namedManifest(&o, namespaceOr(namespace), name, false)
	if err != nil {
		return err
	}
	def, err := m.Definition()
	if err != nil {
		return err
	}
	moved := func(path string) string {
		if below, err := filepath.Rel(m.Data, path); err == nil && filepath.IsLocal(below) {
			return filepath.Join(to.Data, below)
		}
		return path
	}
	known, err := runner.KnownImages(m.Data)
	if err != nil {
		return err
	}
	carried := map[string]runner.CarriedDisk{}
	for path := range known {
		if moved(path) != path && exists(path) {
			carried[path] = runner.CarriedDisk{Path: moved(path), File: path}
		}
	}
	for _, paths := range []map[string]string{def.Disks, def.Used} {
		for disk, path := range paths {
			paths[disk] = moved(path)
		}
	}
	if def.InstanceID == "" {
		def.InstanceID = m.Namespace + "." + m.Name
	}
	staging, err := stage(m.Data)
	if err != nil {
		return err
	}
	if err := writeParts(m.Data, staging, named, def, carried, true); err != nil {
		return err
	}
	if s, err := runner.ReadState(m.StateFile()); err == nil { // there is none before the first start
		s.Name, s.Namespace, s.DataDir, s.RuntimeDir = name, namespaceOr(namespace), to.Data, to.Runtime
		data, err := json.Marshal(s)
		if err == nil {
			err = atomicfile.Replace(filepath.Join(staging, stateFile), data)
		}
		if err != nil {
			return err
		}
	}
	return commit(m.Data, namespace, name, nil)
}
