package pool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
)

// StatusManager is the field manager that owns status.assignment.
const StatusManager = names.AssignmentManager

// Update is a new value of status.assignment.
type Update struct {
	// Namespace, Name and UID are the machine's.
	Namespace, Name string
	UID             types.UID
	// ResourceVersion is that of the machine on which this was decided. The write has to fail
	// with a conflict if the machine has another by now.
	ResourceVersion string
	// Assignment is the new assignment; nil removes it.
	Assignment *spec.Assignment
	// Cause is the reason, for a log or an event.
	Cause Cause
}

// Cause is why an assignment changes.
type Cause string

// The causes.
const (
	// Requested means that a user asked for the machine.
	Requested Cause = "Requested"
	// Used means that the assigned user connected to the console or left it.
	Used Cause = "Used"
	// PoolDeleted means that the pool of the assignment was deleted.
	PoolDeleted Cause = "PoolDeleted"
	// Expired means that the pool's retention has passed since the last use.
	Expired Cause = "Expired"
	// Duplicate means that the user has another machine of the same pool.
	Duplicate Cause = "Duplicate"
)

func newUpdate(vm *spec.VirtualMachine, a *spec.Assignment, cause Cause) Update {
	return Update{
		Namespace: vm.Namespace, Name: vm.Name, UID: vm.UID, ResourceVersion: vm.ResourceVersion,
		Assignment: a, Cause: cause,
	}
}

// Patch returns the JSON merge patch (application/merge-patch+json) for the subresource status of
// the machine that writes the update, to be sent with the field manager [StatusManager]. The API
// server answers 409 Conflict if the machine has another resource version or another UID. It
// fails without the resource version: such a write could not detect a conflict.
func (u *Update) Patch() ([]byte, error) {
	if u.ResourceVersion == "" {
		return nil, fmt.Errorf("assignment of the virtual machine %s/%s: metadata.resourceVersion is missing: decide on a machine as it is stored", u.Namespace, u.Name)
	}
	return json.Marshal(u.Action().Body())
}

// StartPatch returns the JSON merge patch (application/merge-patch+json) that starts a machine
// for [Decision.Start]. The API server answers 409 Conflict if the machine has another resource
// version than the given one, which is that of the machine as it was last written or read.
//
// It is for machines without a run policy. For one with a policy set the annotation
// [names.AnnotationPowerRequest].
func StartPatch(resourceVersion string) ([]byte, error) {
	if resourceVersion == "" {
		return nil, errors.New("start of a virtual machine: metadata.resourceVersion is missing: it could by now be somebody else's")
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"spec":     map[string]any{"vm": map[string]any{"state": spec.StateRunning}},
	})
}

// Action returns the write of an update.
func (u *Update) Action() reconcile.Patch {
	var assignment any
	if u.Assignment != nil {
		assignment = u.Assignment
	}
	return reconcile.Patch{
		Kind: names.KindVirtualMachine, Subresource: "status", Name: u.Name, UID: u.UID, ResourceVersion: u.ResourceVersion,
		Manager: StatusManager, Fields: map[string]any{"status": map[string]any{"assignment": assignment}},
	}
}
