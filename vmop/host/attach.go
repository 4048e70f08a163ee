package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

const (
	// releaseTimeout is how long a guest has to release a disk.
	releaseTimeout = 15 * time.Second
	// pluggedSets is added to a port's number for the set of descriptors with the file
	// of the disk there: lower ones are those of the start.
	pluggedSets = 1000
)

// errOccupied is what QEMU says of a root port that has a device.
const errOccupied = "in use by"

// errLocked is what QEMU says of an image that another QEMU has.
const errLocked = `Failed to get "write" lock`

// noPlaceError says why a machine that runs cannot be given a disk that its next start
// gives it.
type noPlaceError struct{ why string }

func (e *noPlaceError) Error() string { return e.why }

// ErrNotReleased says that a guest has not let a disk go.
var ErrNotReleased = errors.New("the guest has not released the disk")

// AttachDisk gives a machine another disk: an image, raw or qcow2, that is there. Its
// manifest has it from then on, as the claim of the name that is given here, and the
// path is remembered like that of --disk. A machine that runs gets it at once, at one
// of the places that it has for what is plugged; machines that were made before there
// were such places get it with their next start only, and the error says so. It returns
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

// mayAttach refuses what cannot be another disk of a machine.
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

// plug plugs an image into a machine that runs, whose guest sees it as another disk.
func (m *Machine) plug(ctx context.Context, disk, path, serial string) (err error) {
	format, _, err := m.look(path)
	if err != nil {
		return err
	}
	if err := runner.NoteImage(m.Data, path, disk, format); err != nil {
		return err
	}
	return m.monitor(ctx, func(c *qmp.Client) error {
		for port := range qemucmd.HotPlugPorts {
			err := plugAt(ctx, c, port, disk, path, format, serial)
			if refused := (*qmp.Error)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Error(), errOccupied) {
				return err
			}
		}
		return &noPlaceError{fmt.Sprintf("all of its %d places for what is plugged are taken: detach another disk, or attach it to the machine when it is stopped", qemucmd.HotPlugPorts)}
	})
}

// plugAt plugs an image at a root port; what was done is undone if that fails.
func plugAt(ctx context.Context, c *qmp.Client, port int, disk, path string, format qemucmd.DiskFormat, serial string) (err error) {
	defer func() {
		if err != nil {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyCleanup)
			defer cancel()
			_ = unplugged(after, c, port) // the error is told already
		}
	}()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	set := pluggedSets + port
	nodes, err := qmp.Do(ctx, c, qmp.QueryNamedBlockNodes{Flat: true})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(nodes, func(n qmp.BlockDeviceInfo) bool { return n.NodeName == qemucmd.PluggedNode(port) }) {
		return occupied(port)
	}
	if _, err := qmp.Do(ctx, c, qmp.AddFD{FDSetID: &set, Opaque: path}, qmp.WithFile(f)); err != nil {
		return err
	}
	file, node := qemucmd.PluggedFileNode(port), qemucmd.PluggedNode(port)
	if _, err := qmp.Do(ctx, c, qmp.BlockdevAdd{Driver: "file", NodeName: file, Options: map[string]any{
		"filename": qemucmd.FDSetPrefix + strconv.Itoa(set), "locking": "on", "discard": "unmap",
	}}); err != nil {
		if refused := (*qmp.Error)(nil); errors.As(err, &refused) && strings.Contains(refused.Error(), errLocked) {
			return fmt.Errorf("%s: %w", path, errInUse) // since it was looked at
		}
		return err
	}
	content := map[string]any{"file": file, "discard": "unmap"}
	if format == qemucmd.DiskFormatQCOW2 {
		content["backing"] = nil // it was looked at, and has none
	}
	if _, err := qmp.Do(ctx, c, qmp.BlockdevAdd{Driver: string(format), NodeName: node, Options: content}); err != nil {
		return err
	}
	_, err = qmp.Do(ctx, c, qmp.DeviceAdd{
		Driver: "virtio-blk-pci", ID: qemucmd.PluggedID(disk), Bus: qemucmd.PortID(port),
		Properties: map[string]any{"drive": node, "serial": serial},
	})
	if refused := (*qmp.Error)(nil); errors.As(err, &refused) && strings.Contains(refused.Error(), "Bus '"+qemucmd.PortID(port)+"' not found") {
		return &noPlaceError{"it was made before machines had places for disks that are plugged: stop it, and attach the disk then"}
	}
	return err
}

// occupied is QEMU's refusal of a port whose former disk is still being released.
func occupied(port int) error {
	return &qmp.Error{Class: "GenericError", Desc: qemucmd.PortID(port) + " is " + errOccupied + " a disk"}
}

// unplugged closes what QEMU has of a disk that is gone. What it has not is no error.
func unplugged(ctx context.Context, c *qmp.Client, port int) error {
	var errs []error
	for _, node := range []string{qemucmd.PluggedNode(port), qemucmd.PluggedFileNode(port)} {
		if _, err := qmp.Do(ctx, c, qmp.BlockdevDel{NodeName: node}); err != nil && !strings.Contains(err.Error(), "Failed to find") {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		_, _ = qmp.Do(ctx, c, qmp.RemoveFD{FDSetID: pluggedSets + port}) // it may have gone with its last user
	}
	return errors.Join(errs...)
}

// DetachDisk takes a disk from a machine, and from its manifest; the image stays, and
// its path is returned. A machine that runs can only lose what was attached while it
// ran. Its guest is asked, and has to agree: where it does not, the error is
// [ErrNotReleased], and nothing is changed.
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

// unplug has the guest of a machine that runs release a disk.
func (m *Machine) unplug(ctx context.Context, disk heldDisk) error {
	return m.monitor(ctx, func(c *qmp.Client) error {
		found, err := findIn(ctx, c, []heldDisk{disk})
		switch {
		case errors.Is(err, errStartedWithout):
			return nil // it has gone, or waits for the next start
		case err != nil:
			return err
		}
		port := portOf(found[0].node)
		if port < 0 {
			return errors.New("it was there when the machine was started, and only what was attached since can be taken out while it runs: stop it first")
		}
		if err := releaseDevice(ctx, c, qemucmd.PluggedID(disk.name)); err != nil {
			return err
		}
		return unplugged(ctx, c, port)
	})
}

// ports are the nodes of disks at the root ports, in their order.
func ports(yield func(string) bool) {
	for port := range qemucmd.HotPlugPorts {
		if !yield(qemucmd.PluggedNode(port)) {
			return
		}
	}
}

// portOf is the root port that a disk is at by its node; -1 if it is at none.
func portOf(node string) int { return slices.Index(slices.Collect(ports), node) }

// releaseDevice asks a guest to release a device, and waits until it has.
func releaseDevice(ctx context.Context, c *qmp.Client, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, releaseTimeout, fmt.Errorf("%w in %v: it may be in use, or the guest does not execute; it may still do so", ErrNotReleased, releaseTimeout))
	defer cancel()
	events := c.Subscribe(64, qmp.DeviceDeletedEvent{}.QMPEvent(), qmp.DeviceUnplugGuestErrorEvent{}.QMPEvent())
	defer events.Close()
	_, err := qmp.Do(ctx, c, qmp.DeviceDel{ID: id})
	switch {
	case errors.Is(err, qmp.ErrDeviceNotFound):
		return nil // released since it was asked the last time
	case err != nil && strings.Contains(err.Error(), "already in the process of unplug"): // asked before
	case err != nil:
		return err
	}
	for {
		e, err := events.Next(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		if gone, err := qmp.DecodeEvent[qmp.DeviceDeletedEvent](e); err == nil && gone.Device == id {
			return nil
		}
		if refused, err := qmp.DecodeEvent[qmp.DeviceUnplugGuestErrorEvent](e); err == nil && refused.Device == id {
			return fmt.Errorf("%w: it has refused", ErrNotReleased)
		}
	}
}

// changedDisks is the manifest of a machine with other disks, otherwise as it was
// written: change changes the machine, and edit the list in the text.
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
		// A manifest that is written in an unusual way loses its comments.
		if text, err = spec.Marshal(want); err != nil {
			return spec.Object{}, err
		}
	}
	return only(spec.Load(file, text, spec.Options{Default: true, Validate: true}))
}

// mapping is a mapping with one key.
func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: key}, value}}
}
