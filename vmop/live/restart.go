package live

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (d *decider) restart() {
	ends, more := d.in.Config.Runner.GuestResetEnds, ""
	if ends && !d.out.Memory.ResetEnds {
		// This is harmless: the guest resets itself in place.
		more = because(d.out.Memory.Tries[SetResetAction{}.part()].Error)
		if more != "" {
			more = "; a reset by the guest does not end the machine" + more
		}
	}
	paths := append(d.waits, RestartPaths(d.in.Machine.Started, d.withoutGrown())...)
	more += d.refusedGrowth
	switch {
	case len(paths) > 0:
		const these = "these changes take effect with the next start: "
		told, _ := conditions.List(paths, ", ", len(these)+len(more))
		d.condition(RestartRequired, True, ReasonChangesPendingRestart, these+"%s%s", told, more)
	case ends:
		d.condition(RestartRequired, True, ReasonChangesPendingRestart, "changes of what is around the machine take effect with the next start%s", more)
	default:
		d.condition(RestartRequired, False, ReasonNoRestartRequired, "")
	}
}

// RestartPaths lists the keys below "/Runner" in which a configuration differs from the one that
// the machine was started with, except those that take effect while it runs. (Fewer processors take
// effect with KVM only, and the size of a disk only with [Machine.GrowsDisks]; the condition
// [RestartRequired] considers that.)
func RestartPaths(started, wanted *runnerconfig.Config) []string {
	if started == nil || wanted == nil {
		return nil
	}
	a, b := withoutLive(started.Runner), withoutLive(wanted.Runner)
	for i := range min(len(a.VM.Drives), len(b.VM.Drives)) {
		if b.VM.Drives[i].Ephemeral() {
			continue // the next start creates it anew, of any size
		}
		// A disk is not shrunk at a restart either.
		b.VM.Drives[i].Size = max(a.VM.Drives[i].Size, b.VM.Drives[i].Size)
		b.VM.Drives[i].GrowTo = max(a.VM.Drives[i].GrowTo, b.VM.Drives[i].GrowTo)
	}
	var paths []string
	differences(reflect.ValueOf(a), reflect.ValueOf(b), "", &paths)
	return paths
}

// GenerationAlone reports whether two configurations differ only in the generation of their
// manifest, in whether a reset by the guest ends the machine, in what waits for the pod, or in where
// reports go. Such a change does not affect the machine, and is no reason to retry what was given up.
func GenerationAlone(a, b *runnerconfig.Config) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := *a, *b
	x.Runner.Generation, y.Runner.Generation = 0, 0
	x.Runner.GuestResetEnds, y.Runner.GuestResetEnds = false, false
	x.Runner.MachineUID, y.Runner.MachineUID = "", ""
	x.Runner.VM.PendingCPUs, y.Runner.VM.PendingCPUs = 0, 0
	x.Runner.VM.PendingRAM, y.Runner.VM.PendingRAM = 0, 0
	return !reflect.DeepEqual(a, b) && reflect.DeepEqual(x, y)
}

func withoutLive(r runnerconfig.Runner) runnerconfig.Runner {
	r.MachineUID = ""
	r.Generation, r.GuestShutdownStops, r.GuestResetEnds, r.ResetCounter = 0, false, false, nil
	r.VM.PowerdownTimeout, r.VM.CurrentCPUs, r.VM.CurrentRAM = nil, 0, 0
	r.VM.PendingCPUs, r.VM.PendingRAM = 0, 0
	r.VM.USBDevices = nil
	r.VM.Attachments = nil
	r.VM.CPUOrder = "" // it applies to processors plugged from now on
	if r.VM.Display != nil {
		display := *r.VM.Display
		display.LoggedInUser = ""
		r.VM.Display = &display
	}
	r.VM.Drives = slices.Clone(r.VM.Drives)
	for i := range r.VM.Drives {
		if r.VM.Drives[i].Type == runnerconfig.DriveCD && !r.VM.Drives[i].ReadOnly {
			r.VM.Drives[i].File = ""
		}
		if im := r.VM.Drives[i].Image; im != nil && !im.Ephemeral {
			r.VM.Drives[i].Image = nil // it applies to an existing disk, which is not changed
		}
	}
	return r
}

func differences(a, b reflect.Value, path string, out *[]string) {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	switch {
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			differences(a.Field(i), b.Field(i), strings.TrimPrefix(path+"."+name, "."), out)
		}
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		differences(a.Elem(), b.Elem(), path, out)
	case a.Kind() == reflect.Slice && a.Len() == b.Len() && a.Type().Elem().Kind() == reflect.Struct:
		for i := range a.Len() {
			differences(a.Index(i), b.Index(i), path+"["+strconv.Itoa(i)+"]", out)
		}
	case a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0: // nil and empty are equal
	default:
		*out = append(*out, path)
	}
}
