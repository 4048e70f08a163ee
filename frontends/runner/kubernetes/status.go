package kubernetes

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/reconcile/live"
	"github.com/vmop/sdk/vmop/runner"
)

// Condition is a condition of the machine's status.
type Condition = live.StatusCondition

// transitions knows since when each condition has its status, by its type. A
// runner that starts takes up where the one before left off.
type transitions map[string]Condition

func newTransitions(stored []Condition) transitions {
	t := transitions{}
	for _, c := range stored {
		t[c.Type] = c
	}
	return t
}

// Status is the runner's part of the status of a VirtualMachine, as JSON values,
// and the conditions in it. Of conditions that have the status that they had
// before, the times stay; those that have no time of their own get now.
func Status(s *runner.State, before transitions, now time.Time) (map[string]any, transitions) {
	stopped := s.Phase == runner.PhaseStopped
	part := map[string]any{"cpus": int64(s.CPUs), "ram": resource.NewQuantity(s.RAM, resource.BinarySI).String()}
	conditions := slices.Clone(s.StatusConditions)
	if stopped {
		part["cpus"], part["ram"] = int64(0), "0"
	} else {
		text := func(key, value string) {
			if value != "" {
				part[key] = value
			}
		}
		text("runnerVersion", s.RunnerVersion)
		text("machineType", s.MachineType)
		text("accelerator", string(s.Accelerator))
		text("consoleClient", s.ConsoleClient)
		text("loggedInUser", s.Login.User)
		text("hostName", s.Guest.HostName)
		if s.QEMUVersion != "" {
			part["versions"] = map[string]any{"qemu": s.QEMUVersion}
		}
		var osinfo map[string]any
		if json.Unmarshal(s.Guest.OSInfo, &osinfo) == nil && osinfo != nil {
			part["osinfo"] = osinfo
		}
		if interfaces := interfaces(s.Guest.Interfaces); interfaces != nil {
			part["interfaces"] = interfaces
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
	list := make([]any, len(conditions))
	for i, c := range conditions {
		if old, ok := before[c.Type]; ok && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		after[c.Type] = c
		list[i] = conditionJSON(c)
	}
	part["conditions"] = list
	return part, after
}

func conditionJSON(c Condition) map[string]any {
	m := map[string]any{
		"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
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
