package pool

import (
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot is all that a decision about the assignments of one namespace depends on. Nothing in
// it is changed.
type Snapshot struct {
	// Machines are all of the namespace that are assigned to a user.
	Machines []spec.VirtualMachine
	// Pools are all of the namespace that can be decoded.
	Pools []spec.VmPool
	// Unreadable are those that cannot.
	Unreadable []Unreadable
	// Members are all machines of the namespace that name a pool, as far as they count for the
	// sizes of pools.
	Members []Member
	// Failures are writes that the API server refused; see [reconcile.Failure].
	Failures []reconcile.Failure
	// Now is the time of the observation.
	Now time.Time
}

// Member is what counts of a machine for the sizes of pools.
type Member struct {
	// Pools are those that the machine names.
	Pools []string
	// Assigned is the pool from which the machine is assigned, empty if it is not.
	Assigned string
	// Connected: a viewer is connected to its console. Goes: it is being deleted.
	Connected, Goes bool
}

// Unreadable is a stored pool that the types cannot decode. Only its existence is known: its
// assignments stay, and the other pools are not affected.
type Unreadable struct {
	Pool metav1.ObjectMeta
	// Err is why the pool cannot be decoded.
	Err error
	// Told is true if an event has reported this version of the pool. A pool's status has no
	// field for it.
	Told bool
}

func (u *Unreadable) event() reconcile.Event {
	return reconcile.Event{
		About: &corev1.ObjectReference{
			APIVersion: names.Group + "/" + names.Version, Kind: names.KindVMPool,
			Namespace: u.Pool.Namespace, Name: u.Pool.Name, UID: u.Pool.UID,
		},
		Type: corev1.EventTypeWarning, Reason: conditions.ReasonInvalidSpecification, Action: "Reconcile",
		Note: u.Err.Error() + "; until this is corrected, nobody gets a machine of the pool and no user is logged in by it. Assignments stay",
	}
}
