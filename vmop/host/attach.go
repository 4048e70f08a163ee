package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// AttachDisk gives a machine another disk: an existing image, raw or qcow2. It is added to the
// manifest as the claim of the given name, and the path is remembered like that of --disk. A
// running machine gets it at once, at one of its places for plugged disks; a machine that was
// created before these existed gets it only with its next start, and the error says so. It returns
// the name of the disk.
func (h *Host) AttachDisk(ctx context.Context, m Machine, name, path string) (disk string, err error) {
	disk, err = h.attachDisk(ctx, m, name, path)
	if err != nil {
		return disk, fmt.Errorf("attach disk %q to %s: %w", name, m.FullName(), err)
	}
	return disk, nil
}

func (h *Host) attachDisk(ctx context.Context, m Machine, name, path string) (string, error) {
	release, err := m.hold(ctx, "changed")
	if err != nil {
		return "", err
	}
	defer release()
	o, err := m.Object()
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if err := h.mayAttach(&m, &o, name, path); err != nil {
		return "", err
	}
	o, err = changedDisks(&o, func(vm *spec.VirtualMachine) {
		claim := &spec.VolumeClaimReference{ClaimName: name}
		vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: claim})
	}, func(list *yaml.Node) {
		list.Content = append(list.Content, mapping("persistentVolumeClaim", mapping("claimName", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name})))
		list.Style = 0
	})
	if err != nil {
		return "", err
	}
	given := Given{Disks: map[string]string{name: path}}
	c, _, err := h.configuration(&o, given)
	if err != nil {
		return "", err
	}
	drives := c.Runner.VM.Drives
	last := len(drives) - 1
	if m.Running() {
		if err := m.plug(ctx, drives[last].Name, path, runnerconfig.DiskSerials(drives)[last]); err != nil {
			return "", err
		}
		_, err = h.Apply(ctx, m, &o, given)
	} else {
		err = m.keep(&o, given)
	}
	return drives[last].Name, err
}

func (h *Host) mayAttach(m *Machine, o *spec.Object, name, path string) error {
	if other := diskName(o.VirtualMachine, name); other != "" {
		return fmt.Errorf("the machine has the disk %s already", other)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file, and only images are attached: block devices are given at a start, with --disk", path)
	}
	for disk, used := range h.diskPaths(m) {
		if other, err := os.Stat(used); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s is the machine's disk %s", path, disk)
		}
	}
	if err := checkUpload(path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return checkUnused(path)
}

// DetachDisk removes a disk from a machine, and from its manifest; the image is kept, and its path
// is returned. A running machine can only lose disks that were attached while it ran. The guest has
// to agree: if it does not, the error is [ErrNotReleased], and nothing is changed.
func (h *Host) DetachDisk(ctx context.Context, m Machine, name string) (path string, err error) {
	path, err = h.detachDisk(ctx, m, name)
	if err != nil {
		return path, fmt.Errorf("detach disk %q from %s: %w", name, m.FullName(), err)
	}
	return path, nil
}

func (h *Host) detachDisk(ctx context.Context, m Machine, name string) (string, error) {
	release, err := m.hold(ctx, "changed")
	if err != nil {
		return "", err
	}
	defer release()
	o, err := m.Object()
	if err != nil {
		return "", err
	}
	disk, _, err := h.imageOf(&o, name)
	if err != nil && (disk.name == "" || disk.path == "") {
		return "", err
	}
	disks := machineconfig.Disks(o.VirtualMachine)
	at := disks[slices.IndexFunc(disks, func(d machineconfig.Disk) bool { return d.Name == disk.name })]
	if at.Ref != nil {
		return "", fmt.Errorf("%s is one of spec.blockDeviceRefs, and was not attached: remove it there", name)
	}
	i := at.Index
	o, err = changedDisks(&o, func(vm *spec.VirtualMachine) {
		vm.Spec.VM.Disks = slices.Delete(vm.Spec.VM.Disks, i, i+1)
	}, func(list *yaml.Node) {
		if i < len(list.Content) {
			list.Content = slices.Delete(list.Content, i, i+1)
		}
	})
	if err != nil {
		return "", err
	}
	if m.Running() {
		if err := m.unplug(ctx, disk); err != nil {
			return "", err
		}
	}
	// It may be given to another machine, or attached again under another name.
	def, err := m.Definition()
	if err != nil {
		return "", err
	}
	delete(def.Disks, disk.name)
	delete(def.Used, disk.name)
	for given := range def.Disks {
		if given == name {
			delete(def.Disks, given)
		}
	}
	if err := def.write(m.Directories); err != nil {
		return "", err
	}
	if m.Running() {
		_, err = h.Apply(ctx, m, &o, Given{})
	} else {
		err = m.keep(&o, Given{})
	}
	return disk.path, err
}

// changedDisks returns the manifest otherwise as written: change changes the machine, and edit the
// list in the text.
func changedDisks(o *spec.Object, change func(*spec.VirtualMachine), edit func(list *yaml.Node)) (spec.Object, error) {
	file := FullName(o.Namespace, o.Name)
	written, err := only(spec.Load(file, o.Raw, spec.Options{}))
	if err != nil {
		return spec.Object{}, err
	}
	want := written.VirtualMachine.DeepCopy()
	change(want)
	var doc yaml.Node
	err = yaml.Unmarshal(o.Raw, &doc)
	if err == nil && len(doc.Content) == 1 {
		if list := child(child(child(doc.Content[0], "spec"), "vm"), "disks"); list != nil && list.Kind == yaml.SequenceNode {
			edit(list)
		}
	}
	text, err := encodeManifest(&doc)
	if err != nil || !says(text, want) {
		// A manifest in an unusual form loses its comments.
		if text, err = spec.Marshal(want); err != nil {
			return spec.Object{}, err
		}
	}
	return only(spec.Load(file, text, spec.Options{Default: true, Validate: true}))
}

func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: key}, value}}
}
