package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
)

// noPlaceError is why a disk can only be added by the next start.
type noPlaceError struct{ why string }

func (e *noPlaceError) Error() string { return e.why }

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

func plugAt(ctx context.Context, c *qmp.Client, port int, disk, path string, format qemucmd.DiskFormat, serial string) (err error) {
	defer func() {
		if err != nil {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyCleanup)
			defer cancel()
			_ = unplugged(after, c, port) // the first error is returned
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
			return fmt.Errorf("%s: %w", path, errInUse) // opened since it was checked
		}
		return err
	}
	content := map[string]any{"file": file, "discard": "unmap"}
	if format == qemucmd.DiskFormatQCOW2 {
		content["backing"] = nil // the image was inspected, and has none
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

// occupied is QEMU's refusal of a port whose previous disk is still being released.
func occupied(port int) error {
	return &qmp.Error{Class: "GenericError", Desc: qemucmd.PortID(port) + " is " + errOccupied + " a disk"}
}

// unplugged closes QEMU's block nodes of an unplugged disk. Missing ones are no error.
func unplugged(ctx context.Context, c *qmp.Client, port int) error {
	var errs []error
	for _, node := range []string{qemucmd.PluggedNode(port), qemucmd.PluggedFileNode(port)} {
		if _, err := qmp.Do(ctx, c, qmp.BlockdevDel{NodeName: node}); err != nil && !strings.Contains(err.Error(), "Failed to find") {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		_, _ = qmp.Do(ctx, c, qmp.RemoveFD{FDSetID: pluggedSets + port}) // it may have been closed with its last user
	}
	return errors.Join(errs...)
}

func (m *Machine) unplug(ctx context.Context, disk heldDisk) error {
	return m.monitor(ctx, func(c *qmp.Client) error {
		found, err := findIn(ctx, c, []heldDisk{disk})
		switch {
		case errors.Is(err, errStartedWithout):
			return nil // it was released, or waits for the next start
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

func portOf(node string) int { return slices.Index(slices.Collect(ports), node) }

func releaseDevice(ctx context.Context, c *qmp.Client, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, releaseTimeout, fmt.Errorf("%w in %v: it may be in use, or the guest does not execute; it may still do so", ErrNotReleased, releaseTimeout))
	defer cancel()
	events := c.Subscribe(64, qmp.DeviceDeletedEvent{}.QMPEvent(), qmp.DeviceUnplugGuestErrorEvent{}.QMPEvent())
	defer events.Close()
	_, err := qmp.Do(ctx, c, qmp.DeviceDel{ID: id})
	switch {
	case errors.Is(err, qmp.ErrDeviceNotFound):
		return nil // released since an earlier request
	case err != nil && strings.Contains(err.Error(), "already in the process of unplug"): // requested before
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

// errOccupied and errLocked are parts of QEMU's errors.
const errOccupied = "in use by"

const errLocked = `Failed to get "write" lock`

const (
	releaseTimeout = 15 * time.Second
	// pluggedSets is the base of the descriptor set numbers of plugged disks: lower ones are those
	// of the start.
	pluggedSets = 1000
)

// ErrNotReleased is the error when a guest has not released a disk.
var ErrNotReleased = errors.New("the guest has not released the disk")
