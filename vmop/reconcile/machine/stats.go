package machine

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statFacts are the times that become of a machine's statistics. Those that are not
// known are zero.
type statFacts struct {
	// now is the time of the observation: nothing has happened later.
	now time.Time
	// created is when the machine was made, asked when somebody last asked for a
	// start.
	created, asked time.Time
	// pod is when the pod was made, scheduled when a node took it.
	pod, scheduled time.Time
	// executes is since when the guest executes, and agent when its agent answered.
	executes, agent time.Time
}

// lateAgent is how long after the start of a guest its agent may come. One that
// answers later has probably answered before: the guest has rebooted, or the agent
// was started anew.
const lateAgent = 10 * time.Minute

// nextStats are the statistics of a machine whose phase becomes another one, or stays.
// They are to the second, as the times in a status are; old is nil for a machine that
// has none, and not changed.
func nextStats(old *spec.Stats, before, after string, f statFacts) *spec.Stats {
	s := &spec.Stats{}
	if old != nil {
		s = old.DeepCopy()
	}
	s.PhasesTransitions = nextTransitions(s.PhasesTransitions, before, after, f)
	if t := s.LastStartTime; t != nil {
		s.LastStartTime = instant(f.not(t.Time))
	}
	switch after {
	case spec.PhaseStopped, spec.PhasePending:
		s.LaunchTimeDuration = nil
	case spec.PhaseStarting:
		s.LaunchTimeDuration = &spec.LaunchTimeDuration{WaitingForDependenciesSeconds: between(wantedSince(s.PhasesTransitions, f), f.taken())}
	case spec.PhaseRunning:
		if l := s.LaunchTimeDuration; f.executes.IsZero() || f.pod.IsZero() ||
			l != nil && l.VirtualMachineStartingSeconds != nil && s.LastStartTime != nil && !s.LastStartTime.Time.Before(f.pod.Truncate(time.Second)) {
			break // it is known, or never will be
		}
		began := f.not(later(f.executes, f.taken()))
		s.LastStartTime = instant(began)
		s.LaunchTimeDuration = &spec.LaunchTimeDuration{
			WaitingForDependenciesSeconds: between(wantedSince(s.PhasesTransitions, f), f.taken()),
			VirtualMachineStartingSeconds: between(f.taken(), began),
		}
	}
	if l := s.LaunchTimeDuration; l != nil && l.GuestOSAgentStartingSeconds == nil && s.LastStartTime != nil && after == spec.PhaseRunning {
		l.GuestOSAgentStartingSeconds = agentAfter(s.LastStartTime.Time, f.not(f.agent))
	}
	return s
}

// nextTransitions adds a phase to those that there were. A machine that is new was
// Pending from the beginning.
func nextTransitions(old []spec.PhaseTransition, before, after string, f statFacts) []spec.PhaseTransition {
	all := slices.Clone(old)
	for i := range all {
		all[i].Time = *instant(f.not(all[i].Time.Time)) // the clock of the operator before may have been ahead
	}
	if before == "" && len(all) == 0 && !f.created.IsZero() && (after == spec.PhaseStarting || after == spec.PhaseRunning || after == spec.PhasePending) {
		all = append(all, spec.PhaseTransition{Phase: spec.PhasePending, Time: *instant(f.not(f.created))})
	}
	if last := len(all) - 1; after != before && (last < 0 || all[last].Phase != after) {
		all = append(all, spec.PhaseTransition{Phase: after, Time: *instant(f.now)})
	}
	return slices.Clip(all[max(0, len(all)-spec.MaxPhasesTransitions):])
}

// wantedSince is since when the machine has been about to run; zero if nobody knows.
func wantedSince(all []spec.PhaseTransition, f statFacts) time.Time {
	if n := len(all); n > 0 && all[n-1].Phase == spec.PhaseRunning {
		if all[n-1].Time.Time.Before(f.pod.Truncate(time.Second)) {
			return time.Time{} // another pod was there then, and nobody saw this one come
		}
		all = all[:n-1]
	}
	var since, former time.Time
	for i, t := range slices.Backward(all) {
		if t.Phase != spec.PhasePending && t.Phase != spec.PhaseStarting {
			former = t.Time.Time
			break
		}
		if i == 0 && len(all) >= spec.MaxPhasesTransitions-1 {
			return time.Time{} // it may have begun with one that is forgotten
		}
		since = t.Time.Time
	}
	if asked := f.not(f.asked); !asked.IsZero() && !asked.Before(former) && (since.IsZero() || asked.Before(since)) {
		return asked
	}
	return since
}

// taken is when a node took the pod, as far as that is known.
func (f statFacts) taken() time.Time { return f.not(later(f.scheduled, f.pod)) }

// not is a time, but none that is not over yet.
func (f statFacts) not(t time.Time) time.Time {
	if t.After(f.now) {
		return f.now
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// between is how many seconds lie between two times, none if the clocks of those who
// noted them disagree; nil if one of them is not known.
func between(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	return new(max(0, int64(to.Sub(from)/time.Second)))
}

// agentAfter is how many seconds after its guest began to execute an agent answered;
// nil if it has not, or if that is not the first time.
func agentAfter(began, answered time.Time) *int64 {
	if answered.IsZero() || answered.Before(began) || answered.Sub(began) > lateAgent {
		return nil
	}
	return between(began, answered)
}

func instant(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}

// LaunchOf is how long the start of a machine took, by its status: the operator notes
// when the guest agent answered with its next report only. It is nil if nothing is known
// of it.
func LaunchOf(s *spec.VirtualMachineStatus) *spec.LaunchTimeDuration {
	if s.Stats == nil || s.Stats.LaunchTimeDuration == nil {
		return nil
	}
	l := s.Stats.LaunchTimeDuration.DeepCopy()
	if b := spec.FindCondition(s.Conditions, spec.ConditionBooted); l.GuestOSAgentStartingSeconds == nil && s.Stats.LastStartTime != nil && s.Phase == spec.PhaseRunning &&
		b != nil && b.Status == metav1.ConditionTrue {
		l.GuestOSAgentStartingSeconds = agentAfter(s.Stats.LastStartTime.Time, b.LastTransitionTime.Time)
	}
	return l
}

// stats are the machine's statistics if its phase is to be this one.
func (d *decision) stats(phase string) *spec.Stats {
	f := statFacts{now: d.s.Now, created: d.s.VM.CreationTimestamp.Time}
	if p := d.powered; p != nil && p.Policy != "" && p.State == spec.StateRunning {
		f.asked = p.Since.Time
	}
	if d.pod.state == podPending || d.pod.state == podRunning {
		f.pod = d.pod.pod.CreationTimestamp.Time
		f.scheduled = d.pod.scheduled()
	}
	c := spec.FindCondition(d.stored.Conditions, spec.ConditionRunning)
	if d.executing() && c.Status == metav1.ConditionTrue && c.Reason != spec.ReasonNodeReturned {
		f.executes = c.LastTransitionTime.Time
	}
	if c := spec.FindCondition(d.stored.Conditions, spec.ConditionBooted); c != nil && c.Status == metav1.ConditionTrue {
		f.agent = c.LastTransitionTime.Time
	}
	return nextStats(d.stored.Stats, d.stored.Phase, phase, f)
}
