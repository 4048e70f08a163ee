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

// Authors are those who wrote the parts of a machine's status, as far as decisions
// depend on it. It is small, and equal for most machines. The zero value is for
// whoever does not know: then everything is believed.
//
// It has the parts that those wrote whose parts they are, and after a bar others who
// wrote one. Get it by [AuthorsOf].
type Authors string

// AuthorsOf reads who wrote a status from the managed fields of its object. A part is
// written by its author only if nobody else has a say in anything of it; which of its
// authors shared it with another does not matter.
//
// The names in there are what writers call themselves. Those of the operator are its
// own as long as nobody else may write statuses but the runners, to whom the policy
// vmop-runner refuses these names.
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
			continue // whoever this is owns nothing
		}
		parts := map[string]json.RawMessage{}
		for key, value := range fields.Status {
			name, isField := strings.CutPrefix(key, "f:")
			switch {
			case isField && name == "conditions":
				var each map[string]json.RawMessage
				_ = json.Unmarshal(value, &each) // what is no set of fields has none
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

// maxStrangers is how many of those are named who wrote parts that are not theirs.
const maxStrangers = 4

// author is one writer of a status, and what of each part is his: sets of fields as the
// API server has them, which are read only where somebody else has written, too.
type author struct {
	name  string
	parts map[string]json.RawMessage
}

// covered reports whether the authors of a part have all of it that somebody else has,
// too.
func covered(all []author, part string, owns json.RawMessage) bool {
	return slices.ContainsFunc(all, func(a author) bool {
		has, there := a.parts[part]
		return there && isAuthor(part, a.name) && within(fieldSet(owns), fieldSet(has))
	})
}

// fieldSet reads a set of fields; what is none has none.
func fieldSet(raw json.RawMessage) map[string]any {
	var out map[string]any
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// within reports whether a set of fields is part of another one.
func within(part, whole map[string]any) bool {
	for key, value := range part {
		if key == "." {
			continue // that there is something at all
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

// conditionType is the type of a condition from its key in a set of fields.
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

// isAuthor reports whether a part of the status is somebody's to write.
func isAuthor(part, manager string) bool {
	t, isCondition := strings.CutPrefix(part, "conditions/")
	switch {
	case isCondition && slices.Contains(spec.OperatorConditionTypes(), t), slices.Contains(operatorFields, part):
		return manager == names.OperatorStatusManager
	case isCondition:
		// The operator reports in the place of a runner that cannot.
		return manager == names.RunnerStatusManager || manager == names.OperatorStatusManager
	case part == "assignment", part == "consoleUser":
		// Programs that hand out machines and open displays write these, under names
		// of their own. A runner does not.
		return manager != names.RunnerStatusManager
	}
	return manager == names.RunnerStatusManager
}

// believes reports whether a part was written by its author.
func (a Authors) believes(part string) bool {
	believed, _, known := strings.Cut(string(a), "|")
	for p := range strings.SplitSeq(believed, ",") {
		if p == part {
			return true
		}
	}
	return !known
}

// Reported reports whether a runner of ours has ever reported about the machine, or
// the operator in its name: all of their reports have the number of CPUs.
func (a Authors) Reported() bool { return a.believes("cpus") }

// strangers names who wrote parts of others, for people.
func (a Authors) strangers() string {
	_, text, _ := strings.Cut(string(a), "|")
	return text
}

// Believed is the status without what others wrote than those whose it is. Runners of
// VM-Operator are not known by a name: what is a runner's is believed from whoever if
// former is true, which is for a machine with such a one.
//
// What the definition says of a machine that has never run was written by nobody, and
// stays. The status is not changed.
func (a Authors) Believed(status *spec.VirtualMachineStatus, former bool) *spec.VirtualMachineStatus {
	if a == "" {
		return status
	}
	out := *status
	drop := func(part string, runners bool, clear func()) {
		if !a.believes(part) && !(runners && former) {
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
	// What it says of claims stays, whoever wrote it: the worst that it does is to keep
	// a lost disk from being made anew.
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
	for i, c := range status.Conditions {
		runners := !slices.Contains(spec.OperatorConditionTypes(), c.Type)
		if a.believes(conditionPart(c.Type)) || runners && former || c.Reason == spec.ReasonCreation && c.Status == metav1.ConditionFalse {
			if kept != nil {
				kept = append(kept, c)
			}
		} else if kept == nil {
			kept = append(make([]spec.Condition, 0, len(status.Conditions)), status.Conditions[:i]...)
		}
	}
	if kept != nil {
		out.Conditions = kept
	}
	return &out
}
