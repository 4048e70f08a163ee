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
		// In reverse order, the guest keeps a complete topology.
		slices.Reverse(removable)
		var steps []Step
		for _, id := range removable[:min(present-wanted, len(removable))] {
			steps = append(steps, UnplugCPU{ID: id})
		}
		// After a reset, the guest may respond.
		exhausted, problem := d.attempt(d.goal(fmt.Sprint(wanted, " after reset ", d.in.Observed.Resets)), steps...)
		if exhausted {
			d.condition(CPUsAdjusted, False, ReasonGuestDoesNotFollow, "there are %d CPUs, %d are wanted: the guest does not release them%s", present, desired, because(problem))
		} else {
			d.condition(CPUsAdjusted, False, ReasonAdjusting, "removing CPUs: there are %d, %d are wanted%s", present, desired, because(problem))
		}
	case desired > wanted:
		d.condition(CPUsAdjusted, False, ReasonAboveMaximum, "%d CPUs are wanted, the machine was started with room for %d", desired, len(slots))
	case d.in.Config.Runner.VM.PendingCPUs > present:
		d.condition(CPUsAdjusted, False, ReasonPodNotResized, "there are %d CPUs, %d are wanted%s", present, d.in.Config.Runner.VM.PendingCPUs, podNotResized)
	default:
		d.asConfigured(CPUsAdjusted)
	}
}

const podNotResized = ": the pod has not been resized for that; see the condition ConfigurationApplied"

func (d *decider) moreCPUs(present, wanted, desired int, lacking []Step) {
	reach, goal := wanted, d.goal(wanted)
	if !d.in.Machine.KVM {
		reach = min(wanted, max(present, translationRoom(d.in.Observed.Translation, len(d.in.Observed.CPUs))))
		// One at a time: the guest goes on filling the cache, and QEMU was seen to end while
		// several were plugged after one check.
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

// LacksCPUs reports whether a machine has fewer CPUs than its configuration wants, and free slots.
func LacksCPUs(c *runnerconfig.Config, slots []CPUSlot) bool {
	present := 0
	for i := range slots {
		if slots[i].QOMPath != "" {
			present++
		}
	}
	return c != nil && present < min(c.Runner.VM.CurrentCPUs, len(slots))
}

// An emulating QEMU divides its cache for translated code into regions: each processor writes to
// one, and takes the next free one when that is full. When none is free, the processor that needs
// one empties the whole cache. But when a plugged processor finds none free, QEMU ends (seen with
// 7.2): "tcg_region_initial_alloc__locked: assertion failed".
const (
	// translationSize precedes the used and the total bytes of code in QEMU's text.
	translationSize = "gen code size"
	// leastRegion is the minimum size of a region in bytes if there are more regions than
	// processors, regionsEach the maximum number of regions for each processor.
	leastRegion = 2 << 20
	regionsEach = 8
)

// translationRoom returns how many processors can exist without that end of QEMU: even if the
// present ones have just begun their regions, each new one finds a free one. A text of another form
// is no limit.
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
	// At most as many regions are full as fit into what is used, plus one that fills before the
	// processor is plugged: QEMU was seen to end by that.
	return int(regions - (used*regions+all-1)/all)
}

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

func place(s CPUSlot) []int64 {
	var out []int64
	for _, key := range []string{"socket-id", "die-id", "cluster-id", "module-id", "core-id", "thread-id"} {
		out = append(out, s.Props[key])
	}
	return out
}
