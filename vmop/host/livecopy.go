package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
)

// liveCopy is a copy of the disks of a running machine. The images do not change while they are
// copied: from one moment on the guest writes to overlays, which QEMU merges afterwards (see
// package overlay, and merger).
type liveCopy struct {
	merger
	disks   []heldDisk
	found   []liveDisk
	options CopyOptions
}

// copyRunning copies the disks of a running machine, as they are at one moment, to files in a
// directory. still is called at that moment, while nothing in the machine changes.
func (m *Machine) copyRunning(ctx context.Context, dir string, disks []heldDisk, fileOf func(heldDisk) string, options CopyOptions, still func() error) (how Consistency, err error) {
	switch m.Status {
	case Status(runner.PhaseInitializing), Status(runner.PhaseStarting), Status(runner.PhaseTerminating):
		return how, fmt.Errorf("it is just being started or stopped (%s)", m.Status)
	}
	if _, err := overlay.Tool(); err != nil {
		return how, err
	}
	var files []string
	for _, d := range disks {
		files = append(files, d.path)
	}
	if err := checkRoom(dir, files); err != nil {
		return how, err
	}
	err = m.merging(ctx, func(g *merger) (err error) {
		l := &liveCopy{merger: *g, disks: disks, options: options}
		defer func() { *g = l.merger }()
		nodes, sets, err := blockNodes(ctx, l.c)
		if err != nil {
			return err
		}
		if l.found, err = findDisks(disks, nodes, sets); err != nil {
			return err
		}
		if how, err = l.begin(ctx, still); err != nil {
			return err
		}
		if err := l.copy(ctx, dir, fileOf); err != nil {
			for _, d := range disks { // merging may need their room
				err = errors.Join(err, discard(filepath.Join(dir, fileOf(d))))
			}
			return err
		}
		return nil
	})
	return how, err
}

func (l *liveCopy) begin(ctx context.Context, still func() error) (how Consistency, err error) {
	var disks []overlay.Disk
	var sizes []int64
	for i, d := range l.found {
		if d.readOnly {
			continue
		}
		disks = append(disks, overlay.Disk{
			Name: d.name, Image: overlay.ImageIn(l.m.Data, l.disks[i].path), Format: d.format, Node: d.node,
			Overlay: strconv.Itoa(len(disks)) + ".qcow2",
		})
		sizes = append(sizes, d.size)
	}
	if l.held, err = overlay.Begin(ctx, l.m.Data, disks); err != nil {
		return how, err
	}
	for i, d := range disks {
		if err := l.held.Make(ctx, d, sizes[i]); err != nil {
			return how, err
		}
	}
	status, err := qmp.Do(ctx, l.c, qmp.QueryStatus{})
	if err != nil {
		return how, err
	}
	l.held.Paused = status.Running
	if err := l.held.Write(overlay.Attaching); err != nil {
		return how, err
	}
	for i, d := range disks {
		if err := l.open(ctx, i, l.held.Overlay(d)); err != nil {
			return how, fmt.Errorf("disk %q: %w", d.Name, err)
		}
	}
	if how, err = l.atOneMoment(ctx, status.Running, still); err != nil {
		return how, err
	}
	if err := l.held.Still(); err != nil {
		return how, err
	}
	l.held.Paused = false
	return how, l.held.Write(overlay.Attached)
}

func (l *liveCopy) open(ctx context.Context, i int, path string) error {
	// With discard, empty blocks take no room.
	err := l.do(ctx, qmp.BlockdevAdd{Driver: "file", NodeName: qemucmd.OverlayFileNode(i), Options: map[string]any{"filename": path, "locking": "on", "discard": "unmap"}})
	if err != nil {
		return err
	}
	return l.do(ctx, qmp.BlockdevAdd{Driver: string(qemucmd.DiskFormatQCOW2), NodeName: qemucmd.OverlayNode(i), Options: map[string]any{
		"file": qemucmd.OverlayFileNode(i), "backing": nil, "discard": "unmap",
	}})
}

// copy copies the images. It is cancelled when QEMU ends: the next start then merges what the guest
// has written.
func (l *liveCopy) copy(ctx context.Context, dir string, fileOf func(heldDisk) string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-l.c.Done():
			cancel(errors.New("QEMU has ended"))
		}
	})
	if err := (&copying{options: l.options}).copyDisks(ctx, dir, l.disks, fileOf); err != nil {
		return err
	}
	// A copy by shared blocks has not checked ctx.
	if err := l.c.Err(); err != nil {
		return err
	}
	return l.held.Unchanged()
}

// atOneMoment makes the guest write to the overlays from one moment on, before which it flushes its
// file systems, if its agent can freeze them.
func (l *liveCopy) atOneMoment(ctx context.Context, running bool, still func() error) (how Consistency, err error) {
	how.Running = true
	moment := func(ctx context.Context) error { return l.moment(ctx, running, still) }
	if !running {
		how.Unfrozen = "it was paused"
		return how, moment(ctx)
	}
	agent, why, err := l.m.agent(ctx, l.c)
	if err != nil {
		return how, err
	}
	if agent == nil {
		how.Unfrozen = why
		return how, moment(ctx)
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	err = agent.Frozen(ctx, freezeLimit, func(ctx context.Context, _ int) error {
		how.Frozen = true
		return moment(ctx)
	})
	// An agent without the command has not frozen anything.
	if !how.Frozen && err != nil && (errors.Is(err, qga.ErrCommandNotFound) || !errors.Is(err, qga.ErrStillFrozen)) && ctx.Err() == nil {
		how.Unfrozen = "its agent cannot freeze file systems: " + firstLine(err)
		return how, moment(ctx)
	}
	return how, err
}

// moment switches to the overlays while the guest is paused. QEMU flushes the images.
func (l *liveCopy) moment(ctx context.Context, running bool, still func() error) (err error) {
	if running {
		defer func() { err = errors.Join(err, l.goOn(ctx)) }()
		if err := l.pause(ctx); err != nil {
			return err
		}
	}
	var actions []qmp.TransactionAction
	for i, d := range l.held.Disks {
		actions = append(actions, qmp.BlockdevSnapshot(d.Node, qemucmd.OverlayNode(i)))
	}
	if len(actions) > 0 {
		// An image may have grown since its overlay was created. Once it has one, nothing can grow
		// it any more; growth at the last moment must not be reverted for the guest.
		if err := l.fit(ctx); err != nil {
			return err
		}
		if err := l.do(ctx, qmp.Transaction{Actions: actions}); err != nil {
			return err
		}
		if err := l.fit(ctx); err != nil {
			return err
		}
	}
	return still()
}
