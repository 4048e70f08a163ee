package operation

import (
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Snapshot is all that a decision about the operations of one machine depends on. A nil pointer
// means known to be absent. Nothing in it is changed.
type Snapshot struct {
	// Machine is the machine that the operations name, with a trusted status.
	Machine *spec.VirtualMachine
	// Unreadable is why there is no Machine although one is stored.
	Unreadable string
	// Fresh is true if the machine was read at the API server after the pod was observed; see
	// [NeedsFresh].
	Fresh bool
	// Pod is the pod that the next steps of the machine are about, see [machine.Snapshot.Pod].
	Pod *corev1.Pod
	// Operations are all that name the machine.
	Operations []spec.VirtualMachineOperation
	// Cleanup is when finished ones are deleted.
	Cleanup Cleanup
	// Failures are writes that the API server refused.
	Failures []reconcile.Failure
	// Now is the time of the observation.
	Now time.Time
}

// Cleanup is which finished operations of a machine are kept.
type Cleanup struct {
	// Keep is how many of them at most; 0 means 10.
	Keep int
	// For is for how long at most; 0 means a day.
	For time.Duration
}

// How many finished operations of a machine are kept, and how long, by default: Deckhouse's
// values.
const (
	defaultKeep = 10
	defaultFor  = 24 * time.Hour
)

func (c Cleanup) keep() int {
	if c.Keep <= 0 {
		return defaultKeep
	}
	return c.Keep
}

func (c Cleanup) age() time.Duration {
	if c.For <= 0 {
		return defaultFor
	}
	return c.For
}

// Time limits of an operation.
const (
	// settling is how long an operation waits for what no cache shows yet: the machine itself,
	// its first status, its pod.
	settling  = 15 * time.Second
	startTime = 10 * time.Minute
	// stopReserve is how long a machine may take to stop, beyond its guest's time.
	stopReserve = objects.TerminationReserve*time.Second + 2*time.Minute
	// settleRetry is the retry interval for what no cache shows yet.
	settleRetry = time.Second
)

func timeFor(o *spec.VirtualMachineOperation, vm *spec.VirtualMachine) time.Duration {
	stop := stopReserve
	if !o.Spec.Force {
		stop += time.Duration(vm.Spec.ShutdownSeconds()) * time.Second
	}
	switch o.Spec.Type {
	case spec.OperationStart:
		// It may still be stopping.
		if vm.Status.Phase == spec.PhaseStopping {
			return stop + startTime
		}
		return startTime
	case spec.OperationStop:
		return stop
	}
	return stop + startTime
}

// NeedsFresh reports whether a decision depends on whether the machine executes in the pod of the
// snapshot, which two caches together cannot show: a status may still be about the former pod.
// Then read the machine once more, at the API server, and set Fresh.
func NeedsFresh(s Snapshot) bool {
	if s.Machine == nil || s.Pod == nil || s.Machine.Status.Phase != spec.PhaseRunning {
		return false
	}
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Spec.Type == spec.OperationRestart && o.Status.Phase == spec.OperationInProgress && o.DeletionTimestamp == nil && renewed(o, s.Machine, s.Pod) {
			return true
		}
	}
	return false
}

// renewed reports whether the pod was created because of a restart, or after it: it has the
// request.
func renewed(o *spec.VirtualMachineOperation, vm *spec.VirtualMachine, pod *corev1.Pod) bool {
	request := o.Status.Request
	return pod != nil && pod.DeletionTimestamp == nil && pod.UID != o.Status.PodUID &&
		(pod.Annotations[names.AnnotationPowerRequest] == request || vm.Annotations[names.AnnotationPowerRequest] != request)
}

func requestOf(o *spec.VirtualMachineOperation, verb machine.Verb) string {
	return machine.Request(verb, mark(o))
}

// mark identifies an operation in a request to the machine.
func mark(o *spec.VirtualMachineOperation) string { return "operation/" + string(o.UID) }
