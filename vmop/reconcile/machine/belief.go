package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Authors records which parts of a machine's status were written by their authors, as far as
// decisions depend on it. It is small, and equal for most machines. With the zero value, for
// unknown authors, everything is believed.
//
// The text lists the believed parts and, after a bar, other writers. Get it by [AuthorsOf].
type Authors string

// AuthorsOf reads who wrote a status from the managed fields of its object. A part is believed
// only if no other writer owns any of it alone; authors may share it.
//
// Managers name themselves. The operator's names are reserved as long as only runners may write
// statuses besides it: the policy vmop-runner refuses them these names.
func AuthorsOf(managed []metav1.ManagedFieldsEntry) Authors {
	var all []author
	for _, m := range managed {
		if m.Subresource != "status" || m.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status map[string]json.RawMessage `json:"f:status"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue // an unreadable entry owns nothing
		}
		parts := map[string]json.RawMessage{}
		for key, value := range fields.Status {
			name, isField := strings.CutPrefix(key, "f:")
			switch {
			case isField && name == "conditions":
				var each map[string]json.RawMessage
				_ = json.Unmarshal(value, &each) // an unreadable set is empty
				for key, value := range each {
					if t := conditionType(key); t != "" {
						parts[conditionPart(t)] = value
					}
				}
			case isField:
				parts[name] = value
			}
		}
		all = append(all, author{m.Manager, parts})
	}
	var believed, strangers []string
	for _, a := range all {
		for part, owns := range a.parts {
			if isAuthor(part, a.name) {
				if !slices.Contains(believed, part) {
					believed = append(believed, part)
				}
			} else if !covered(all, part, owns) {
				strangers = append(strangers, part+" by "+fmt.Sprintf("%.64q", a.name))
			}
		}
	}
	believed = slices.DeleteFunc(believed, func(part string) bool {
		return slices.ContainsFunc(strangers, func(s string) bool { return strings.HasPrefix(s, part+" by ") })
	})
	slices.Sort(believed)
	slices.Sort(strangers)
	text := strings.Join(believed, ",") + "|" + strings.Join(strangers[:min(len(strangers), maxStrangers)], ", ")
	return Authors(unique.Make(text).Value())
}

const maxStrangers = 4

type author struct {
	name  string
	parts map[string]json.RawMessage
}

// covered reports whether the authors of a part own everything of it that another writer owns.
func covered(all []author, part string, owns json.RawMessage) bool {
	return slices.ContainsFunc(all, func(a author) bool {
		has, there := a.parts[part]
		return there && isAuthor(part, a.name) && within(fieldSet(owns), fieldSet(has))
	})
}

func fieldSet(raw json.RawMessage) map[string]any {
	var out map[string]any
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

func within(part, whole map[string]any) bool {
	for key, value := range part {
		if key == "." {
			continue // existence of the parent itself
		}
		in, there := whole[key]
		if !there {
			return false
		}
		inner, _ := value.(map[string]any)
		outer, _ := in.(map[string]any)
		if !within(inner, outer) {
			return false
		}
	}
	return true
}

func conditionPart(t string) string { return "conditions/" + t }

func conditionType(key string) string {
	text, is := strings.CutPrefix(key, "k:")
	var named struct {
		Type string `json:"type"`
	}
	if !is || json.Unmarshal([]byte(text), &named) != nil {
		return ""
	}
	return named.Type
}

func isAuthor(part, manager string) bool {
	t, isCondition := strings.CutPrefix(part, "conditions/")
	switch {
	case isCondition && slices.Contains(spec.OperatorConditionTypes(), t), slices.Contains(operatorFields, part):
		return manager == names.OperatorStatusManager
	case isCondition:
		// The operator reports in place of a runner that cannot.
		return manager == names.RunnerStatusManager || manager == names.OperatorStatusManager
	case part == "assignment", part == "consoleUser":
		// Programs that assign machines and open displays write these under their own names; a
		// runner does not.
		return manager != names.RunnerStatusManager
	}
	return manager == names.RunnerStatusManager
}

type believedParts struct {
	listed []string
	known  bool
}

func (a Authors) parts(list []string) believedParts {
	believed, _, known := strings.Cut(string(a), "|")
	for p := range strings.SplitSeq(believed, ",") {
		list = append(list, p)
	}
	return believedParts{list, known}
}

func (p believedParts) contain(part string) bool { return !p.known || slices.Contains(p.listed, part) }

// Reported reports whether a vmop runner, or the operator in its name, has ever reported about
// the machine: all of their reports contain the number of CPUs.
func (a Authors) Reported() bool { return a.parts(nil).contain("cpus") }

func (a Authors) strangers() string {
	_, text, _ := strings.Cut(string(a), "|")
	return text
}

// Believed returns the status without the parts that others than their authors wrote; status
// itself is not changed. VM-Operator's runners have no known manager: if former is true, for a
// machine with such a runner, a runner's parts are believed from any writer.
//
// Defaults from the definition for a machine that has never run have no writer and stay.
func (a Authors) Believed(status *spec.VirtualMachineStatus, former bool) *spec.VirtualMachineStatus {
	if a == "" {
		return status
	}
	out := *status
	a.disbelieve(&out, former)
	return &out
}

// disbelieve removes the parts of a status that [Authors.Believed] leaves out. What the status
// refers to is not changed.
func (a Authors) disbelieve(out *spec.VirtualMachineStatus, former bool) {
	var room [48]string // most machines have less
	believed := a.parts(room[:0])
	drop := func(part string, runners bool, clear func()) {
		if !believed.contain(part) && !(runners && former) {
			clear()
		}
	}
	none := spec.VirtualMachineStatus{}
	drop("phase", false, func() { out.Phase = none.Phase })
	drop("created", false, func() { out.Created = none.Created })
	drop("ready", false, func() { out.Ready = none.Ready })
	drop("nodeName", false, func() { out.NodeName = none.NodeName })
	drop("ipAddress", false, func() { out.IPAddress = none.IPAddress })
	drop("observedGeneration", false, func() { out.ObservedGeneration = none.ObservedGeneration })
	drop("restartAwaitingChanges", false, func() { out.RestartAwaitingChanges = none.RestartAwaitingChanges })
	drop("lastEnd", false, func() { out.LastEnd = none.LastEnd })
	drop("power", false, func() { out.Power = none.Power })
	drop("runnerEnd", true, func() { out.RunnerEnd = none.RunnerEnd })
	drop("waits", false, func() { out.Waits = none.Waits })
	drop("blockDeviceRefs", false, func() { out.BlockDeviceRefs = none.BlockDeviceRefs })
	drop("virtualMachinePods", false, func() { out.VirtualMachinePods = none.VirtualMachinePods })
	drop("stats", false, func() { out.Stats = none.Stats })
	// status.claims stays whoever wrote it: at worst it keeps a lost disk from being created
	// anew.
	drop("assignment", false, func() { out.Assignment = none.Assignment })
	drop("consoleUser", false, func() { out.ConsoleUser = none.ConsoleUser })
	drop("runnerVersion", true, func() { out.RunnerVersion = none.RunnerVersion })
	drop("versions", true, func() { out.Versions = none.Versions })
	drop("machineType", true, func() { out.MachineType = none.MachineType })
	drop("accelerator", true, func() { out.Accelerator = none.Accelerator })
	drop("emulation", true, func() { out.Emulation = none.Emulation })
	drop("deviceGroups", true, func() { out.DeviceGroups = none.DeviceGroups })
	drop("changedDocuments", true, func() { out.ChangedDocuments = none.ChangedDocuments })
	drop("attachments", true, func() { out.Attachments = none.Attachments })
	drop("attachmentKey", true, func() { out.AttachmentKey = none.AttachmentKey })
	drop("disks", true, func() { out.Disks = none.Disks })
	drop("guestPanics", true, func() { out.GuestPanics = none.GuestPanics })
	drop("hostName", true, func() { out.HostName = none.HostName })
	drop("interfaces", true, func() { out.Interfaces = none.Interfaces })
	drop("cpus", true, func() { out.CPUs = none.CPUs })
	drop("ram", true, func() { out.RAM = none.RAM })
	drop("consoleClient", true, func() { out.ConsoleClient = none.ConsoleClient })
	drop("loggedInUser", true, func() { out.LoggedInUser = none.LoggedInUser })
	drop("displayPasswordSerial", true, func() { out.DisplayPasswordSerial = none.DisplayPasswordSerial })
	drop("osinfo", true, func() { out.OSInfo = none.OSInfo })
	var kept []spec.Condition
	for i, c := range out.Conditions {
		runners := !slices.Contains(spec.OperatorConditionTypes(), c.Type)
		if believed.contain(conditionPart(c.Type)) || runners && former || c.Reason == spec.ReasonCreation && c.Status == metav1.ConditionFalse {
			if kept != nil {
				kept = append(kept, c)
			}
		} else if kept == nil {
			kept = append(make([]spec.Condition, 0, len(out.Conditions)), out.Conditions[:i]...)
		}
	}
	if kept != nil {
		out.Conditions = kept
	}
}
