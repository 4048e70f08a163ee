package overlay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const (
	modelDisks  = 2
	modelBlocks = 3
)

// content are the versions of a disk's blocks, 0 for none.
type content [modelBlocks]int

// modelFile is a file with what a power cut may leave of each of its blocks: what the
// storage has for certain, and what was written since.
type modelFile struct {
	now    content
	maybe  [modelBlocks][]int
	writes int // counts them, as the time of a file does
	size   int
}

func newFile(c content) *modelFile {
	f := &modelFile{now: c}
	f.sync()
	return f
}

func (f *modelFile) write(block, version int) {
	f.now[block] = version
	f.maybe[block] = append(f.maybe[block], version)
	f.writes++
}

func (f *modelFile) sync() {
	for i, v := range f.now {
		f.maybe[i] = []int{v}
	}
}

func (f *modelFile) cut(w *world) {
	for i := range f.now {
		f.now[i] = f.maybe[i][w.draw(len(f.maybe[i]))]
	}
	f.sync()
}

// modelQEMU is a QEMU with its guest.
type modelQEMU struct {
	running bool
	disks   [modelDisks]Found
	// completing are jobs that were told to complete, dirty what they have to copy.
	completing [modelDisks]bool
	dirty      [modelDisks]map[int]bool
}

// modelJournal is a journal; times are those of the images when they stood still.
type modelJournal struct {
	phase  Phase
	times  [modelDisks]int
	paused bool
}

// world is a machine with a command that copies its disks.
type world struct {
	// draw draws a number from 0 on, below a limit.
	draw     func(below int) int
	fatalf   func(format string, args ...any)
	version  int
	base     [modelDisks]*modelFile
	overlays [modelDisks]*modelFile
	journal  *modelJournal
	qemu     *modelQEMU
	// want is what the guest has written, with what it has flushed.
	want [modelDisks]*modelFile

	command *modelCommand
	// recovered are the disks that a start has merged; nil if none is under way.
	recovered []bool
	snapshots int
	// grown counts the resizes of disks, and narrow those that were at the moment of a copy.
	grown, narrow int
	// misfits has no overlay grow with its image.
	misfits bool
	next    func(Phase, []Found, bool) Step
}

// modelCommand copies the disks.
type modelCommand struct {
	step   int
	qemu   *modelQEMU
	paused bool
	// moment is what the disks were when they stood still, copied what was read.
	moment, copied [modelDisks]content
	at             int
	// sizes are those that the overlays are made with.
	sizes [modelDisks]int
}

func newWorld() *world {
	w := &world{qemu: &modelQEMU{running: true}}
	for i := range modelDisks {
		w.base[i], w.want[i] = newFile(content{}), newFile(content{})
	}
	return w
}

// seen is what a guest reads.
func (w *world) seen(disk int) content {
	c := w.base[disk].now
	if o := w.overlays[disk]; o != nil && (w.qemu == nil && w.journal != nil && w.journal.phase.Counts() || w.qemu != nil && w.qemu.disks[disk].Active) {
		for i, v := range o.now {
			if v != 0 {
				c[i] = v
			}
		}
	}
	return c
}

// size is how large a disk is for its guest.
func (w *world) size(disk int) int {
	if w.qemu != nil && w.qemu.disks[disk].Active {
		return w.overlays[disk].size
	}
	return w.base[disk].size
}

// resize has a disk grow: at any moment at which QEMU does that, or while the machine
// has neither QEMU nor overlays. QEMU was seen to refuse it of an image that has an overlay in
// use, and of both while there is a job; the overlay itself grows with its image only.
func (w *world) resize() {
	disk := w.draw(modelDisks)
	if q := w.qemu; q == nil && w.journal != nil || q != nil && (q.disks[disk].Active || q.disks[disk].Job != NoJob) {
		return
	}
	w.base[disk].size++
	w.want[disk].size++
	w.grown++
	if c := w.command; c != nil && c.qemu == w.qemu && w.overlays[disk] != nil && w.base[disk].size > w.overlays[disk].size && c.step < 8 {
		w.narrow++
	}
}

// fit has the overlays grow that are smaller than their images.
func (w *world) fit() {
	for i, o := range w.overlays {
		if !w.misfits {
			o.size = max(o.size, w.base[i].size)
		}
	}
}

func (w *world) guestWrites() {
	disk, block := w.draw(modelDisks), w.draw(modelBlocks)
	q := w.qemu
	if q == nil || !q.running || q.disks[disk].Job == Pending {
		return
	}
	w.version++
	w.want[disk].write(block, w.version)
	if q.disks[disk].Active {
		w.overlays[disk].write(block, w.version)
		if q.dirty[disk] != nil {
			q.dirty[disk][block] = true
		}
		return
	}
	w.base[disk].write(block, w.version)
}

func (w *world) guestFlushes() {
	disk := w.draw(modelDisks)
	q := w.qemu
	if q == nil || q.disks[disk].Job == Pending {
		return
	}
	w.want[disk].sync()
	if q.disks[disk].Active {
		w.overlays[disk].sync()
	} else {
		w.base[disk].sync()
	}
}

// jobWorks is what QEMU does by itself.
func (w *world) jobWorks() {
	disk := w.draw(modelDisks)
	if w.qemu == nil {
		return
	}
	d := &w.qemu.disks[disk]
	if d.Job != Copying && d.Job != Ready {
		return
	}
	dirty := slices.Sorted(maps.Keys(w.qemu.dirty[disk]))
	switch {
	case len(dirty) > 0:
		block := dirty[w.draw(len(dirty))]
		delete(w.qemu.dirty[disk], block)
		w.base[disk].write(block, w.overlays[disk].now[block])
	case w.qemu.completing[disk]:
		w.base[disk].sync()
		d.Job = Pending
	default:
		d.Job = Ready
	}
}

// cancelJob is somebody who ends a job.
func (w *world) cancelJob() {
	disk := w.draw(modelDisks)
	// While the images count, that would be an attack on the disk.
	if q := w.qemu; q != nil && q.disks[disk].Job != NoJob && (w.journal == nil || w.journal.phase != Merged) {
		q.disks[disk].Job, q.dirty[disk], q.completing[disk] = Ended, nil, false
	}
}

func (w *world) write(p Phase) {
	next := modelJournal{phase: p}
	if w.journal != nil {
		next = *w.journal
		next.phase = p
	}
	w.journal = &next
}

// work is a step of the command.
func (w *world) work() {
	if w.command == nil {
		if w.qemu != nil {
			w.command = &modelCommand{qemu: w.qemu}
			if w.journal != nil {
				w.command.step = 100 // it merges what another one has left
				w.command.paused = w.journal.paused && !w.qemu.running
				if w.journal.phase == Attaching {
					w.fit()
				}
			}
		}
		return
	}
	c := w.command
	if c.qemu != w.qemu {
		w.command = nil // the connection broke
		return
	}
	c.step++
	switch c.step {
	case 1:
		for i := range modelDisks {
			c.sizes[i] = w.base[i].size
		}
		w.write(Making)
	case 2:
		for i := range modelDisks {
			w.overlays[i] = newFile(content{})
			w.overlays[i].size = c.sizes[i]
		}
	case 3:
		w.write(Attaching)
		w.journal.paused = true
	case 4:
		for i := range modelDisks {
			w.qemu.disks[i].Nodes = true
		}
	case 5:
		c.paused = w.qemu.running
		w.qemu.running = false
	case 6, 8:
		w.fit()
	case 7:
		for i := range modelDisks {
			w.base[i].sync()
			w.qemu.disks[i].Active = true
			c.moment[i] = w.base[i].now
			if c.moment[i] != w.want[i].now {
				w.fatalf("at the moment disk %d is %v, and the guest has written %v", i, c.moment[i], w.want[i].now)
			}
		}
	case 9:
		if c.paused {
			w.qemu.running, c.paused = true, false
		}
	case 10:
		for i := range modelDisks {
			w.journal.times[i] = w.base[i].writes
		}
		w.write(Attached)
		w.journal.paused = false
	case 11:
		if c.at < modelDisks*modelBlocks {
			disk, block := c.at%modelDisks, c.at/modelDisks
			c.copied[disk][block] = w.base[disk].now[block]
			c.at++
			c.step-- // again
			return
		}
		if c.copied != c.moment {
			w.fatalf("the snapshot is %v, and the moment was %v", c.copied, c.moment)
		}
		w.snapshots++
	default:
		w.merge(c)
	}
}

// merge is a step of the merging in QEMU.
func (w *world) merge(c *modelCommand) {
	q := w.qemu
	step := w.next(w.journal.phase, q.disks[:], q.running)
	d := &q.disks[step.Disk]
	switch step.Kind {
	case Write:
		w.write(step.Phase)
	case Commit:
		d.Job, q.dirty[step.Disk] = Copying, map[int]bool{}
		w.base[step.Disk].size = max(w.base[step.Disk].size, w.overlays[step.Disk].size)
		for i, v := range w.overlays[step.Disk].now {
			if v != 0 {
				q.dirty[step.Disk][i] = true
			}
		}
	case Wait:
	case Pause:
		c.paused, w.journal.paused = true, true
		q.running = false
	case Complete:
		q.completing[step.Disk], d.Job = true, Copying
	case Finalize:
		d.Job, d.Active, q.completing[step.Disk], q.dirty[step.Disk] = Ended, false, false, nil
	case Dismiss:
		d.Job = NoJob
	case Close:
		d.Nodes = false
	case Remove:
		w.remove()
		q.running = q.running || c.paused
		w.command = nil
	default:
		w.fatalf("the merging does %+v", step)
	}
}

// remove removes the overlays, and perhaps the journal: it may be interrupted.
func (w *world) remove() {
	for i := range modelDisks {
		if w.qemu != nil && w.qemu.disks[i].Active {
			w.fatalf("the overlay of disk %d is removed, and the guest writes to it", i)
		}
	}
	w.overlays = [modelDisks]*modelFile{}
	w.journal = nil
}

// person pauses the guest, or has it go on.
func (w *world) person() {
	if w.qemu != nil {
		w.qemu.running = w.draw(2) == 0
	}
}

func (w *world) killCommand() { w.command = nil }

func (w *world) killQEMU() {
	w.qemu = nil
	w.check("its QEMU was killed")
}

// powerCut ends everything, and loses what was not flushed.
func (w *world) powerCut() {
	w.qemu, w.command, w.recovered = nil, nil, nil
	for i := range modelDisks {
		w.base[i].cut(w)
		if w.overlays[i] != nil {
			w.overlays[i].cut(w)
		}
		// What was flushed is there, and of the rest anything.
		for block, v := range w.seen(i) {
			if !slices.Contains(w.want[i].maybe[block], v) {
				w.fatalf("after a power cut in %v disk %d has version %d of block %d, and could have %v", w.phase(), i, v, block, w.want[i].maybe[block])
			}
		}
		size := w.want[i].size
		w.want[i] = newFile(w.seen(i))
		w.want[i].size = size
	}
}

func (w *world) phase() Phase {
	if w.journal == nil {
		return ""
	}
	return w.journal.phase
}

// start merges what was left, step by step, and starts the machine.
func (w *world) start() {
	if w.qemu != nil {
		return
	}
	if w.journal == nil {
		w.recovered = nil
		w.check("it was started")
		w.qemu = &modelQEMU{running: true}
		return
	}
	if w.recovered == nil {
		w.recovered = make([]bool, modelDisks)
	}
	step := NextStopped(w.journal.phase, w.recovered)
	switch step.Kind {
	case Write:
		for i := range modelDisks {
			if w.journal.phase == Attached && w.base[i].writes != w.journal.times[i] {
				w.fatalf("the image of disk %d seems to be written by somebody else", i)
			}
		}
		w.write(step.Phase)
	case Commit:
		for block, v := range w.overlays[step.Disk].now {
			if v != 0 {
				w.base[step.Disk].write(block, v)
			}
			if w.draw(10) == 0 {
				w.recovered = nil
				return
			}
		}
		w.base[step.Disk].size = max(w.base[step.Disk].size, w.overlays[step.Disk].size)
		w.base[step.Disk].sync()
		w.recovered[step.Disk] = true
	case Remove:
		w.remove()
	default:
		w.fatalf("the start does %+v", step)
	}
	w.check("a start works")
}

// check compares what a guest would read with what it has written.
func (w *world) check(when string) {
	for i := range modelDisks {
		if got := w.seen(i); got != w.want[i].now {
			w.fatalf("%s (%s): disk %d has %v, and the guest has written %v", when, w.phase(), i, got, w.want[i].now)
		}
		if w.base[i].size != w.want[i].size {
			w.fatalf("%s (%s): the image of disk %d has the size %d, and has grown to %d", when, w.phase(), i, w.base[i].size, w.want[i].size)
		}
		// Who is killed in the moment leaves the guest paused.
		if c := w.command; c != nil && c.qemu == w.qemu && c.step > 8 && w.size(i) != w.want[i].size {
			w.fatalf("%s (%s): disk %d has the size %d for its guest, and has grown to %d", when, w.phase(), i, w.size(i), w.want[i].size)
		}
	}
}

// simulate has the world go on by some steps, and then to its end.
func (w *world) simulate(steps, calm int) {
	actions := []func(){
		w.work, w.work, w.work, w.work, w.jobWorks, w.jobWorks, w.guestWrites, w.guestWrites, w.guestFlushes, w.start, w.start, w.resize,
		w.cancelJob, w.person, w.killCommand, w.killQEMU, w.powerCut,
	}
	const disturbing = 5 // the last ones
	for range steps {
		i := w.draw(len(actions))
		if i >= len(actions)-disturbing && w.draw(1+calm) > 0 {
			continue
		}
		actions[i]()
		if w.qemu != nil {
			w.check("the guest reads")
		}
	}
	// Whatever happened, it comes to an end.
	for range 1000 {
		if w.qemu == nil {
			w.start()
			continue
		}
		if w.work(); w.journal == nil && (w.command == nil || w.command.step == 0) {
			return
		}
		w.jobWorks()
	}
	w.fatalf("it comes to no end: %s, %+v", w.phase(), w.qemu)
}

// Whoever is killed at whatever moment, the guest has what it has written, and a
// snapshot is that of one moment.
func TestNothingIsLost(t *testing.T) {
	snapshots, grown, narrow := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.next, w.fatalf = Next, t.Fatalf
		w.draw = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).IntN
		w.simulate(rapid.IntRange(1, 200).Draw(t, "steps"), rapid.IntRange(0, 40).Draw(t, "calm"))
		snapshots, grown, narrow = snapshots+w.snapshots, grown+w.grown, narrow+w.narrow
	})
	if snapshots == 0 || grown == 0 || narrow == 0 {
		t.Errorf("%d snapshots were made, disks grew %d times, %d of them with an overlay that is not in use yet", snapshots, grown, narrow)
	}
}

// The property above can fail: each of these decides something wrongly.
func TestTheModelFindsFaults(t *testing.T) {
	for name, next := range map[string]func(Phase, []Found, bool) Step{
		"nothing": nil,
		// What a job that is ready has told may be old.
		"Merged is written when the jobs are ready": func(p Phase, d []Found, running bool) Step {
			s := Next(p, d, running)
			if s.Kind == Complete {
				return Step{Kind: Write, Phase: Merged}
			}
			return s
		},
		"jobs are finalized before Merged is written": func(p Phase, d []Found, running bool) Step {
			if p == Merging && d[0].Job == Pending {
				return Step{Kind: Finalize}
			}
			s := Next(p, d, running)
			if i := first(d, func(d Found) bool { return d.Job == Ready }); s.Kind == Pause && i >= 0 {
				return Step{Kind: Complete, Disk: i}
			}
			return s
		},
		"images are written in the phase in which they stand still": func(p Phase, d []Found, running bool) Step {
			if p == Attached {
				if s := Next(Merging, d, running); s.Kind == Commit {
					return s
				}
			}
			return Next(p, d, running)
		},
		"overlays go while they count": func(p Phase, d []Found, running bool) Step {
			s := Next(p, d, running)
			if s.Kind == Write && s.Phase == Merging && p == Attached {
				return Step{Kind: Remove}
			}
			return s
		},
		"the guest writes on while the jobs complete, and Merged is old": func(p Phase, d []Found, running bool) Step {
			if p == Merged && d[0].Active && d[0].Job != Pending {
				return Step{Kind: Wait}
			}
			s := Next(p, d, running)
			if s.Kind == Write && s.Phase == Merged && d[0].Active {
				return s
			}
			if s.Kind == Pause {
				return Step{Kind: Write, Phase: Merged}
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := ""
			for seed := uint64(0); seed < 3000 && found == ""; seed++ {
				found = faulty(next, false, seed)
			}
			if t.Logf("%s", found); (found == "") != (next == nil) {
				t.Error("the model should find faults, and only those")
			}
		})
	}
	t.Run("overlays are smaller than images that have grown", func(t *testing.T) {
		found := ""
		for seed := uint64(0); seed < 3000 && found == ""; seed++ {
			found = faulty(nil, true, seed)
		}
		if t.Logf("%s", found); found == "" {
			t.Error("the model should find that")
		}
	})
}

// faulty is what is wrong after a run that is drawn by a seed.
func faulty(next func(Phase, []Found, bool) Step, misfits bool, seed uint64) (fault string) {
	type stop struct{}
	defer func() {
		if r := recover(); r != nil && r != (stop{}) {
			panic(r)
		}
	}()
	w := newWorld()
	w.misfits = misfits
	w.next, w.draw = next, rand.New(rand.NewPCG(seed, 0)).IntN
	if next == nil {
		w.next = Next
	}
	w.fatalf = func(format string, args ...any) {
		fault = fmt.Sprintf(format, args...)
		panic(stop{})
	}
	w.simulate(200, w.draw(40))
	return fault
}

// What is decided is one of the steps for everything that may be found, and needs what
// it is about.
func TestNextIsAlwaysPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phase := rapid.SampledFrom([]Phase{Making, Attaching, Attached, Merging, Merged}).Draw(t, "phase")
		disks := make([]Found, rapid.IntRange(1, 4).Draw(t, "disks"))
		for i := range disks {
			disks[i] = Found{Nodes: rapid.Bool().Draw(t, "nodes"), Active: rapid.Bool().Draw(t, "active"), Job: JobState(rapid.IntRange(0, int(Ended)).Draw(t, "job"))}
			disks[i].Nodes = disks[i].Nodes || disks[i].Active
			if !disks[i].Active && disks[i].Job != Ended {
				disks[i].Job = NoJob
			}
		}
		running := rapid.Bool().Draw(t, "running")
		s := Next(phase, disks, running)
		if s.Disk < 0 || s.Disk >= len(disks) {
			t.Fatalf("%+v", s)
		}
		d := disks[s.Disk]
		ok := map[StepKind]bool{
			Write: s.Phase != phase && s.Phase.known(), Commit: d.Active && d.Job == NoJob && phase == Merging,
			Wait: true, Pause: running, Complete: d.Job == Ready && !running, Finalize: d.Job == Pending && phase == Merged,
			Dismiss: d.Job == Ended, Close: d.Nodes && !d.Active && !phase.Counts(), Remove: !phase.Counts(),
		}
		if !ok[s.Kind] {
			t.Fatal(fmt.Sprintf("%s, %+v, running %v: %+v", phase, disks, running, s))
		}
	})
}
