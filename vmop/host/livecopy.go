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

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
)

const (
	// copyCalm is how long the disks of a machine may take, once all of them were
	// copied, until a moment comes in which the guest has written nothing that is not
	// copied. Then it is paused until that is so.
	copyCalm = 15 * time.Second
	// freezeLimit bounds how long a guest stands still for a copy.
	freezeLimit = time.Minute
	// copyLook is how often the progress of copies is looked at.
	copyLook = 500 * time.Millisecond
	// copyCleanup bounds what is undone when a copy is given up.
	copyCleanup = 30 * time.Second
)

// copyPrefix begins the names of the jobs and block nodes of copies in QEMU. The
// monitor serves one client at a time: those that are there are of one that was
// killed.
const copyPrefix = "vmop-copy-"

// consistency says how the disks of a copy fit together.
type consistency struct {
	// running says that the machine ran meanwhile.
	running bool
	// frozen says that the guest agent had frozen the file systems.
	frozen bool
	// unfrozen is why not, for people.
	unfrozen string
}

// liveDisk is a disk that a QEMU copies.
type liveDisk struct {
	name string
	// node is that of the disk, format and size (in bytes) are what is in it.
	node, format string
	size         int64
	// to is the copy's file, job that of the copy.
	to, job string
}

func (d liveDisk) copyNode() string { return d.job + "-node" }
func (d liveDisk) fileNode() string { return d.job + "-file" }

// liveCopy is a copy of the disks of a machine that runs. QEMU copies each of them to
// a file of the same format and goes on with what the guest writes (a mirror); when
// all have everything, the guest is paused for the moment that it takes to end the
// copies. Its own disks are its disks all the time: nothing has to be merged later,
// a copy that fails fails alone, and what is left of one that was interrupted is
// garbage.
type liveCopy struct {
	m        *Machine
	c        *qmp.Client
	events   *qmp.Subscription
	disks    []liveDisk
	progress func(done, total int64)
}

// copyRunning copies the disks of a machine that runs, as they are at one moment, to
// files in a directory. still is called at that moment, while nothing in the machine
// changes.
func (m *Machine) copyRunning(ctx context.Context, dir string, disks []heldDisk, fileOf func(heldDisk) string, options CopyOptions, still func() error) (how consistency, err error) {
	switch m.Status {
	case Status(runner.PhaseInitializing), Status(runner.PhaseStarting), Status(runner.PhaseTerminating):
		return how, fmt.Errorf("it is just being started or stopped (%s)", m.Status)
	}
	var files []string
	for _, d := range disks {
		files = append(files, d.path)
	}
	if err := checkRoom(dir, files); err != nil {
		return how, err
	}
	c, err := qmp.Dial(ctx, m.Socket(qemucmd.SocketToolMonitor), qmp.Options{Handshake: monitorGreeting})
	if errors.Is(err, qmp.ErrNoGreeting) {
		err = fmt.Errorf("another program has QEMU's monitor, which serves one at a time; another copy may be under way: %w", err)
	}
	if err != nil {
		return how, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	l := &liveCopy{m: m, c: c, events: c.Subscribe(64, qmp.JobStatusChangeEvent{}.QMPEvent()), progress: options.Progress}
	defer l.events.Close()
	if err := l.sweep(ctx); err != nil {
		return how, err
	}
	found, err := l.find(ctx, disks)
	if err != nil {
		return how, err
	}
	for i, d := range disks {
		found[i].to = filepath.Join(dir, fileOf(d))
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyCleanup)
		defer cancel()
		if serr := l.sweep(after); serr != nil && c.Err() == nil {
			err = errors.Join(err, fmt.Errorf("end the copies in QEMU: %w", serr))
		}
		if err == nil {
			err = l.sync()
		}
		if err != nil && c.Err() != nil {
			err = fmt.Errorf("the machine has ended meanwhile: %w", err)
		}
	}()
	for _, d := range found {
		if err := l.start(ctx, d); err != nil {
			return how, fmt.Errorf("disk %q: %w", d.name, err)
		}
		l.disks = append(l.disks, d)
	}
	if err := l.awaitCopied(ctx); err != nil {
		return how, err
	}
	return l.end(ctx, still)
}

// do asks QEMU something that has no answer.
func (l *liveCopy) do(ctx context.Context, cmd qmp.Command[qmp.None]) error {
	_, err := qmp.Do(ctx, l.c, cmd)
	return err
}

// find finds a machine's disks in its QEMU, in their order.
func (l *liveCopy) find(ctx context.Context, disks []heldDisk) ([]liveDisk, error) {
	nodes, err := qmp.Do(ctx, l.c, qmp.QueryNamedBlockNodes{Flat: true})
	if err != nil {
		return nil, err
	}
	sets, err := qmp.Do(ctx, l.c, qmp.QueryFDSets{})
	if err != nil {
		return nil, err
	}
	return findDisks(disks, nodes, sets)
}

// errStartedWithout says that a QEMU has no such disk.
var errStartedWithout = errors.New("the machine was started without")

// findDisks is find with what QEMU said. The error is [errStartedWithout] if it has
// not one of them.
func findDisks(disks []heldDisk, nodes []qmp.BlockDeviceInfo, sets []qmp.FDSet) ([]liveDisk, error) {
	opened := map[string]string{}
	for _, s := range sets {
		for _, f := range s.FDs {
			opened[qemucmd.FDSetPrefix+strconv.Itoa(s.ID)] = f.Opaque
		}
	}
	byPath := map[string]qmp.BlockDeviceInfo{}
	content := slices.Collect(ports)
	for i := range nodes {
		content = append(content, qemucmd.DiskNode(i))
	}
	for _, n := range nodes {
		if !slices.Contains(content, n.NodeName) {
			continue
		}
		path := n.File
		if known := opened[path]; known != "" {
			path = known
		}
		byPath[path] = n
	}
	var out []liveDisk
	for i, d := range disks {
		n, ok := byPath[d.path]
		switch {
		case !ok:
			return nil, fmt.Errorf("disk %q: %w %s: restart it first", d.name, errStartedWithout, d.path)
		case n.Driver != string(qemucmd.DiskFormatRaw) && n.Driver != string(qemucmd.DiskFormatQCOW2):
			return nil, fmt.Errorf("disk %q: %s is used as %q, and only with raw and qcow2 images something is done while a machine runs: stop it first", d.name, d.path, n.Driver)
		}
		out = append(out, liveDisk{name: d.name, node: n.NodeName, format: n.Driver, size: n.Image.VirtualSize, job: copyPrefix + strconv.Itoa(i)})
	}
	return out, nil
}

// start starts the copy of a disk.
func (l *liveCopy) start(ctx context.Context, d liveDisk) error {
	f, err := os.OpenFile(d.to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if d.format == string(qemucmd.DiskFormatRaw) {
		err = f.Truncate(d.size)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	// With discard, what is empty takes no room.
	err = l.do(ctx, qmp.BlockdevAdd{Driver: "file", NodeName: d.fileNode(), Options: map[string]any{"filename": d.to, "locking": "on", "discard": "unmap"}})
	if err != nil {
		return err
	}
	options := map[string]any{"file": d.fileNode(), "discard": "unmap"}
	if d.format == string(qemucmd.DiskFormatQCOW2) {
		options["backing"] = nil
		if err := l.format(ctx, d); err != nil {
			return err
		}
	}
	if err := l.do(ctx, qmp.BlockdevAdd{Driver: d.format, NodeName: d.copyNode(), Options: options}); err != nil {
		return err
	}
	return l.do(ctx, qmp.BlockdevMirror{JobID: d.job, Device: d.node, Target: d.copyNode(), Sync: "full"})
}

// format makes an empty qcow2 image of a disk's size.
func (l *liveCopy) format(ctx context.Context, d liveDisk) error {
	err := l.do(ctx, qmp.BlockdevCreate{JobID: d.job, Options: map[string]any{"driver": d.format, "file": d.fileNode(), "size": d.size}})
	if err != nil {
		return err
	}
	if err := l.await(ctx, []string{d.job}, concluded); err != nil {
		return err
	}
	return l.do(ctx, qmp.JobDismiss{ID: d.job})
}

func (l *liveCopy) jobs() []string {
	var out []string
	for _, d := range l.disks {
		out = append(out, d.job)
	}
	return out
}

// awaitCopied waits until the copies have everything, or have had it once and the
// guest writes too much for a moment without anything to copy.
func (l *liveCopy) awaitCopied(ctx context.Context) error {
	all := map[string]int64{} // what a disk had at the beginning
	var once time.Time
	return l.await(ctx, l.jobs(), func(jobs []qmp.Job) (bool, error) {
		if done, err := ready(jobs); done || err != nil {
			return done, err
		}
		if !copiedOnce(jobs, all) {
			return false, nil
		}
		if once.IsZero() {
			once = time.Now()
		}
		return time.Since(once) > copyCalm, nil
	})
}

// copiedOnce reports whether each job has copied as much as it had to at first, which
// all remembers. A job that has not started has nothing to copy yet.
func copiedOnce(jobs []qmp.Job, all map[string]int64) bool {
	once := true
	for _, j := range jobs {
		if all[j.ID] == 0 {
			all[j.ID] = j.Total
		}
		once = once && (j.Status == qmp.JobReady || all[j.ID] > 0 && j.Progress >= all[j.ID])
	}
	return once
}

// ready reports whether the copies have everything.
func ready(jobs []qmp.Job) (bool, error) {
	all := true
	for _, j := range jobs {
		if j.Status == qmp.JobConcluded {
			return false, failure(j)
		}
		all = all && j.Status == qmp.JobReady
	}
	return all, nil
}

// concluded reports whether the jobs have ended; one that failed is an error.
func concluded(jobs []qmp.Job) (bool, error) {
	all := true
	for _, j := range jobs {
		if j.Status == qmp.JobConcluded && j.Error != "" {
			return false, failure(j)
		}
		all = all && j.Status == qmp.JobConcluded
	}
	return all, nil
}

func failure(j qmp.Job) error {
	if j.Error == "" {
		return errors.New("QEMU has ended the copy")
	}
	return fmt.Errorf("QEMU: %s", j.Error)
}

// await waits for jobs that all must be there.
func (l *liveCopy) await(ctx context.Context, ids []string, done func([]qmp.Job) (bool, error)) error {
	for {
		all, err := qmp.Do(ctx, l.c, qmp.QueryJobs{})
		if err != nil {
			return err
		}
		var ours []qmp.Job
		var copied, total int64
		for _, j := range all {
			if slices.Contains(ids, j.ID) {
				ours = append(ours, j)
				copied, total = copied+j.Progress, total+j.Total
			}
		}
		if len(ours) < len(ids) {
			return errors.New("somebody else has ended the copies in QEMU")
		}
		if l.progress != nil && total > 0 {
			l.progress(copied, total)
		}
		if ok, err := done(ours); ok || err != nil {
			return err
		}
		look, cancel := context.WithTimeout(ctx, copyLook)
		_, err = l.events.Next(look)
		cancel()
		if err != nil && (ctx.Err() != nil || l.c.Err() != nil) {
			return errors.Join(context.Cause(ctx), l.c.Err())
		}
	}
}

// end ends the copies at one moment, in which the guest has written what it had in its
// memory, if its agent can have it do so.
func (l *liveCopy) end(ctx context.Context, still func() error) (how consistency, err error) {
	how.running = true
	status, err := qmp.Do(ctx, l.c, qmp.QueryStatus{})
	if err != nil {
		return how, err
	}
	moment := func(ctx context.Context) error { return l.moment(ctx, status.Running, still) }
	if !status.Running {
		how.unfrozen = "it was paused"
		return how, moment(ctx)
	}
	agent, why, err := l.m.agent(ctx, l.c)
	if err != nil {
		return how, err
	}
	if agent == nil {
		how.unfrozen = why
		return how, moment(ctx)
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	err = agent.Frozen(ctx, freezeLimit, func(ctx context.Context, _ int) error {
		how.frozen = true
		return moment(ctx)
	})
	// An agent that does not know how to freeze has not.
	if !how.frozen && err != nil && (errors.Is(err, qga.ErrCommandNotFound) || !errors.Is(err, qga.ErrStillFrozen)) && ctx.Err() == nil {
		how.unfrozen = "its agent cannot freeze file systems: " + firstLine(err)
		return how, moment(ctx)
	}
	return how, err
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// moment ends the copies while the guest is paused.
func (l *liveCopy) moment(ctx context.Context, running bool, still func() error) (err error) {
	if running {
		defer func() {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyCleanup)
			defer cancel()
			if cerr := l.do(after, qmp.Cont{}); cerr != nil {
				err = errors.Join(err, fmt.Errorf("let the guest go on: %w", cerr))
			}
		}()
		if err := l.do(ctx, qmp.Stop{}); err != nil {
			return err
		}
	}
	if err := l.await(ctx, l.jobs(), ready); err != nil {
		return err
	}
	for _, job := range l.jobs() {
		if err := l.do(ctx, qmp.BlockJobCancel{Device: job}); err != nil {
			return err
		}
	}
	if err := l.await(ctx, l.jobs(), concluded); err != nil {
		return err
	}
	return still()
}

// sweep removes from QEMU what copies have there.
func (l *liveCopy) sweep(ctx context.Context) error {
	jobs, err := qmp.Do(ctx, l.c, qmp.QueryJobs{})
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if !strings.HasPrefix(j.ID, copyPrefix) {
			continue
		}
		if j.Status != qmp.JobConcluded {
			// One that has ended meanwhile refuses.
			if err := l.do(ctx, qmp.BlockJobCancel{Device: j.ID, Force: true}); err != nil && !errors.As(err, new(*qmp.Error)) {
				return err
			}
			ended := func(jobs []qmp.Job) (bool, error) { return jobs[0].Status == qmp.JobConcluded, nil }
			if err := l.await(ctx, []string{j.ID}, ended); err != nil {
				return err
			}
		}
		if err := l.do(ctx, qmp.JobDismiss{ID: j.ID}); err != nil {
			return err
		}
	}
	nodes, err := qmp.Do(ctx, l.c, qmp.QueryNamedBlockNodes{Flat: true})
	if err != nil {
		return err
	}
	var names []string
	for _, n := range nodes {
		if strings.HasPrefix(n.NodeName, copyPrefix) {
			names = append(names, n.NodeName)
		}
	}
	// The content's nodes are above those of the files.
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(b[strings.LastIndex(b, "-"):], a[strings.LastIndex(a, "-"):])
	})
	for _, name := range names {
		if err := l.do(ctx, qmp.BlockdevDel{NodeName: name}); err != nil {
			return err
		}
	}
	return nil
}

// sync waits until the copies are on the storage.
func (l *liveCopy) sync() error {
	for _, d := range l.disks {
		f, err := os.Open(d.to)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
