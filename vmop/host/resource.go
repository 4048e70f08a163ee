package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
	"github.com/vmop/sdk/vmop/spec"
)

// CauseRunnerDied is the cause in status.runnerEnd of a machine whose runner and QEMU were killed,
// so that no runner could report its end.
const CauseRunnerDied = "runner-died"

// Resource returns the machine in the form that it would have in a cluster: its metadata and
// specification are its manifest's, and its status has the same fields as in a cluster.
//
// The phases are those of package spec. A host's other statuses are reasons of the condition Ready:
// Failed and RunnerDied of a machine in phase Stopped, whose status.runnerEnd has the details, and
// Orphaned of one in phase Unknown. metadata.creationTimestamp is the creation time of the
// machine's directory, if the file system has it. Unknown times of conditions are 1970, as in a
// cluster.
//
// Also with an error, which is about what could not be read, the machine is returned: its
// specification is empty if that was the manifest.
func (m *Machine) Resource() (*spec.VirtualMachine, error) {
	if m == nil {
		return nil, errNoMachine
	}
	vm := &spec.VirtualMachine{}
	o, err := m.Object()
	switch {
	case err == nil:
		o.VirtualMachine.DeepCopyInto(vm)
	case errors.Is(err, ErrNoManifest): // it is being created, or was run by an older version
		err = nil
	}
	vm.SetGroupVersionKind(spec.GroupVersion().WithKind(spec.KindVirtualMachine))
	vm.Namespace, vm.Name = m.Namespace, m.Name
	if vm.CreationTimestamp.IsZero() {
		vm.CreationTimestamp = m.made()
	}
	status, serr := m.statusOf()
	if m.Running() {
		waiting, werr := m.Awaiting()
		if werr == nil {
			status.RestartAwaitingChanges = awaited(waiting)
		}
		// That an older version has started it is no error of the machine.
	}
	vm.Status = status
	return vm, errors.Join(err, serr)
}

func (m *Machine) made() metav1.Time {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, m.Data, 0, unix.STATX_BTIME, &s); err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(s.Btime.Sec, 0).UTC())
}

func phaseOf(s Status) string {
	switch s {
	case StatusRunning:
		return spec.PhaseRunning
	case StatusPaused:
		return spec.PhasePaused
	case StatusStopped, StatusFailed, StatusDied:
		return spec.PhaseStopped
	case Status(runner.PhaseTerminating):
		return spec.PhaseStopping
	case Status(runner.PhaseInitializing), Status(runner.PhaseStarting):
		return spec.PhaseStarting
	}
	return spec.PhaseUnknown
}

func (s Status) reason() string {
	if s == StatusDied {
		return "RunnerDied"
	}
	if s == "" { // the state cannot be read
		return "Unknown"
	}
	return string(s)
}

func (m *Machine) statusOf() (spec.VirtualMachineStatus, error) {
	s := m.State
	died := m.Status == StatusDied
	if !m.Running() { // also of one that was killed: its own report is out of date
		s.Phase = runner.PhaseStopped
	}
	if died {
		s.StatusConditions, s.Conditions = nil, nil
	}
	unknown := time.Unix(0, 0).UTC()
	part, _ := vmstatus.Of(&s, nil, unknown)
	var out spec.VirtualMachineStatus
	data, err := json.Marshal(part)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return out, fmt.Errorf("the state of %s: %w", m.FullName(), err)
	}
	out.Phase, out.Ready = phaseOf(m.Status), m.Ready() == live.True
	out.ObservedGeneration = s.Generation
	if died {
		out.RunnerEnd = &spec.RunnerEnd{Cause: CauseRunnerDied, Message: m.Message()}
	}
	ready := spec.Condition{
		Type: conditions.Ready, Status: metav1.ConditionStatus(m.Ready()), Reason: m.Status.reason(), Message: m.whyReady(),
		LastTransitionTime: metav1.NewTime(unknown),
	}
	out.Conditions = append([]spec.Condition{ready}, out.Conditions...)
	for _, c := range s.Conditions {
		if c.Type == live.RestartRequired { // in a cluster it is the operator's
			out.Conditions = append(out.Conditions, spec.Condition{
				Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
				LastTransitionTime: metav1.NewTime(unknown), ObservedGeneration: s.Generation,
			})
		}
	}
	var stats spec.Stats
	// A runner does not count a pause as a phase, and the time of a kill is unknown.
	if !s.Since.IsZero() && m.Status != StatusPaused && m.Status != StatusOrphaned && !died {
		stats.PhasesTransitions = []spec.PhaseTransition{{Phase: out.Phase, Time: metav1.NewTime(s.Since.UTC().Truncate(time.Second))}}
	}
	if s.Started != nil {
		stats.LastStartTime = new(metav1.NewTime(s.Started.UTC().Truncate(time.Second)))
	}
	if stats.PhasesTransitions != nil || stats.LastStartTime != nil {
		out.Stats = &stats
	}
	return out, nil
}

func (m *Machine) whyReady() string {
	switch {
	case m.Ready() == live.True:
		return "the guest executes"
	case m.Message() != "":
		return m.Message()
	case m.Status == StatusPaused:
		return "the guest is paused"
	}
	return ""
}

func awaited(found []changes.Change) []spec.AwaitingChange {
	out := make([]spec.AwaitingChange, len(found))
	for i, c := range found {
		out[i] = c.Awaiting()
	}
	return out
}
