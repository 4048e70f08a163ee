package live

import (
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// balloonPage is the granularity of a virtio balloon (virtio 1.2, §5.5), in bytes.
const balloonPage = 4096

// BalloonTarget is the memory that the guest should have, in bytes: what is requested, up to the
// machine's RAM.
func BalloonTarget(c *runnerconfig.Config, ram int64) int64 {
	if c == nil {
		return ram
	}
	if desired := int64(c.Runner.VM.CurrentRAM); desired > 0 && desired < ram {
		return desired
	}
	return ram
}

// BalloonReached reports whether the guest has its target.
func BalloonReached(actual, target int64) bool {
	return actual-target < balloonPage && target-actual < balloonPage
}

// ramInterval is the least time between two reports of a changing balloon, as in VM-Operator.
const ramInterval = 15 * time.Second

// ReportRAM reports whether to report the guest's memory, in bytes: at most every 15 seconds while
// it changes, and at once when it has reached its target. said is the last reported size and at its
// time. If a report must wait, wake is when to call it again.
func ReportRAM(actual, target, said int64, at, now time.Time) (report bool, wake time.Time) {
	if actual == said {
		return false, time.Time{}
	}
	if due := at.Add(ramInterval); !BalloonReached(actual, target) && now.Before(due) {
		return false, due
	}
	return true, time.Time{}
}

func (d *decider) memory() {
	desired, ram := d.in.Config.Runner.VM.CurrentRAM, d.in.Machine.RAM
	target := BalloonTarget(d.in.Config, ram)
	actual, asked := d.in.Observed.Balloon, d.in.Memory.Balloon
	switch {
	case actual == nil && target != ram:
		d.condition(MemoryAdjusted, False, ReasonNotSupported, "the machine has no balloon: the guest has all of its %s", runnerconfig.Bytes(ram))
	case actual != nil && (!BalloonReached(*actual, target) || asked != 0 && asked != target):
		goal, step := d.balloonAttempt(target)
		exhausted, problem := d.attempt(goal, step)
		has := fmt.Sprint(runnerconfig.Bytes(*actual))
		if BalloonReached(*actual, target) {
			has += fmt.Sprint(", was asked to have ", runnerconfig.Bytes(asked))
		}
		switch {
		case !exhausted:
			d.condition(MemoryAdjusted, False, ReasonAdjusting, "the guest has %s, %s are wanted%s", has, runnerconfig.Bytes(target), because(problem))
		case problem != "":
			d.condition(MemoryAdjusted, False, ReasonRefused, "the guest has %s, %s are wanted: %s", has, runnerconfig.Bytes(target), problem)
		case d.in.Observed.NoBalloonDriver:
			d.condition(MemoryAdjusted, False, ReasonGuestDoesNotFollow, "the guest has %s, %s are wanted: it has no balloon driver", has, runnerconfig.Bytes(target))
		default:
			d.condition(MemoryAdjusted, False, ReasonGuestDoesNotFollow, "the guest has %s, %s are wanted: it needs the memory, or has no balloon driver any more", has, runnerconfig.Bytes(target))
		}
	case int64(desired) > ram:
		d.condition(MemoryAdjusted, False, ReasonAboveMaximum, "%s are wanted, the machine was started with %s", desired, runnerconfig.Bytes(ram))
	case int64(d.in.Config.Runner.VM.PendingRAM) > target:
		d.condition(MemoryAdjusted, False, ReasonPodNotResized, "the guest has %s, %s are wanted%s", runnerconfig.Bytes(target), d.in.Config.Runner.VM.PendingRAM, podNotResized)
	default:
		d.asConfigured(MemoryAdjusted)
	}
}

// nudge is by how much the balloon is moved to make the guest report its size.
const nudge = 1 << 20

// balloonAttempt is the next attempt to reach a target. After a reset, QEMU reports the guest's
// previous size until the guest changes it, which a guest that booted with the right size does not.
// So every second attempt requests a little less.
func (d *decider) balloonAttempt(target int64) (string, Step) {
	step := SetBalloon{Bytes: target}
	goal := d.goal(fmt.Sprint(target, " after reset ", d.in.Observed.Resets))
	if t := d.out.Memory.Tries[step.part()]; d.in.Observed.Resets > 0 && t.Goal == goal && t.Count%2 == 1 && target > nudge {
		step.Bytes -= nudge
	}
	return goal, step
}
