// Package vmstatus is what a runner has to say in the status of a VirtualMachine. The
// runner of a pod writes it to the cluster, and package host tells it of a machine that
// no cluster knows: both say the same things by the same names.
package vmstatus

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
)

// Condition is a condition of the machine's status.
type Condition = live.StatusCondition

// Transitions knows since when each condition has its status, by its type. A
// runner that starts takes up where the one before left off.
type Transitions map[string]Condition

// NewTransitions takes up what a status has had so far.
func NewTransitions(stored []Condition) Transitions {
	t := Transitions{}
	for _, c := range stored {
		t[c.Type] = c
	}
	return t
}

// Of is the runner's part of the status of a VirtualMachine, as JSON values,
// and the conditions in it. Of conditions that have the status that they had
// before, the times stay; those that have no time of their own get now.
func Of(s *runner.State, before Transitions, now time.Time) (map[string]any, Transitions) {
	if s == nil { // of a machine that nobody has told of
		s = &runner.State{Phase: runner.PhaseStopped}
	}
	stopped := s.Phase == runner.PhaseStopped
	part := map[string]any{"cpus": int64(s.CPUs), "ram": resource.NewQuantity(s.RAM, resource.BinarySI).String()}
	if len(s.DeviceGroups) > 0 { // the next pod is in them, also after the end
		groups := make([]any, len(s.DeviceGroups))
		for i, g := range s.DeviceGroups {
			groups[i] = int64(g)
		}
		part["deviceGroups"] = groups
	}
	conditions := slices.Clone(s.StatusConditions)
	if stopped {
		part["cpus"], part["ram"] = int64(0), "0"
		if o := s.Outcome; o != nil {
			part["runnerEnd"] = ending(o)
		}
	} else {
		text := func(key, value string) {
			if value != "" {
				part[key] = value
			}
		}
		text("runnerVersion", s.RunnerVersion)
		text("machineType", s.MachineType)
		text("accelerator", string(s.Accelerator))
		if s.Emulation.Reason != "" {
			part["emulation"] = emulation(s.Emulation)
		}
		text("consoleClient", s.ConsoleClient)
		text("loggedInUser", s.Login.User)
		text("hostName", s.Guest.HostName)
		if s.QEMUVersion != "" {
			part["versions"] = map[string]any{"qemu": s.QEMUVersion}
		}
		if info := osInfo(s.Guest.OSInfo); info != nil {
			part["osinfo"] = info
		}
		if interfaces := interfaces(s.Guest.Interfaces); interfaces != nil {
			part["interfaces"] = interfaces
		}
		if len(s.ChangedDocuments) > 0 {
			documents := make([]any, len(s.ChangedDocuments))
			for i, d := range s.ChangedDocuments {
				documents[i] = map[string]any{"name": d.Name, "missing": d.Missing}
			}
			part["changedDocuments"] = documents
		}
		if len(s.Attachments) > 0 {
			part["attachments"] = attachments(s.Attachments)
		}
		text("attachmentKey", s.AttachmentKey)
		if len(s.Disks) > 0 {
			part["disks"] = diskSizes(s.Disks)
		}
		if s.DisplayPasswordSerial != 0 {
			part["displayPasswordSerial"] = s.DisplayPasswordSerial
		}
		for _, c := range s.Conditions {
			// What waits for a restart is the operator's to say.
			if c.Type != live.RestartRequired {
				conditions = append(conditions, Condition{
					Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
					ObservedGeneration: s.Generation, LastTransitionTime: now.UTC().Truncate(time.Second),
				})
			}
		}
	}
	after := maps.Clone(before)
	if after == nil {
		after = Transitions{}
	}
	list := make([]any, len(conditions))
	for i, c := range conditions {
		// The definition dates the conditions of a new machine 1970.
		if old, ok := before[c.Type]; ok && old.Status == c.Status && old.LastTransitionTime.Unix() > 0 {
			c.LastTransitionTime = old.LastTransitionTime
		}
		after[c.Type] = c
		list[i] = conditionJSON(c)
	}
	part["conditions"] = list
	return part, after
}

// ending is how a machine ended, for an operator that finds no pod that tells it.
func ending(o *runner.Outcome) map[string]any {
	m := map[string]any{"cause": string(o.Cause), "message": conditions.Bounded(o.Message)}
	if o.QEMUStatus != "" && len(o.QEMUStatus) <= maxQEMUStatus {
		m["qemuStatus"] = o.QEMUStatus
	}
	return m
}

// maxAttachments is how many the definition takes.
const maxAttachments = 64

func attachments(all []live.Attachment) []any {
	out := make([]any, min(len(all), maxAttachments))
	for i := range out {
		a := &all[i]
		m := map[string]any{"uid": a.UID, "name": a.Name, "phase": string(a.Phase)}
		if a.Message != "" {
			m["message"] = conditions.Bounded(a.Message)
		}
		out[i] = m
	}
	return out
}

// maxDisks is how many the definition takes.
const maxDisks = 64

func diskSizes(all []live.DiskSize) []any {
	out := make([]any, min(len(all), maxDisks))
	for i := range out {
		d := &all[i]
		m := map[string]any{"name": d.Name, "size": resource.NewQuantity(d.Size, resource.BinarySI).String()}
		if d.Message != "" {
			m["message"] = conditions.Bounded(d.Message)
		}
		out[i] = m
	}
	return out
}

// maxQEMUStatus is the longest exit status that the definition takes, in bytes.
const maxQEMUStatus = 64

func emulation(e runner.Emulation) map[string]any {
	m := map[string]any{"reason": e.Reason}
	if e.Message != "" {
		m["message"] = conditions.Bounded(e.Message)
	}
	return m
}

// osInfoKeys are the members of a guest agent's GuestOSInfo, all of them strings
// (qga/qapi-schema.json). A guest can answer with any others; they are not passed
// on, because the size of a status and the form of its keys are limited.
var osInfoKeys = []string{
	"id", "kernel-release", "kernel-version", "machine", "name",
	"pretty-name", "variant", "variant-id", "version", "version-id",
}

// maxOSInfo is the longest value of them in bytes; the longest real ones are
// kernel versions of about 100.
const maxOSInfo = 256

// osInfo is what a guest says about its system, nil if that is nothing.
func osInfo(answer json.RawMessage) map[string]any {
	var said map[string]any
	if json.Unmarshal(answer, &said) != nil || said == nil {
		return nil
	}
	out := map[string]any{}
	for _, key := range osInfoKeys {
		if text, ok := said[key].(string); ok {
			out[key] = strings.ToValidUTF8(text[:min(len(text), maxOSInfo)], "")
		}
	}
	return out
}

func conditionJSON(c Condition) map[string]any {
	m := map[string]any{
		"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": conditions.Bounded(c.Message),
		"lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339),
	}
	if c.ObservedGeneration != 0 {
		m["observedGeneration"] = c.ObservedGeneration
	}
	return m
}

// interfaces leaves out the loopback, which says nothing.
func interfaces(found []runner.GuestInterface) []any {
	var out []any
	for _, i := range found {
		if i.Name == "lo" {
			continue
		}
		m := map[string]any{"name": i.Name}
		if i.MAC != "" {
			m["mac"] = i.MAC
		}
		if len(i.Addresses) > 0 {
			addresses := make([]any, len(i.Addresses))
			for n, a := range i.Addresses {
				addresses[n] = a
			}
			m["ipAddresses"] = addresses
		}
		out = append(out, m)
	}
	return out
}
