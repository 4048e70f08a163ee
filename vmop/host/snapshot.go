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
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// CreateSnapshot creates a snapshot of a machine. The disks of one that does not run are copied,
// which takes no space where the file system shares blocks (Btrfs, XFS). A running one goes on
// meanwhile: its guest is paused at the moment from which on it writes to overlays, with its file
// systems frozen if its agent can do that, and again when its QEMU has merged them. The error is
// [ErrSnapshotExists] if the name exists. An interrupted call leaves no snapshot.
func (h *Host) CreateSnapshot(ctx context.Context, m Machine, name string, options CopyOptions) (Snapshot, error) {
	release, err := m.hold(ctx, "copied")
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	s, err := h.createSnapshot(ctx, &m, name, options)
	return s, errors.Join(err, release())
}

// newSnapshotPrefix is the prefix of the names of unfinished snapshots, each of which is locked.
const newSnapshotPrefix = ".new-"

// deletedSnapshotPrefix is that of snapshots that are being deleted. An interrupted deletion is
// completed when the next snapshot is created.
const deletedSnapshotPrefix = ".deleted-"

func (h *Host) createSnapshot(ctx context.Context, m *Machine, name string, options CopyOptions) (Snapshot, error) {
	none := Snapshot{}
	fail := func(err error) (Snapshot, error) {
		return none, fmt.Errorf("snapshot %q of %s: %w", name, m.FullName(), err)
	}
	dir, err := m.snapshot(name)
	if err != nil {
		return none, err
	}
	if exists(dir) {
		return fail(ErrSnapshotExists)
	}
	o, err := m.Object()
	if err != nil {
		return fail(err)
	}
	disks, err := h.disks(&o, m.Running())
	if err != nil {
		return fail(err)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fail(err)
	}
	for _, prefix := range []string{newSnapshotPrefix, deletedSnapshotPrefix, stagingName} { // of interrupted ones
		if err := removeAbandoned(parent, prefix); err != nil {
			return fail(err)
		}
	}
	tmp, err := os.MkdirTemp(parent, newSnapshotPrefix)
	if err != nil {
		return fail(err)
	}
	own, err := runner.Lock(tmp)
	if err != nil {
		return fail(err)
	}
	defer own.Close()
	s, err := m.fillSnapshot(ctx, tmp, name, disks, options)
	if err == nil {
		err = errors.Join(os.Remove(filepath.Join(tmp, runner.LockFile)), moveNew(tmp, dir))
	}
	if errors.Is(err, fs.ErrExist) {
		err = ErrSnapshotExists // created meanwhile
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(tmp))
		_ = os.Remove(parent) // if there is no other one
		return fail(err)
	}
	return s, nil
}

func (m *Machine) fillSnapshot(ctx context.Context, dir, name string, disks []heldDisk, options CopyOptions) (Snapshot, error) {
	s := Snapshot{Name: name}
	fileOf := func(d heldDisk) string { return d.name + ".img" }
	still := func() error {
		s.Created = time.Now().UTC().Truncate(time.Second)
		names, err := m.identityNames()
		if err != nil {
			return err
		}
		for _, more := range []string{manifestFile, definitionFile, runner.RecordFile} {
			if exists(filepath.Join(m.Data, more)) {
				names = append(names, more)
			}
		}
		return copyFiles(ctx, m.Data, dir, names)
	}
	how, total, err := m.copyMachine(ctx, dir, disks, fileOf, options, still)
	if err != nil {
		return s, err
	}
	s.Allocated, s.Running, s.Frozen, s.Unfrozen = total, how.Running, how.Frozen, how.Unfrozen
	for _, d := range disks {
		info, err := os.Stat(filepath.Join(dir, fileOf(d)))
		if err != nil {
			return s, err
		}
		s.Disks = append(s.Disks, SnapshotDisk{Name: d.name, File: fileOf(d), Path: d.path, Size: info.Size(), Template: d.template})
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return s, err
	}
	return s, errors.Join(atomicfile.Replace(filepath.Join(dir, snapshotFile), append(data, '\n')), atomicfile.SyncDir(dir))
}

// DeleteSnapshot removes a snapshot with its copies.
func (m *Machine) DeleteSnapshot(name string) (err error) {
	if _, err := m.Snapshot(name); err != nil {
		return err
	}
	lock, err := runner.LockFor(m.Data, "changed")
	if errors.Is(err, runner.ErrLocked) && m.Running() {
		lock, err = nil, nil // a running machine needs none of its snapshots
	}
	if errors.Is(err, runner.ErrLocked) {
		err = m.errBusy()
	}
	if err != nil {
		return fmt.Errorf("delete snapshot %q of %s: %w", name, m.FullName(), err)
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	dir, err := m.snapshot(name)
	if err != nil {
		return err
	}
	gone := filepath.Join(filepath.Dir(dir), deletedSnapshotPrefix+name)
	if err := errors.Join(os.RemoveAll(gone), os.Rename(dir, gone), os.RemoveAll(gone)); err != nil {
		return fmt.Errorf("delete snapshot %q of %s: %w", name, m.FullName(), err)
	}
	_ = os.Remove(filepath.Dir(dir)) // if that was the last one
	return nil
}

// RestoreOptions are the options of restoring a snapshot.
type RestoreOptions struct {
	CopyOptions
	// Keep is the name of a snapshot to be created of the present machine, which is lost otherwise.
	Keep string
}

// RestoreSnapshot restores a machine that does not run to a snapshot, which is kept and can be
// restored again. A disk whose image was elsewhere gets one in the machine's directory: images that
// were given to the machine are not touched. The machine's name, UUID and instance-id are kept. If
// interrupted, the machine is either as before or as in the snapshot.
func (h *Host) RestoreSnapshot(ctx context.Context, m Machine, name string, options RestoreOptions) (err error) {
	s, err := m.Snapshot(name)
	if err != nil {
		return err
	}
	lock, err := m.lockStopped(ctx, "restored")
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if options.Keep != "" {
		if _, err := h.createSnapshot(ctx, &m, options.Keep, options.CopyOptions); err != nil {
			return fmt.Errorf("keep the machine as it is now: %w", err)
		}
	}
	remove, err := h.stageRestore(ctx, &m, s, options.CopyOptions)
	if err == nil {
		err = commit(m.Data, m.Namespace, m.Name, remove)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(filepath.Join(m.Data, stagingName)))
	} else {
		err = settle(m.Directories, m.Namespace, m.Name)
	}
	if err != nil {
		return fmt.Errorf("restore snapshot %q of %s: %w", name, m.FullName(), err)
	}
	return nil
}

func (h *Host) stageRestore(ctx context.Context, m *Machine, s Snapshot, options CopyOptions) (remove []string, err error) {
	dir, err := m.snapshot(s.Name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	o, err := only(spec.Load(manifestFile, text, spec.Options{Default: true, Validate: true}))
	if err != nil {
		return nil, err
	}
	if o, err = namedManifest(&o, m.Namespace, m.Name, false); err != nil {
		return nil, err
	}
	def, err := Directories{Data: dir}.Definition()
	if err != nil {
		return nil, err
	}
	now, err := m.Definition()
	if err != nil {
		return nil, err
	}
	present := h.diskPaths(m)
	staging, err := stage(m.Data)
	if err != nil {
		return nil, err
	}
	def.InstanceID = now.InstanceID
	def.Disks, def.Used = map[string]string{}, map[string]string{}
	carried := map[string]runner.CarriedDisk{}
	files := map[string]string{} // by the names of the disks
	var disks []heldDisk
	var replaced []string
	for _, d := range s.Disks {
		file := freeImage(d.Name, s.Name, func(file string) bool {
			path := filepath.Join(m.Data, file)
			return !exists(path) || present[d.Name] == path
		})
		path := filepath.Join(m.Data, file)
		files[d.Name] = file
		replaced = append(replaced, path)
		def.Used[d.Name] = path
		if !d.Template || file != d.Name+".img" {
			def.Disks[d.Name] = path
		}
		carried[d.Path] = runner.CarriedDisk{Path: path, File: filepath.Join(staging, file), Left: s.Running}
		disks = append(disks, heldDisk{name: d.Name, path: filepath.Join(dir, d.File), size: d.Size})
	}
	if err := h.checkOwn(m, replaced...); err != nil {
		return nil, err
	}
	if err := (&copying{options: options}).copyDisks(ctx, staging, disks, func(d heldDisk) string { return files[d.name] }); err != nil {
		return nil, err
	}
	then, err := (&Machine{Directories: Directories{Data: dir}}).identityNames()
	if err != nil {
		return nil, err
	}
	if err := copyFiles(ctx, dir, staging, then); err != nil {
		return nil, err
	}
	if err := writeParts(dir, staging, o, def, carried, false); err != nil {
		return nil, err
	}
	identity, err := m.identityNames()
	if err != nil {
		return nil, err
	}
	if exists(filepath.Join(m.Data, runner.RecordFile)) && !exists(filepath.Join(staging, runner.RecordFile)) {
		remove = append(remove, runner.RecordFile)
	}
	for _, name := range identity {
		if !slices.Contains(then, name) {
			remove = append(remove, name)
		}
	}
	return remove, nil
}

// freeImage returns the disk's usual file name, unless another file has it.
func freeImage(disk, snapshot string, mayBe func(file string) bool) string {
	file := disk + ".img"
	for i := 1; !mayBe(file); i++ {
		file = fmt.Sprintf("%s-%s-%d.img", disk, snapshot, i)
	}
	return file
}
