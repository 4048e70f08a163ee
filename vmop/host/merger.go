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

func mergeJob(i int) string { return "vmop-merge-" + strconv.Itoa(i) }

// merger has a running QEMU merge the machine's overlays, including those of other processes.
// Package overlay decides the steps.
type merger struct {
	m      *Machine
	c      *qmp.Client
	events *qmp.Subscription
	held   *overlay.Held
	// paused reports that a copy has paused the running guest.
	paused bool
	// continued reports that a guest left paused by an earlier copy was resumed.
	continued bool
	// told are the disks whose jobs were told to complete.
	told map[int]bool
}

// merging calls do with a merger of a running machine. There are no overlays before do and, unless
// the error says so, none afterwards.
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

// finishCopy merges the overlays of an interrupted copy. It reports whether the guest was resumed,
// which that copy had left paused.
func (m *Machine) finishCopy(ctx context.Context) (continued bool, err error) {
	if !overlay.Exists(m.Data) {
		return false, nil
	}
	err = m.merging(ctx, func(g *merger) error { continued = g.continued; return nil })
	return continued, err
}

func (g *merger) do(ctx context.Context, cmd qmp.Command[qmp.None]) error {
	_, err := qmp.Do(ctx, g.c, cmd)
	return err
}

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
	// The process that paused it has ended, and may have left it frozen.
	left := theirs && g.held.Paused && status.Status == qmp.RunStatePaused
	g.paused = g.paused || left
	if theirs && g.held.Phase == overlay.Attaching { // killed at that moment, perhaps before the switch
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

// fit grows overlays to the size of their images: with a smaller one in place of its image, a guest
// would have a smaller disk.
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

type sight struct {
	disks   []overlay.Found
	running bool
	nodes   []string
	failed  map[int]string
}

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

func (g *merger) wait(ctx context.Context) error {
	look, cancel := context.WithTimeout(ctx, copyLook)
	defer cancel()
	_, err := g.events.Next(look)
	if err != nil && (ctx.Err() != nil || g.c.Err() != nil) {
		return errors.Join(context.Cause(ctx), g.c.Err())
	}
	return nil
}

// pause stops the guest. QEMU does it also after ctx has ended, unless it refuses.
func (g *merger) pause(ctx context.Context) error {
	err := g.do(ctx, qmp.Stop{})
	g.paused = !errors.As(err, new(*qmp.Error))
	return err
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

// retreat switches the guest back to its overlays after an error, so that no job holds back its
// writes when it resumes.
func (g *merger) retreat(ctx context.Context) error {
	if g.c.Err() != nil {
		return nil // QEMU has ended
	}
	for {
		seen, err := g.look(ctx)
		if err != nil {
			return err
		}
		if seen.active() && g.held.Phase == overlay.Merged {
			if err := g.held.Write(overlay.Merging); err != nil {
				return err // the guest stays paused: it must not write to a discarded overlay
			}
		}
		i := slices.IndexFunc(seen.disks, func(d overlay.Found) bool { return d.Job != overlay.NoJob })
		switch {
		case i < 0:
			return g.goOn(ctx)
		case seen.disks[i].Job == overlay.Ended:
			err = g.do(ctx, qmp.JobDismiss{ID: mergeJob(i)})
		default:
			// A job that has ended meanwhile refuses.
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
	// freezeLimit bounds how long a guest's file systems are frozen for a copy.
	freezeLimit = time.Minute
	copyLook    = 500 * time.Millisecond
	copyCleanup = 30 * time.Second
	// mergeLimit bounds the merging after a cancelled copy. The rest is merged by the next command
	// or the next start.
	mergeLimit = 10 * time.Minute
)
