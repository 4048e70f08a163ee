package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

// mergeJob is the job that merges the overlay of a disk, by its position in the journal.
func mergeJob(i int) string { return "vmop-merge-" + strconv.Itoa(i) }

// merger has the QEMU of a machine that runs merge the overlays that the machine has,
// whoever has made them. What is to be done next package overlay decides.
type merger struct {
	m      *Machine
	c      *qmp.Client
	events *qmp.Subscription
	// held are the overlays; nil if there are none.
	held *overlay.Held
	// paused says that a copy has paused the guest, which ran.
	paused bool
	// continued says that the guest went on that an earlier copy had left paused.
	continued bool
	// told are the disks whose jobs were told to complete.
	told map[int]bool
}

// merging does something with the disks of a machine that runs, in which overlays may be
// made. There are none before it and, unless the error says so, none afterwards.
func (m *Machine) merging(ctx context.Context, do func(*merger) error) (err error) {
	c, err := qmp.Dial(ctx, m.Socket(qemucmd.SocketToolMonitor), qmp.Options{Handshake: monitorGreeting})
	if errors.Is(err, qmp.ErrNoGreeting) {
		err = fmt.Errorf("another program has QEMU's monitor, which serves one at a time; another copy may be under way: %w", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	g := &merger{m: m, c: c, events: c.Subscribe(64, qmp.JobStatusChangeEvent{}.QMPEvent()), told: map[int]bool{}}
	defer g.events.Close()
	if err := g.settle(ctx); err != nil {
		return fmt.Errorf("complete an earlier copy of its disks, which was interrupted: %w", err)
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), mergeLimit)
		defer cancel()
		merr := g.settle(after)
		switch {
		case c.Err() != nil:
			err = fmt.Errorf("the machine has ended meanwhile: %w", errors.Join(err, merr))
		case merr != nil:
			err = errors.Join(err, fmt.Errorf("merge what the guest has written meanwhile, which the next copy or the next start does: %w", merr))
		}
	}()
	return do(g)
}

// finishCopy merges what a copy has left that was interrupted, of a machine that runs. It
// reports whether the guest goes on, which that copy had left paused.
func (m *Machine) finishCopy(ctx context.Context) (continued bool, err error) {
	if !overlay.Exists(m.Data) {
		return false, nil
	}
	err = m.merging(ctx, func(g *merger) error { continued = g.continued; return nil })
	return continued, err
}

// do asks QEMU something that has no answer.
func (g *merger) do(ctx context.Context, cmd qmp.Command[qmp.None]) error {
	_, err := qmp.Do(ctx, g.c, cmd)
	return err
}

// settle merges the overlays that there are, and has the guest go on.
func (g *merger) settle(ctx context.Context) (err error) {
	theirs := g.held == nil
	if theirs {
		if g.held, err = overlay.Hold(ctx, g.m.Data); g.held == nil || err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, g.held.Close()); g.held = nil }()
	if g.c.Err() != nil {
		return g.c.Err() // the next start merges them
	}
	status, err := qmp.Do(ctx, g.c, qmp.QueryStatus{})
	if err != nil {
		return err
	}
	// Who has paused it is gone, and may have left it frozen.
	left := theirs && g.held.Paused && status.Status == qmp.RunStatePaused
	g.paused = g.paused || left
	if theirs && g.held.Phase == overlay.Attaching { // killed in the moment, perhaps before that
		err = g.fit(ctx)
	}
	if err == nil {
		err = g.merge(ctx)
	}
	if err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyCleanup)
		defer cancel()
		return errors.Join(err, g.retreat(after))
	}
	if !left {
		return nil
	}
	g.continued = true
	_, err = g.m.thaw(ctx, g.c)
	return err
}

// fit has the overlays be no smaller than their images: a guest that has one instead of its
// image would have a smaller disk.
func (g *merger) fit(ctx context.Context) error {
	nodes, err := qmp.Do(ctx, g.c, qmp.QueryNamedBlockNodes{Flat: true})
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	for _, n := range nodes {
		sizes[n.NodeName] = n.Image.VirtualSize
	}
	for i, d := range g.held.Disks {
		has, made := sizes[qemucmd.OverlayNode(i)]
		if !made || has >= sizes[d.Node] {
			continue
		}
		if err := g.do(ctx, qmp.BlockResize{NodeName: qemucmd.OverlayNode(i), Size: sizes[d.Node]}); err != nil {
			return fmt.Errorf("disk %q: have its overlay grow as its image did: %w", d.Name, err)
		}
	}
	return nil
}

// merge merges the overlays, step by step.
func (g *merger) merge(ctx context.Context) error {
	for {
		seen, err := g.look(ctx)
		if err != nil {
			return err
		}
		step := overlay.Next(g.held.Phase, seen.disks, seen.running)
		if g.held.Phase == overlay.Merged && !seen.active() {
			if err := g.goOn(ctx); err != nil {
				return err
			}
		}
		if step.Kind == overlay.Remove {
			return errors.Join(g.held.Remove(), g.goOn(ctx))
		}
		if err := g.take(ctx, step, seen); err != nil {
			switch step.Kind {
			case overlay.Commit, overlay.Complete, overlay.Finalize, overlay.Dismiss, overlay.Close:
				err = fmt.Errorf("disk %q: %w", g.held.Disks[step.Disk].Name, err)
			}
			return err
		}
	}
}

// take takes a step.
func (g *merger) take(ctx context.Context, step overlay.Step, seen sight) error {
	i := step.Disk
	switch step.Kind {
	case overlay.Write:
		return g.held.Write(step.Phase)
	case overlay.Commit:
		delete(g.told, i)
		return g.do(ctx, qmp.BlockCommit{JobID: mergeJob(i), Device: qemucmd.OverlayNode(i)})
	case overlay.Wait:
		return g.wait(ctx)
	case overlay.Pause:
		g.held.Paused = true
		if err := g.held.Write(g.held.Phase); err != nil {
			return err
		}
		return g.pause(ctx)
	case overlay.Complete:
		g.told[i] = true
		return g.do(ctx, qmp.JobComplete{ID: mergeJob(i)})
	case overlay.Finalize:
		return g.do(ctx, qmp.JobFinalize{ID: mergeJob(i)})
	case overlay.Dismiss:
		err := g.do(ctx, qmp.JobDismiss{ID: mergeJob(i)})
		if why := seen.failed[i]; why != "" && err == nil {
			err = fmt.Errorf("QEMU: %s", why)
		}
		return err
	case overlay.Close:
		for _, node := range []string{qemucmd.OverlayNode(i), qemucmd.OverlayFileNode(i)} {
			if !slices.Contains(seen.nodes, node) {
				continue
			}
			if err := g.do(ctx, qmp.BlockdevDel{NodeName: node}); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%+v is nothing that a QEMU does", step)
}

// sight is what a QEMU has of overlays.
type sight struct {
	disks   []overlay.Found
	running bool
	nodes   []string
	// failed says why jobs have failed that have ended, by their disks.
	failed map[int]string
}

// active reports whether the guest writes to an overlay.
func (s *sight) active() bool {
	return slices.ContainsFunc(s.disks, func(d overlay.Found) bool { return d.Active })
}

func (g *merger) look(ctx context.Context) (sight, error) {
	var none sight
	status, err := qmp.Do(ctx, g.c, qmp.QueryStatus{})
	if err != nil {
		return none, err
	}
	blocks, err := qmp.Do(ctx, g.c, qmp.QueryBlock{})
	if err != nil {
		return none, err
	}
	nodes, err := qmp.Do(ctx, g.c, qmp.QueryNamedBlockNodes{Flat: true})
	if err != nil {
		return none, err
	}
	jobs, err := qmp.Do(ctx, g.c, qmp.QueryJobs{})
	if err != nil {
		return none, err
	}
	return see(&g.held.Journal, g.told, status.Running, blocks, nodes, jobs), nil
}

// see is look with what QEMU has said.
func see(j *overlay.Journal, told map[int]bool, running bool, blocks []qmp.BlockInfo, nodes []qmp.BlockDeviceInfo, jobs []qmp.Job) sight {
	s := sight{running: running, failed: map[int]string{}}
	for _, n := range nodes {
		s.nodes = append(s.nodes, n.NodeName)
	}
	writes := func(node string) bool {
		return slices.ContainsFunc(blocks, func(b qmp.BlockInfo) bool { return b.Inserted != nil && b.Inserted.NodeName == node })
	}
	for i, d := range j.Disks {
		f := overlay.Found{Nodes: slices.Contains(s.nodes, qemucmd.OverlayNode(i)) || slices.Contains(s.nodes, qemucmd.OverlayFileNode(i))}
		switch {
		case !slices.Contains(s.nodes, qemucmd.OverlayNode(i)) || writes(d.Node):
		case writes(qemucmd.OverlayNode(i)):
			f.Active = true
		default: // the guest has released the disk
			f.Active = j.Phase == overlay.Attached || j.Phase == overlay.Merging
		}
		for _, job := range jobs {
			if job.ID != mergeJob(i) {
				continue
			}
			f.Job = jobState(job.Status)
			if f.Job == overlay.Ready && told[i] {
				f.Job = overlay.Copying
			}
			if f.Job == overlay.Ended {
				s.failed[i] = job.Error
				if f.Active && job.Error == "" {
					s.failed[i] = "somebody else has ended the merging"
				}
			}
		}
		s.disks = append(s.disks, f)
	}
	return s
}

func jobState(s qmp.JobStatus) overlay.JobState {
	switch s {
	case qmp.JobReady, qmp.JobStandby:
		return overlay.Ready
	case qmp.JobPending:
		return overlay.Pending
	case qmp.JobConcluded:
		return overlay.Ended
	}
	return overlay.Copying
}

// wait waits until a job may have another state.
func (g *merger) wait(ctx context.Context) error {
	look, cancel := context.WithTimeout(ctx, copyLook)
	defer cancel()
	_, err := g.events.Next(look)
	if err != nil && (ctx.Err() != nil || g.c.Err() != nil) {
		return errors.Join(context.Cause(ctx), g.c.Err())
	}
	return nil
}

// pause pauses the guest, which executes, and goOn has it go on if that was done.
func (g *merger) pause(ctx context.Context) error {
	if err := g.do(ctx, qmp.Stop{}); err != nil {
		return err
	}
	g.paused = true
	return nil
}

func (g *merger) goOn(ctx context.Context) error {
	if !g.paused {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyCleanup)
	defer cancel()
	if err := g.do(after, qmp.Cont{}); err != nil {
		return fmt.Errorf("let the guest go on: %w", err)
	}
	g.paused = false
	return nil
}

// retreat has the guest write to its overlays again, after an error: no job holds back
// what it writes when it goes on.
func (g *merger) retreat(ctx context.Context) error {
	if g.c.Err() != nil {
		return nil // nobody is left to go on
	}
	for {
		seen, err := g.look(ctx)
		if err != nil {
			return err
		}
		if seen.active() && g.held.Phase == overlay.Merged {
			if err := g.held.Write(overlay.Merging); err != nil {
				return err // with the guest paused: it must not write to an overlay that does not count
			}
		}
		i := slices.IndexFunc(seen.disks, func(d overlay.Found) bool { return d.Job != overlay.NoJob })
		switch {
		case i < 0:
			return g.goOn(ctx)
		case seen.disks[i].Job == overlay.Ended:
			err = g.do(ctx, qmp.JobDismiss{ID: mergeJob(i)})
		default:
			// One that has ended meanwhile refuses.
			if err = g.do(ctx, qmp.JobCancel{ID: mergeJob(i)}); err == nil || errors.As(err, new(*qmp.Error)) {
				err = g.wait(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
}

const (
	// freezeLimit bounds how long a guest stands still for a copy.
	freezeLimit = time.Minute
	// copyLook is how often jobs are looked at that say nothing.
	copyLook = 500 * time.Millisecond
	// copyCleanup bounds what is undone when something is given up.
	copyCleanup = 30 * time.Second
	// mergeLimit bounds the merging after a copy that was given up. What is not merged
	// then the next command merges, or the next start.
	mergeLimit = 10 * time.Minute
)
