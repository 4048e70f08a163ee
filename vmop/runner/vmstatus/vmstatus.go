// Package vmstatus is the runner's part of the status of a VirtualMachine. The runner of a
// pod writes it to the cluster, and package host reports it for a machine without a
// cluster, in the same fields.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
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

// Transitions are the conditions with their last transition times, by type. A runner that starts
// continues those of the previous one.
type Transitions map[string]Condition

// NewTransitions returns the transitions of a stored status.
func NewTransitions(stored []Condition) Transitions {
	t := Transitions{}
	for _, c := range stored {
		t[c.Type] = c
	}
	return t
}

// Status is the runner's part of the status of a VirtualMachine: its fields are those of
// spec.VirtualMachineStatus, by the same names. The runner is not built with package spec, whose
// Kubernetes types cost memory with each machine.
type Status struct {
	CPUs int `json:"cpus"`
	// RAM is a quantity of bytes.
	RAM                   string            `json:"ram"`
	DeviceGroups          []int             `json:"deviceGroups,omitempty"`
	RunnerEnd             *RunnerEnd        `json:"runnerEnd,omitempty"`
	RunnerVersion         string            `json:"runnerVersion,omitempty"`
	MachineType           string            `json:"machineType,omitempty"`
	Accelerator           string            `json:"accelerator,omitempty"`
	Emulation             *Emulation        `json:"emulation,omitempty"`
	ConsoleClient         string            `json:"consoleClient,omitempty"`
	LoggedInUser          string            `json:"loggedInUser,omitempty"`
	HostName              string            `json:"hostName,omitempty"`
	Versions              *Versions         `json:"versions,omitempty"`
	OSInfo                map[string]string `json:"osinfo,omitempty"`
	Interfaces            []Interface       `json:"interfaces,omitempty"`
	ChangedDocuments      []ChangedDocument `json:"changedDocuments,omitempty"`
	Attachments           []Attachment      `json:"attachments,omitempty"`
	AttachmentKey         string            `json:"attachmentKey,omitempty"`
	Disks                 []Disk            `json:"disks,omitempty"`
	GuestPanics           int64             `json:"guestPanics,omitempty"`
	DisplayPasswordSerial int64             `json:"displayPasswordSerial,omitempty"`
	Conditions            []Condition       `json:"conditions"`
}

// RunnerEnd is how a machine ended, for an operator that finds no pod of it.
type RunnerEnd struct {
	Cause      string `json:"cause"`
	Message    string `json:"message"`
	QEMUStatus string `json:"qemuStatus,omitempty"`
}

// Emulation is why a machine runs without KVM.
type Emulation struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Versions are the versions of the programs that run the machine.
type Versions struct {
	QEMU string `json:"qemu"`
}

// Interface is a network interface of the guest.
type Interface struct {
	Name        string   `json:"name"`
	MAC         string   `json:"mac,omitempty"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
}

// ChangedDocument is a document that differs from the one with which the guest was started.
type ChangedDocument struct {
	Name    string `json:"name"`
	Missing bool   `json:"missing"`
}

// Attachment is a disk that is attached to the running machine, or is to be.
type Attachment struct {
	UID     string `json:"uid"`
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	Place   int    `json:"place,omitempty"`
	Message string `json:"message,omitempty"`
}

// Disk is a disk with its size in the guest, a quantity of bytes.
type Disk struct {
	Name    string `json:"name"`
	Size    string `json:"size"`
	Message string `json:"message,omitempty"`
}

// Of returns the runner's part of the status of a VirtualMachine, and its conditions. A condition
// that has the same status in before keeps its time; one without a time gets now.
func Of(s *runner.State, before Transitions, now time.Time) (Status, Transitions) {
	if s == nil { // no state was recorded
		s = &runner.State{Phase: runner.PhaseStopped}
	}
	part := Status{RAM: "0", DeviceGroups: slices.Clone(s.DeviceGroups)} // the next pod gets these groups, also after the end
	part.GuestPanics = int64(s.GuestPanics)                              // including a panic that ends the machine
	all := slices.Clone(s.StatusConditions)
	if s.Phase == runner.PhaseStopped {
		part.RunnerEnd = runnerEnd(s.Outcome)
	} else {
		part.describe(s)
		for _, c := range s.Conditions {
			// The operator reports this one.
			if c.Type != live.RestartRequired {
				all = append(all, Condition{
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
	part.Conditions = make([]Condition, len(all))
	for i, c := range all {
		// The definition dates the conditions of a new machine 1970.
		if old, ok := before[c.Type]; ok && old.Status == c.Status && old.LastTransitionTime.Unix() > 0 {
			c.LastTransitionTime = old.LastTransitionTime
		}
		after[c.Type] = c
		c.Message, c.LastTransitionTime = conditions.Bounded(c.Message), c.LastTransitionTime.UTC().Truncate(time.Second)
		part.Conditions[i] = c
	}
	return part, after
}

func (p *Status) describe(s *runner.State) {
	p.CPUs, p.RAM = s.CPUs, quantity(s.RAM)
	p.RunnerVersion, p.MachineType, p.Accelerator = s.RunnerVersion, s.MachineType, string(s.Accelerator)
	if s.Emulation.Reason != "" {
		p.Emulation = &Emulation{Reason: s.Emulation.Reason, Message: conditions.Bounded(s.Emulation.Message)}
	}
	p.ConsoleClient, p.LoggedInUser, p.HostName = s.ConsoleClient, s.Login.User, s.Guest.HostName
	if s.QEMUVersion != "" {
		p.Versions = &Versions{QEMU: s.QEMUVersion}
	}
	p.OSInfo, p.Interfaces = osInfo(s.Guest.OSInfo), interfaces(s.Guest.Interfaces)
	for _, d := range s.ChangedDocuments {
		p.ChangedDocuments = append(p.ChangedDocuments, ChangedDocument{Name: d.Name, Missing: d.Missing})
	}
	for _, a := range s.Attachments[:min(len(s.Attachments), maxAttachments)] {
		p.Attachments = append(p.Attachments, Attachment{UID: a.UID, Name: a.Name, Phase: string(a.Phase), Place: a.Place, Message: conditions.Bounded(a.Message)})
	}
	p.AttachmentKey = s.AttachmentKey
	for _, d := range s.Disks[:min(len(s.Disks), maxDisks)] {
		p.Disks = append(p.Disks, Disk{Name: d.Name, Size: quantity(d.Size), Message: conditions.Bounded(d.Message)})
	}
	p.DisplayPasswordSerial = s.DisplayPasswordSerial
}

func quantity(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

func runnerEnd(o *runner.Outcome) *RunnerEnd {
	if o == nil {
		return nil
	}
	end := &RunnerEnd{Cause: string(o.Cause), Message: conditions.Bounded(o.Message)}
	if len(o.QEMUStatus) <= maxQEMUStatus {
		end.QEMUStatus = o.QEMUStatus
	}
	return end
}

const (
	// maxAttachments and maxDisks are the definition's limits.
	maxAttachments = 64
	maxDisks       = 64
	// maxQEMUStatus is the definition's limit of an exit status, in bytes.
	maxQEMUStatus = 64
)

// osInfoKeys are the members of a guest agent's GuestOSInfo, all of them strings
// (qga/qapi-schema.json). Any others that a guest sends are dropped: the definition limits the size
// of a status and the form of its keys.
var osInfoKeys = []string{
	"id", "kernel-release", "kernel-version", "machine", "name",
	"pretty-name", "variant", "variant-id", "version", "version-id",
}

// maxOSInfo is the longest value in bytes; kernel versions, the longest real ones, have about 100.
const maxOSInfo = 256

func osInfo(answer json.RawMessage) map[string]string {
	var said map[string]any
	if json.Unmarshal(answer, &said) != nil || said == nil {
		return nil
	}
	out := map[string]string{}
	for _, key := range osInfoKeys {
		if text, ok := said[key].(string); ok {
			out[key] = strings.ToValidUTF8(text[:min(len(text), maxOSInfo)], "")
		}
	}
	return out
}

func interfaces(found []runner.GuestInterface) []Interface {
	var out []Interface
	for _, i := range found {
		if i.Name != "lo" {
			out = append(out, Interface{Name: i.Name, MAC: i.MAC, IPAddresses: i.Addresses})
		}
	}
	return out
}
