package overlay

// Phase is where the content of a machine's disks is: see the package's words.
type Phase string

// The phases, in their order.
const (
	Making    Phase = "Making"
	Attaching Phase = "Attaching"
	Attached  Phase = "Attached"
	Merging   Phase = "Merging"
	Merged    Phase = "Merged"
)

// Counts reports whether an overlay has, or may have, content that its image lacks.
func (p Phase) Counts() bool { return p == Attaching || p == Attached || p == Merging }

func (p Phase) known() bool { return p.Counts() || p == Making || p == Merged }

// JobState is the state of QEMU's merging of a disk.
type JobState int

// The states of jobs.
const (
	// NoJob means that no job exists.
	NoJob JobState = iota
	// Copying is a job that copies, or that was asked to complete.
	Copying
	// Ready is a job that has copied everything, and follows the guest's writes.
	Ready
	// Pending is a job that has found that nothing is left, and holds the guest's writes back.
	Pending
	// Ended is a job that has succeeded or failed.
	Ended
)

// Found is the state of a disk in QEMU.
type Found struct {
	// Nodes reports whether QEMU has opened the overlay.
	Nodes bool
	// Active reports whether the guest writes to the overlay.
	Active bool
	Job    JobState
}

// StepKind is the kind of a step.
type StepKind int

// The kinds of steps.
const (
	// Done: nothing is left to do.
	Done StepKind = iota
	// Write writes the journal's phase, and returns when it is on the storage.
	Write
	// Commit starts QEMU's merge of a disk; without a QEMU, the disk is merged at once.
	Commit
	// Wait waits until a job has another state.
	Wait
	// Pause pauses the guest, which executes.
	Pause
	// Complete completes a job that is ready; Finalize has the guest write to its image, for a job
	// that is pending. Dismiss removes one that has ended.
	Complete
	Finalize
	Dismiss
	// Close has QEMU close an unused overlay.
	Close
	// Remove removes the overlays, and the journal after them.
	Remove
)

// Step is a step towards images without overlays.
type Step struct {
	Kind StepKind
	// Disk is the position of the disk.
	Disk int
	// Phase is the phase to write.
	Phase Phase
}

// Next returns the next step to images without overlays, in a running QEMU. running reports whether
// the guest executes. QEMU's state, not the journal's, shows where the guest writes.
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
		// Even in Merged, if a job was cancelled: the guest writes to an overlay.
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

// drop returns the next step if the guest writes to its images.
func drop(phase Phase, disks []Found) Step {
	if phase.Counts() {
		return Step{Kind: Write, Phase: Merged}
	}
	if i := first(disks, func(d Found) bool { return d.Nodes }); i >= 0 {
		return Step{Kind: Close, Disk: i}
	}
	return Step{Kind: Remove}
}

// NextStopped returns the next step of a machine that has no QEMU and whose images no other process
// has; merged reports which disks were merged since this was begun. The images are checked before
// Merging is written.
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

func first[T any](all []T, is func(T) bool) int {
	for i, one := range all {
		if is(one) {
			return i
		}
	}
	return -1
}
