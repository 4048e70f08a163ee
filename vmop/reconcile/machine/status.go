package machine

import (
	"reflect"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operatorStatus is the operator's part of the status of a machine, with the fields of
// [spec.VirtualMachineStatus]. That type omits false and zero values, which a writer of its own
// part must not: with server-side apply an omitted field is no longer owned and keeps another
// writer's value.
type operatorStatus struct {
	Phase   string `json:"phase"`
	Created bool   `json:"created"`
	Ready   bool   `json:"ready"`
	// NodeName and IPAddress are nil if they are empty and were; see [overwriting].
	NodeName           *string `json:"nodeName,omitempty"`
	IPAddress          *string `json:"ipAddress,omitempty"`
	ObservedGeneration int64   `json:"observedGeneration"`
	// RestartAwaitingChanges, BlockDeviceRefs and VirtualMachinePods are nil if there are none
	// and were none.
	RestartAwaitingChanges []spec.AwaitingChange    `json:"restartAwaitingChanges,omitzero"`
	LastEnd                *spec.MachineEnd         `json:"lastEnd,omitempty"`
	Power                  *spec.Power              `json:"power,omitempty"`
	Waits                  []spec.Wait              `json:"waits,omitempty"`
	Claims                 []spec.MachineClaim      `json:"claims,omitempty"`
	BlockDeviceRefs        []spec.BlockDeviceStatus `json:"blockDeviceRefs,omitzero"`
	VirtualMachinePods     []spec.VirtualMachinePod `json:"virtualMachinePods,omitzero"`
	Stats                  *spec.Stats              `json:"stats,omitempty"`
	Conditions             []reportedCondition      `json:"conditions"`
}

// stoppedStatus is what the operator reports in the runner's name for a machine that does not
// run: the runner's part, as in package vmstatus, without what only a running machine has.
type stoppedStatus struct {
	CPUs int32             `json:"cpus"`
	RAM  resource.Quantity `json:"ram"`
	// DeviceGroups are for the next pod.
	DeviceGroups []int64 `json:"deviceGroups,omitempty"`
	// RunnerEnd is kept: the operator may not have read it yet.
	RunnerEnd *spec.RunnerEnd `json:"runnerEnd,omitempty"`
	// GuestPanics are those since the machine was last started.
	GuestPanics int64 `json:"guestPanics,omitempty"`
	// The others are nil, or empty if something must be overwritten; see [overwriting].
	RunnerVersion *string             `json:"runnerVersion,omitempty"`
	ConsoleClient *string             `json:"consoleClient,omitempty"`
	LoggedInUser  *string             `json:"loggedInUser,omitempty"`
	Conditions    []reportedCondition `json:"conditions"`
}

// reportedCondition is a [spec.Condition] without omitted fields.
type reportedCondition struct {
	Type               string                 `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	ObservedGeneration int64                  `json:"observedGeneration"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
}

func reportedConditions(conditions []spec.Condition, types []string) []reportedCondition {
	out := make([]reportedCondition, 0, len(types))
	for _, t := range types {
		// A machine without a class has none about it.
		if c := spec.FindCondition(conditions, t); c != nil {
			out = append(out, reportedCondition(*c))
		}
	}
	return out
}

// overwriting returns a text for a status. An empty one is omitted, unless it must overwrite
// another writer's: omitting removes only what one owns.
func overwriting(old, next string) *string {
	if old == "" && next == "" {
		return nil
	}
	return &next
}

func overwritingAll[T any](old, next []T) []T {
	switch {
	case len(next) > 0:
		return next
	case len(old) > 0:
		return []T{}
	}
	return nil
}

// operatorFields are the fields of a status that only the operator writes, except the conditions,
// which have an author each.
var operatorFields = slices.DeleteFunc(fieldNames(reflect.TypeFor[operatorStatus]()), func(name string) bool { return name == "conditions" })

func fieldNames(of reflect.Type) []string {
	out := make([]string, of.NumField())
	for i := range out {
		out[i], _, _ = strings.Cut(of.Field(i).Tag.Get("json"), ",")
	}
	return out
}
