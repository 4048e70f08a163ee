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

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Clone copies a machine: its disks, wherever they are, its UEFI variables and the state of its
// TPM; the clone has a UUID, MAC addresses and an instance-id for cloud-init of its own. What the
// guest has stored on its disks, such as SSH host keys, is copied too. The disks of a running
// machine are copied as for [Host.CreateSnapshot]. The error is [ErrExists] if the new name exists.
// An interrupted clone leaves no machine.
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

// newClonePrefix is the prefix of the names of unfinished clones, each of which is locked.
const newClonePrefix = ".clone-"

func (h *Host) fillClone(ctx context.Context, m *Machine, tmp string, to Directories, named spec.Object, def Definition, disks []heldDisk, options CopyOptions) error {
	own, err := runner.Lock(tmp) // so that it does not count as abandoned
	if err != nil {
		return err
	}
	defer own.Close()
	// Copies that share blocks do not check ctx.
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

func newInstanceID(namespace, name string) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return namespaceOr(namespace) + "." + name + "-" + hex.EncodeToString(b[:])
}

// Rename gives a machine that does not run another name, and with it another directory. Its UUID,
// MAC addresses and cloud-init's instance-id are kept; its host name follows the name if cloud-init
// sets it. The error is [ErrExists] if the new name exists. If interrupted, the machine has one
// name or the other.
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
	lock, err := m.lockStopped(context.Background(), "renamed") // a slow merge is rare, and is to be completed
	if err != nil {
		return fail(err)
	}
	defer lock.Close()
	// Another machine goes by the path of an image.
	files, err := m.Files()
	if err == nil {
		err = h.checkUnshared(&m, files)
	}
	if err != nil {
		return fail(err)
	}
	if err := m.stageRename(to, namespace, name); err != nil {
		return fail(err)
	}
	if err := makePrivate(filepath.Dir(to.Data)); err != nil {
		return fail(err)
	}
	if err := moveNew(m.Data, to.Data); err != nil {
		return fail(err)
	}
	// From here on it has the new name.
	if err := settle(to, namespace, name); err != nil {
		return fail(err)
	}
	_ = os.Remove(filepath.Dir(m.Data)) // the namespace's, if that was the last one
	return h.Machine(namespace, name)
}

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
	if s, err := runner.ReadState(m.StateFile()); err == nil { // it does not exist before the first start
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
