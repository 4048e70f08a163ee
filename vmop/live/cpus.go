package live

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (d *decider) cpus() {
	slots := d.in.Observed.CPUs
	desired := max(d.in.Config.Runner.VM.CurrentCPUs, 1)
	if len(slots) == 0 {
		d.condition(CPUsAdjusted, Unknown, ReasonNotSupported, "the machine type cannot add or remove CPUs")
		return
	}
	wanted := min(desired, len(slots))
	slots = slices.Clone(slots)
	slices.SortStableFunc(slots, func(a, b CPUSlot) int { return slices.Compare(place(a), place(b)) })
	var free []CPUSlot
	var removable []string
	ids := map[string]bool{}
	present := 0
	for _, s := range slots {
		if s.QOMPath == "" {
			free = append(free, s)
			continue
		}
		present++
		ids[path.Base(s.QOMPath)] = true
		// The boot processor is at /machine/unattached.
		if id := qemucmd.DeviceID(s.QOMPath); qemucmd.IsCPU(id) {
			removable = append(removable, id)
		}
	}
	if d.in.Config.Runner.VM.CPUOrder == runnerconfig.CPUOrderHighest {
		slices.Reverse(free)
	}
	switch {
	case present < wanted:
		d.moreCPUs(present, wanted, desired, plugs(free[:wanted-present], ids))
	case present > wanted && !d.in.Machine.KVM:
		d.waits = append(d.waits, "vm.currentCpus")
		d.condition(CPUsAdjusted, False, ReasonChangesWait, "there are %d CPUs, %d are wanted: QEMU does not survive the removal of CPUs that it emulates in software; they leave with the next start", present, desired)
	case present > wanted && len(removable) == 0:
		d.condition(CPUsAdjusted, False, ReasonNotSupported, "%d of the %d CPUs cannot be removed before the next start", present-wanted, present)
	case present > wanted:
		// The last ones first, so that the guest keeps a whole topology.
		slices.Reverse(removable)
		var steps []Step
		for _, id := range removable[:min(present-wanted, len(removable))] {
			steps = append(steps, UnplugCPU{ID: id})
		}
		// A guest that has booted anew may do what the last one did not.
		exhausted, problem := d.attempt(d.goal(fmt.Sprint(wanted, " after reset ", d.in.Observed.Resets)), steps...)
		if exhausted {
			d.condition(CPUsAdjusted, False, ReasonGuestDoesNotFollow, "there are %d CPUs, %d are wanted: the guest does not release them%s", present, desired, because(problem))
		} else {
			d.condition(CPUsAdjusted, False, ReasonAdjusting, "removing CPUs: there are %d, %d are wanted%s", present, desired, because(problem))
		}
	case desired > wanted:
		d.condition(CPUsAdjusted, False, ReasonAboveMaximum, "%d CPUs are wanted, the machine was started with room for %d", desired, len(slots))
	default:
		d.asConfigured(CPUsAdjusted)
	}
}

// moreCPUs plugs those that are lacking, as far as there is room for them.
func (d *decider) moreCPUs(present, wanted, desired int, lacking []Step) {
	reach, goal := wanted, d.goal(wanted)
	if !d.in.Machine.KVM {
		reach = min(wanted, max(present, translationRoom(d.in.Observed.Translation, len(d.in.Observed.CPUs))))
		// The guest goes on to fill the cache meanwhile, so that the room for each is looked
		// at anew: QEMU was seen to end while several were plugged after one look.
		lacking, goal = lacking[:1], d.goal(present+1)
	}
	var exhausted bool
	var problem string
	if reach > present {
		exhausted, problem = d.attempt(goal, lacking...)
	}
	switch {
	case reach < wanted:
		d.waits = append(d.waits, "vm.currentCpus")
		d.condition(CPUsAdjusted, False, ReasonChangesWait, "there are %d CPUs, %d are wanted: QEMU, which emulates them in software, has no room for the code of more than %d and would end; the others come with the next start, or when there is room%s", present, desired, reach, because(problem))
	case exhausted:
		d.condition(CPUsAdjusted, False, ReasonRefused, "there are %d CPUs, %d are wanted%s", present, desired, because(problem))
	default:
		d.condition(CPUsAdjusted, False, ReasonAdjusting, "adding CPUs: there are %d, %d are wanted%s", present, desired, because(problem))
	}
}

// LacksCPUs reports whether a machine has fewer CPUs than its configuration wants, and
// places for more.
func LacksCPUs(c *runnerconfig.Config, slots []CPUSlot) bool {
	present := 0
	for i := range slots {
		if slots[i].QOMPath != "" {
			present++
		}
	}
	return c != nil && present < min(c.Runner.VM.CurrentCPUs, len(slots))
}

// The cache for translated code of a QEMU that emulates processors is divided into
// regions: each processor has one to write to, and takes the next free one when that is
// full. When none is free, the whole cache is emptied by the processor that needs one. A
// processor that is plugged needs one, too, and QEMU (7.2 was tried) ends
// where none is free: "tcg_region_initial_alloc__locked: assertion failed".
const (
	// translationSize is before the bytes of code that there are and may be, in QEMU's
	// text.
	translationSize = "gen code size"
	// leastRegion is what a region has at least, in bytes, where there are more of them
	// than processors, and regionsEach how many there are for each processor at most.
	leastRegion = 2 << 20
	regionsEach = 8
)

// translationRoom is how many processors there can be without an end of QEMU by that: even
// if those that there are have just begun with their regions, there is a free one for each
// that is to come. What is not understood does not hinder.
func translationRoom(text string, maximum int) int {
	_, rest, _ := strings.Cut(text, translationSize)
	var used, all int64
	if _, err := fmt.Sscanf(strings.TrimLeft(rest, " "), "%d/%d", &used, &all); err != nil || all <= 0 {
		return maximum
	}
	regions := all / leastRegion
	if most := int64(maximum); regions <= most {
		regions = most
	} else {
		regions = min(regions, most*regionsEach)
	}
	// Full ones are at most as many as fit into what is used, and one that fills before the
	// processor is there: QEMU was seen to end of it.
	return int(regions - (used*regions+all-1)/all)
}

// plugs fills slots, with ids that are not in use.
func plugs(free []CPUSlot, used map[string]bool) []Step {
	var steps []Step
	next := 1
	for _, s := range free {
		for used[qemucmd.CPUID(next)] {
			next++
		}
		id := qemucmd.CPUID(next)
		next++
		props := make(map[string]int64, len(s.Props))
		for k, v := range s.Props {
			props[k] = v
		}
		steps = append(steps, PlugCPU{ID: id, Driver: s.Driver, Props: props})
	}
	return steps
}

// place is the position of a slot in the topology, outermost part first.
func place(s CPUSlot) []int64 {
	var out []int64
	for _, key := range []string{"socket-id", "die-id", "cluster-id", "module-id", "core-id", "thread-id"} {
		out = append(out, s.Props[key])
	}
	return out
}
