package overlay

// Phase says where the content of a machine's disks is: see the package's words.
type Phase string

// The phases, in their order.
const (
	Making    Phase = "Making"
	Attaching Phase = "Attaching"
	Attached  Phase = "Attached"
	Merging   Phase = "Merging"
	Merged    Phase = "Merged"
)

// Counts reports whether an overlay has what its image has not, or may have it.
func (p Phase) Counts() bool { return p == Attaching || p == Attached || p == Merging }

// known reports whether a phase is one of those that there are.
func (p Phase) known() bool { return p.Counts() || p == Making || p == Merged }

// JobState is where QEMU is with merging a disk.
type JobState int

// The states of jobs.
const (
	// NoJob: there is none.
	NoJob JobState = iota
	// Copying is a job that copies, or that was told to complete.
	Copying
	// Ready is one that has copied all there was, and follows what the guest writes.
	Ready
	// Pending is one that has found that nothing is left, and holds the guest's
	// writes back.
	Pending
	// Ended is one that has ended, well or not.
	Ended
)

// Found is what a QEMU has of a disk.
type Found struct {
	// Nodes says that it has opened the overlay.
	Nodes bool
	// Active says that the guest writes to the overlay.
	Active bool
	Job    JobState
}

// StepKind is what a step does.
type StepKind int

// The kinds of steps.
const (
	// Done: nothing is left to do.
	Done StepKind = iota
	// Write writes the journal's phase, and returns when it is on the storage.
	Write
	// Commit has QEMU start to merge a disk; without a QEMU, it is merged at once.
	Commit
	// Wait waits until a job has another state.
	Wait
	// Pause pauses the guest, which executes.
	Pause
	// Complete tells a job that is ready to complete, Finalize one that is pending to
	// have the guest write to its image. Dismiss forgets one that has ended.
	Complete
	Finalize
	Dismiss
	// Close has QEMU close an unused overlay.
	Close
	// Remove removes the overlays, and the journal after them.
	Remove
)

// Step is something to be done.
type Step struct {
	Kind StepKind
	// Disk is the position of the disk that it is about.
	Disk int
	// Phase is what is written.
	Phase Phase
}

// Next is the next step to images without overlays, in a QEMU that runs. running
// says that the guest executes. What QEMU has is the truth about where its guest
// writes, whatever the journal says.
func Next(phase Phase, disks []Found, running bool) Step {
	if i := first(disks, func(d Found) bool { return d.Job == Ended }); i >= 0 {
		return Step{Kind: Dismiss, Disk: i}
	}
	if first(disks, func(d Found) bool { return d.Active }) < 0 {
		return drop(phase, disks)
	}
	held := first(disks, func(d Found) bool { return d.Active && d.Job != Pending }) < 0
	switch {
	case phase == Merged && held:
		return Step{Kind: Finalize, Disk: first(disks, func(d Found) bool { return d.Active })}
	case phase != Merging:
		// Of Merged, too, if somebody has cancelled a job: the guest writes to an overlay.
		return Step{Kind: Write, Phase: Merging}
	case held && !running:
		return Step{Kind: Write, Phase: Merged}
	}
	if i := first(disks, func(d Found) bool { return d.Active && d.Job == NoJob }); i >= 0 {
		return Step{Kind: Commit, Disk: i}
	}
	if first(disks, func(d Found) bool { return d.Job == Copying }) >= 0 {
		return Step{Kind: Wait}
	}
	if running {
		return Step{Kind: Pause}
	}
	return Step{Kind: Complete, Disk: first(disks, func(d Found) bool { return d.Job == Ready })}
}

// drop is the next step where the guest writes to its images.
func drop(phase Phase, disks []Found) Step {
	if phase.Counts() {
		return Step{Kind: Write, Phase: Merged}
	}
	if i := first(disks, func(d Found) bool { return d.Nodes }); i >= 0 {
		return Step{Kind: Close, Disk: i}
	}
	return Step{Kind: Remove}
}

// NextStopped is the next step of a machine that has no QEMU, of which nobody else has
// the images; merged says which disks were merged since this was begun. The images are
// looked at before Merging is written.
func NextStopped(phase Phase, merged []bool) Step {
	switch {
	case !phase.Counts():
		return Step{Kind: Remove}
	case phase != Merging:
		return Step{Kind: Write, Phase: Merging}
	}
	if i := first(merged, func(done bool) bool { return !done }); i >= 0 {
		return Step{Kind: Commit, Disk: i}
	}
	return Step{Kind: Write, Phase: Merged}
}

// first is the position of the first one of which something is true, -1 if there is
// none.
func first[T any](all []T, is func(T) bool) int {
	for i, one := range all {
		if is(one) {
			return i
		}
	}
	return -1
}
