package machine

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statFacts are the times that a machine's statistics are computed from; zero if unknown.
type statFacts struct {
	// now is the time of the observation: nothing has happened later.
	now time.Time
	// created is when the machine was created, asked when a start was last requested.
	created, asked time.Time
	// pod is when the pod was created, scheduled when it was scheduled.
	pod, scheduled time.Time
	// executes is since when the guest executes, agent when its agent answered.
	executes, agent time.Time
}

// lateAgent is how long after a guest's start its agent may first answer. A later one has
// probably answered before: the guest has rebooted, or the agent was restarted.
const lateAgent = 10 * time.Minute

// nextStats returns the statistics of a machine whose phase changes or stays, to the second, as
// all times in a status; old is nil for a machine without any, and not changed.
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
			break // known, or never will be
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

// nextTransitions appends a phase. A new machine was Pending from the beginning.
func nextTransitions(old []spec.PhaseTransition, before, after string, f statFacts) []spec.PhaseTransition {
	all := slices.Clone(old)
	for i := range all {
		all[i].Time = *instant(f.not(all[i].Time.Time)) // the clock of the former operator may have been ahead
	}
	if before == "" && len(all) == 0 && !f.created.IsZero() && (after == spec.PhaseStarting || after == spec.PhaseRunning || after == spec.PhasePending) {
		all = append(all, spec.PhaseTransition{Phase: spec.PhasePending, Time: *instant(f.not(f.created))})
	}
	if last := len(all) - 1; after != before && (last < 0 || all[last].Phase != after) {
		all = append(all, spec.PhaseTransition{Phase: after, Time: *instant(f.now)})
	}
	return slices.Clip(all[max(0, len(all)-spec.MaxPhasesTransitions):])
}

func wantedSince(all []spec.PhaseTransition, f statFacts) time.Time {
	if n := len(all); n > 0 && all[n-1].Phase == spec.PhaseRunning {
		if all[n-1].Time.Time.Before(f.pod.Truncate(time.Second)) {
			return time.Time{} // another pod existed then, and the creation of this one was not observed
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
			return time.Time{} // it may have begun with a dropped transition
		}
		since = t.Time.Time
	}
	if asked := f.not(f.asked); !asked.IsZero() && !asked.Before(former) && (since.IsZero() || asked.Before(since)) {
		return asked
	}
	return since
}

func (f statFacts) taken() time.Time { return f.not(later(f.scheduled, f.pod)) }

// not returns t, but no time in the future.
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

// between returns the seconds between two times, 0 if the clocks that noted them disagree; nil if
// one is unknown.
func between(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	return new(max(0, int64(to.Sub(from)/time.Second)))
}

// agentAfter returns how many seconds after its guest began to execute an agent answered; nil if
// it has not, or not for the first time.
func agentAfter(began, answered time.Time) *int64 {
	if answered.IsZero() || answered.Before(began) || answered.Sub(began) > lateAgent {
		return nil
	}
	return between(began, answered)
}

func instant(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}

// LaunchOf returns how long the start of a machine took, by its status: the operator records the
// guest agent's answer only with its next report. It is nil if nothing is known.
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
