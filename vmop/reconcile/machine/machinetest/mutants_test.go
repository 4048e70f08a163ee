package machinetest

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mutant is a decision with one fault, and the promise that must notice it. The
// faults are those of the usual mistakes: a guard that was forgotten, which is
// the same as not seeing what it guards against, and a plan that is wrong.
type mutant struct {
	fault   string
	promise string
	// or are other promises that may notice it first, with "; " between them.
	or     string
	before func(*machine.Snapshot)
	after  func(*machine.Snapshot, *reconcile.Plan)
}

// others are the other promises that may notice the fault.
func (m *mutant) others() []string {
	return slices.DeleteFunc(strings.Split(m.or, "; "), func(p string) bool { return p == "" })
}

// without is a mutant's plan without some actions.
func without[A reconcile.Action](_ *machine.Snapshot, p *reconcile.Plan) {
	p.Actions = slices.DeleteFunc(p.Actions, func(a reconcile.Action) bool { _, is := a.(A); return is })
}

// each is a mutant's plan with some actions changed.
func each[A reconcile.Action](change func(*machine.Snapshot, A) reconcile.Action) func(*machine.Snapshot, *reconcile.Plan) {
	return func(s *machine.Snapshot, p *reconcile.Plan) {
		for i, a := range p.Actions {
			if a, is := a.(A); is {
				p.Actions[i] = change(s, a)
			}
		}
	}
}

// conditions is a mutant's plan with the conditions changed.
func conditions(change func(*machine.Snapshot, map[string]any)) func(*machine.Snapshot, *reconcile.Plan) {
	return func(s *machine.Snapshot, p *reconcile.Plan) {
		for _, st := range p.Statuses {
			for _, c := range st.Status["conditions"].([]any) {
				change(s, c.(map[string]any))
			}
		}
	}
}

// waits is a mutant's plan with what the status says of waits changed.
func waits(change func(*machine.Snapshot, map[string]any)) func(*machine.Snapshot, *reconcile.Plan) {
	return func(s *machine.Snapshot, p *reconcile.Plan) {
		for _, st := range p.Statuses {
			all, _ := st.Status["waits"].([]any)
			for _, w := range all {
				change(s, w.(map[string]any))
			}
		}
	}
}

// stats is a mutant's plan with the statistics changed.
func stats(change func(*machine.Snapshot, map[string]any)) func(*machine.Snapshot, *reconcile.Plan) {
	return func(s *machine.Snapshot, p *reconcile.Plan) {
		for _, st := range p.Statuses {
			if all, has := st.Status["stats"].(map[string]any); has {
				change(s, all)
			}
		}
	}
}

// rename makes the phase of a status another one.
func rename(status map[string]any, phase string) {
	status["phase"] = phase
	if s, has := status["stats"].(map[string]any); has {
		s["phasesTransitions"] = []any{map[string]any{"phase": phase, "time": "2020-01-01T00:00:00Z"}}
		delete(s, "launchTimeDuration")
	}
}

// pretendConfig lets a snapshot's configuration be what it should be.
func pretendConfig(s *machine.Snapshot) {
	clean := *s
	clean.ConfigMap = nil
	for _, a := range machine.Decide(clean).Actions {
		if c, is := a.(reconcile.Create); is && c.Object.GetName() == s.ConfigMap.Name {
			if cm, is := c.Object.(*corev1.ConfigMap); is {
				s.ConfigMap.Data = cm.Data
			}
		}
	}
}

// setPod makes a pod the one that the steps of a snapshot's machine are about; nil takes
// that away.
func setPod(s *machine.Snapshot, pod *corev1.Pod) {
	if has := s.Pod(); has != nil {
		uid := has.UID
		s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool { return p.UID == uid })
	}
	if pod != nil {
		s.Pods = append(s.Pods, *pod)
	}
}

// noOthers takes away all other pods.
func noOthers(s *machine.Snapshot) {
	own := s.Pod()
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool { return own == nil || p.UID != own.UID })
}

// faults are the mutants of a kind of worlds, and in how many worlds each is noticed.
type faults struct {
	mutants []mutant
	worlds  uint64
}

// allFaults are the faults of each kind of worlds.
func allFaults() map[string]faults {
	return map[string]faults{
		"machines": {machineMutants(), 400}, "policies": {policyMutants(), 400}, "resizing": {resizingMutants(), 400}, "claims": {claimMutants(), 400},
		"deletion": {deletionMutants(), 600}, "labels": {labelMutants(), 400}, "orphans": {orphanMutants(), 600}, "classes": {classMutants(), 400},
		"user data": {userDataMutants(), 400}, "documents": {documentMutants(), 400}, "names": {nameMutants(), 400}, "hot": {hotMutants(), 400},
		"held": {heldMutants(), 400},
	}
}

func machineMutants() []mutant {
	return []mutant{
		{
			fault: "the pods of others are not looked at", promise: "a disk has one machine",
			before: noOthers,
		},
		{
			fault: "a pod that is being deleted counts as gone from the disks", promise: "a disk has one machine",
			before: func(s *machine.Snapshot) {
				own := s.Pod()
				s.Pods = slices.DeleteFunc(s.Pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil && (own == nil || p.UID != own.UID) })
			},
		},
		{
			fault: "the pod has a name of its own each time", promise: "at most one guest of a machine executes", or: "what is wanted is reached; what was refused is not repeated at once; the runner of the active pod may report",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil && s.Pod().DeletionTimestamp != nil {
					setPod(s, nil)
				}
			},
			after: each(func(s *machine.Snapshot, a reconcile.Create) reconcile.Action {
				if pod, is := a.Object.(*corev1.Pod); is {
					pod.Name += "-" + s.VM.ResourceVersion
				}
				return a
			}),
		},
		{
			fault: "a pod in deletion is deleted again", promise: "a pod is deleted again only to hurry",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil {
					s.Pod().DeletionTimestamp = nil
				}
			},
		},
		{
			fault: "a machine is let go while its guest shuts down", promise: "a machine is seen until its guest has ended",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil && s.VM.DeletionTimestamp != nil && s.Pod().DeletionTimestamp != nil {
					setPod(s, nil)
				}
			},
		},
		{
			fault: "the pod of a deleted machine is left to others", promise: "a machine that is deleted goes",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if s.VM.DeletionTimestamp != nil {
					without[reconcile.DeletePod](s, p)
				}
			},
		},
		{
			fault: "a deleted machine is held for ever", promise: "a machine that is deleted goes",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if s.VM.DeletionTimestamp != nil {
					without[reconcile.SetFinalizers](s, p)
				}
			},
		},
		{
			fault: "a pod is made for a machine that nothing holds", promise: "a machine with a pod is held",
			before: func(s *machine.Snapshot) {
				if s.VM.DeletionTimestamp == nil {
					s.VM.Finalizers = []string{names.FinalizerMachine}
				}
			},
		},
		{
			fault: "the pod of a former machine is taken for this one's", promise: "pods of others are left alone",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil {
					s.Pod().OwnerReferences[0].UID = s.VM.UID
				}
			},
		},
		{
			fault: "a pod is deleted whatever its UID", promise: "a pod is deleted by its UID",
			after: each(func(_ *machine.Snapshot, a reconcile.DeletePod) reconcile.Action { a.UID = ""; return a }),
		},
		{
			fault: "a pod is deleted with the grace period that it was made with", promise: "the guest has the time that it was given",
			after: each(func(_ *machine.Snapshot, a reconcile.DeletePod) reconcile.Action { a.GraceSeconds = 930; return a }),
		},
		{
			fault: "a machine that should stop is left running", promise: "what is wanted is reached",
			after: without[reconcile.DeletePod],
		},
		{
			fault: "a stopped machine is started", promise: "what is wanted is reached", or: "a phase says what is wanted",
			before: func(s *machine.Snapshot) { s.VM.Spec.VM.State = spec.StateRunning },
		},
		{
			fault: "a running machine is stopped for a change", promise: "a pod that runs as it should is left alone",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if s.Pod() != nil && len(p.Actions) > 0 && s.Pod().DeletionTimestamp == nil && s.Pod().Status.Phase == corev1.PodRunning {
					p.Actions = append(p.Actions, reconcile.DeletePod{Name: "web", UID: s.Pod().UID, GraceSeconds: int64(*s.VM.Spec.VM.PowerdownTimeout) + 30})
				}
			},
		},
		{
			fault: "the pod does not wait for the claims", promise: "a pod finds what it needs",
			before: func(s *machine.Snapshot) {
				for _, n := range []string{"web-runner-data", "web-system-disk"} {
					s.Claims = append(s.Claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
						Name: n, Annotations: map[string]string{names.AnnotationOrigin: string(machineconfig.OriginVMOP)},
					}})
				}
			},
		},
		{
			fault: "who made the machine is noted again", promise: "who made a machine is noted once",
			before: func(s *machine.Snapshot) {
				s.Claims = slices.Clone(s.Claims)
				for i := range s.Claims { // as if the note was not seen
					c := s.Claims[i].DeepCopy()
					delete(c.Annotations, names.AnnotationOrigin)
					s.Claims[i] = *c
				}
			},
		},
		{
			fault: "VM-Operator's machines are taken for new ones", promise: "who made a machine is noted as it was",
			after: each(func(_ *machine.Snapshot, a reconcile.UpdateClaim) reconcile.Action {
				if a.Annotations[names.AnnotationOrigin] != "" {
					a.Annotations = map[string]string{names.AnnotationOrigin: string(machineconfig.OriginVMOP)}
				}
				return a
			}),
		},
		{
			fault: "what was given away is forgotten", promise: "what was given away is remembered",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil {
					delete(s.Pod().Annotations, names.AnnotationDataOwner)
				}
			},
		},
		{
			fault: "what was given away is given away at each start", promise: "what was given away is not given away again",
			after: each(func(s *machine.Snapshot, a reconcile.Create) reconcile.Action {
				if pod, is := a.Object.(*corev1.Pod); is && s.ConfigMap.Annotations[names.AnnotationDataOwner] != "" {
					pod.Annotations[names.AnnotationDataOwner] = "65532"
				}
				return a
			}),
		},
		{
			fault: "a machine of vmop's is taken for VM-Operator's", promise: "only what VM-Operator left is given away", or: "who made a machine is noted as it was",
			before: func(s *machine.Snapshot) {
				s.Claims = slices.Clone(s.Claims)
				for i := range s.Claims {
					c := s.Claims[i].DeepCopy()
					if c.Annotations[names.AnnotationOrigin] != "" {
						c.Annotations[names.AnnotationOrigin] = string(machineconfig.OriginVMOperator)
					}
					s.Claims[i] = *c
				}
			},
		},
		{
			fault: "what VM-Operator left is not looked after", promise: "a machine gets what VM-Operator left",
			before: func(s *machine.Snapshot) { s.Settings.TakeOverData = false },
		},
		{
			fault: "a claim shrinks", promise: "no claim shrinks",
			after: each(func(_ *machine.Snapshot, a reconcile.UpdateClaim) reconcile.Action {
				less := quantity("1Mi")
				a.Storage = &less
				return a
			}),
		},
		{
			fault: "the ConfigMap is written over a newer one", promise: "resets are never forgotten", or: "a reset is not lost",
			after: each(func(_ *machine.Snapshot, a reconcile.Apply) reconcile.Action {
				a.Object.SetResourceVersion("")
				return a
			}),
		},
		{
			fault: "resets are not counted", promise: "a reset is not lost",
			before: func(s *machine.Snapshot) { delete(s.VM.Annotations, names.AnnotationResetRequest) },
		},
		{
			fault: "a counted request is not remembered", promise: "a reset is not repeated", or: "a reset is not lost",
			after: each(func(_ *machine.Snapshot, a reconcile.Apply) reconcile.Action {
				if m := a.Object.GetAnnotations(); m[names.AnnotationResetRequest] != "" {
					m[names.AnnotationResetRequest] = "some"
				}
				return a
			}),
		},
		{
			fault: "what others change in an object stays", promise: "what is wanted is reached",
			before: func(s *machine.Snapshot) {
				if s.ConfigMap != nil && s.ConfigMap.Data[names.ConfigKey] == "drift" {
					pretendConfig(s)
				}
			},
		},
		{
			fault: "a service that is not wanted any more stays", promise: "what is wanted is reached",
			after: without[reconcile.DeleteService],
		},
		{
			fault: "the kubelet is not told of a new configuration", promise: "the kubelet is told of changes",
			after: without[reconcile.AnnotatePod],
		},
		{
			fault: "nobody looks what waits for a restart", promise: "a reset by the guest applies what waits",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil {
					delete(s.Pod().Annotations, names.AnnotationStarted)
				}
			},
		},
		{
			fault: "failures are not counted", promise: "a failed machine is started again after a delay",
			before: func(s *machine.Snapshot) {
				if e := s.VM.Status.LastEnd; e != nil {
					e.Failures = 0
				}
			},
		},
		{
			fault: "an end is acted upon and not noted", promise: "the world comes to rest", or: "an event is told once",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					delete(st.Status, "lastEnd")
				}
			},
		},
		{
			fault: "what was refused is tried without end", promise: "what was refused is not repeated at once",
			before: func(s *machine.Snapshot) { s.Failures = nil },
		},
		{
			fault: "nobody says that a machine has gone", promise: "the world comes to rest", or: "what is wanted is reached",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				p.Statuses = slices.DeleteFunc(p.Statuses, func(s reconcile.StatusApply) bool { return s.Manager == names.RunnerStatusManager })
			},
		},
		{
			fault: "the status is that of another generation", promise: "the status names the generation it is about",
			before: func(s *machine.Snapshot) { s.VM.Generation++ },
		},
		{
			fault: "a condition is missing", promise: "all conditions are present",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					st.Status["conditions"] = st.Status["conditions"].([]any)[1:]
				}
			},
		},
		{
			fault: "each report is a transition", promise: "a transition is a change of the status",
			after: conditions(func(s *machine.Snapshot, c map[string]any) {
				c["lastTransitionTime"] = s.Now.UTC().Format(time.RFC3339)
			}),
		},
		{
			fault: "a wait is not explained", promise: "every wait is explained",
			after: conditions(func(_ *machine.Snapshot, c map[string]any) { c["message"] = "" }),
		},
		{
			fault: "a condition says all that there is to say", promise: "a message is one line",
			after: promises.Ramble[machine.Snapshot],
		},
		{
			fault: "a converged machine is told about", promise: "an event tells of a wait",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				p.Events = append(p.Events, reconcile.Event{Type: "Normal", Reason: "Reconciled", Note: "web is fine; " + s.Now.String()})
			},
		},
		{
			fault: "ends are told each time", promise: "an event is told once",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if len(p.Statuses) > 0 && s.VM.Status.LastEnd != nil {
					p.Events = append(p.Events, reconcile.Event{Type: "Normal", Reason: "Ended", Action: "Run", Note: "web has ended; it is started again"})
				}
			},
		},
		{
			fault: "nobody remembers that a wait was told", promise: "an event is told once",
			after: waits(func(_ *machine.Snapshot, w map[string]any) { delete(w, "told") }),
		},
		{
			fault: "a wait begins anew with each look", promise: "a wait that lasts is told", or: "the world comes to rest",
			after: waits(func(s *machine.Snapshot, w map[string]any) {
				if w["told"] == nil {
					w["since"] = s.Now.UTC().Format(time.RFC3339)
				}
			}),
			before: func(s *machine.Snapshot) {
				for i := range s.VM.Status.Waits {
					if w := &s.VM.Status.Waits[i]; !w.Told {
						w.Since.Time = s.Now
					}
				}
			},
		},
		{
			fault: "only problems are told", promise: "a wait that lasts is told",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				p.Events = slices.DeleteFunc(p.Events, func(e reconcile.Event) bool { return e.Type == corev1.EventTypeNormal })
			},
		},
		{
			fault: "a wait is told though it may soon be over", promise: "what may pass is told when it lasts",
			before: func(s *machine.Snapshot) {
				for i := range s.VM.Status.Waits {
					s.VM.Status.Waits[i].Since.Time = s.Now.Add(-time.Hour)
				}
			},
		},
		{
			fault: "an event says what is and not what to do", promise: "an event has an object and a next step",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for i := range p.Events {
					p.Events[i].Note, _, _ = strings.Cut(p.Events[i].Note, ";")
				}
			},
		},
		{
			fault: "a machine restarts whatever waits", promise: "a pod that runs as it should is left alone", or: "a pod that has started is not replaced",
			before: func(s *machine.Snapshot) {
				s.VM.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
			},
		},
		{
			fault: "the snapshot is changed", promise: "a snapshot is not changed",
			after: func(s *machine.Snapshot, _ *reconcile.Plan) { s.VM.Spec.VM.CPUModel = "max" },
		},
		{
			fault: "a guest that powered off is stopped whatever was decided since", promise: "a decision is respected", or: "an event is told once",
			before: func(s *machine.Snapshot) {
				if e := s.VM.Status.LastEnd; e != nil && s.Pod() != nil && e.PodUID == s.Pod().UID {
					s.VM.Status.LastEnd = nil
				}
			},
		},
		{
			fault: "nobody sees that a machine is deleted", promise: "a deleted machine gets nothing",
			before: func(s *machine.Snapshot) { s.VM.DeletionTimestamp = nil },
		},
		{
			fault: "a machine is let go when it is to be held", promise: "a machine is held while it is there",
			after: each(func(_ *machine.Snapshot, a reconcile.SetFinalizers) reconcile.Action {
				a.Releases = !a.Releases
				return a
			}),
		},
		{
			fault: "a machine is ready whatever is the matter", promise: "a machine is ready if its condition says so",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					st.Status["ready"] = true
				}
			},
		},
		{
			fault: "a pod that goes is told of changes", promise: "a pod that goes is left alone",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if s.Pod() != nil && s.Pod().DeletionTimestamp != nil && s.VM.DeletionTimestamp == nil {
					p.Actions = append(p.Actions, reconcile.AnnotatePod{Name: s.Pod().Name, UID: s.Pod().UID})
				}
			},
		},
		{
			fault: "a pod is replaced that has started meanwhile", promise: "a pod that has started is not replaced",
			after: each(func(_ *machine.Snapshot, a reconcile.DeletePod) reconcile.Action { a.ResourceVersion = ""; return a }),
		},
		{
			fault: "a number is told as a word", promise: "a status fits the type",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					st.Status["cpus"] = "many"
				}
			},
		},
		{
			fault: "what a status has is no JSON", promise: "a status is JSON",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					st.Status["cpus"] = math.Inf(1)
				}
			},
		},
		{
			fault: "the operator wakes up at once, for ever", promise: "a wake-up is in the future",
			after: func(s *machine.Snapshot, p *reconcile.Plan) { p.Wake = s.Now },
		},
		{
			fault: "nobody looks whether a stop has passed", promise: "a step that passes is looked at again",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				if p.Passing {
					p.Wake = time.Time{}
				}
			},
		},
		{
			fault: "an action is one that nobody carries out", promise: "actions are known",
			after: each(func(_ *machine.Snapshot, a reconcile.Create) reconcile.Action { return &a }),
		},
		{
			fault: "conditions have no time", promise: "conditions have true times",
			after: conditions(func(_ *machine.Snapshot, c map[string]any) { c["lastTransitionTime"] = "1970-01-01T00:00:00Z" }),
		},
		{
			fault: "a plan depends on how often it is asked for", promise: "equal snapshots give equal plans",
			after: func() func(*machine.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *machine.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			fault: "a phase is one that nobody knows", promise: "phases are known",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Status["phase"] != nil {
						rename(st.Status, "Fine")
					}
				}
			},
		},
		{
			fault: "a phase is one and then the other", promise: "phases do not flicker", or: "the world comes to rest",
			before: func(s *machine.Snapshot) { s.VM.Status.Phase = "" },
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Status["phase"] == spec.PhaseRunning && s.VM.Status.Phase == spec.PhaseRunning {
						rename(st.Status, spec.PhasePaused)
					} else if phase, has := st.Status["phase"].(string); has {
						rename(st.Status, phase)
					}
				}
			},
		},
		{
			fault: "a pod that has just started is told of", promise: "a start is told once for each phase",
			before: func(s *machine.Snapshot) {
				pod := s.Pod()
				if pod == nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
					return
				}
				s.Pods = slices.Clone(s.Pods)
				i := slices.IndexFunc(s.Pods, func(p corev1.Pod) bool { return p.UID == pod.UID })
				of := s.Pods[i].DeepCopy()
				started := &of.Status.ContainerStatuses[0].State.Running.StartedAt
				*started = metav1.NewTime(started.Add(-reporting))
				s.Pods[i] = *of
			},
		},
		{
			fault: "phases are recorded for ever", promise: "the record of phases is true",
			after: stats(func(s *machine.Snapshot, st map[string]any) {
				all, _ := st["phasesTransitions"].([]any)
				for len(all) <= spec.MaxPhasesTransitions {
					all = append([]any{map[string]any{"phase": "Pending", "time": "2020-01-01T00:00:00Z"}, map[string]any{"phase": "Running", "time": "2020-01-01T00:00:00Z"}}, all...)
				}
				st["phasesTransitions"] = all
			}),
		},
		{
			fault: "a phase is not recorded", promise: "the record of phases is true",
			after: stats(func(_ *machine.Snapshot, st map[string]any) {
				if all := st["phasesTransitions"].([]any); len(all) > 1 {
					st["phasesTransitions"] = all[:len(all)-1]
				}
			}),
		},
		{
			fault: "a start takes less than no time", promise: "the record of phases is true",
			after: stats(func(_ *machine.Snapshot, st map[string]any) {
				if l, has := st["launchTimeDuration"].(map[string]any); has {
					l["virtualMachineStartingSeconds"] = -1.
				}
			}),
		},
		{
			fault: "a machine between two pods is called stopped", promise: "a phase says what is wanted",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Status["phase"] == spec.PhasePending {
						rename(st.Status, spec.PhaseStopped)
					}
				}
			},
		},
		{
			fault: "a guest on a lost node is said to execute", promise: "nobody says that a guest on a lost node executes",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Status["phase"] == spec.PhaseUnknown {
						st.Status["conditions"] = slices.DeleteFunc(st.Status["conditions"].([]any), func(c any) bool {
							return c.(map[string]any)["type"] == spec.ConditionGuestExecuting
						})
					}
				}
			},
		},
		{
			fault: "a machine on a lost node is said to stop", promise: "a machine that nobody hears of is unknown",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Status["phase"] == spec.PhaseUnknown {
						rename(st.Status, spec.PhaseStopping)
					}
				}
			},
		},
		{
			fault: "a stopped machine is somewhere", promise: "the status is true", or: "the world comes to rest",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Manager == names.OperatorStatusManager {
						st.Status["nodeName"] = "n9"
					}
				}
			},
		},
		{
			fault: "who made the machine counts as noted", promise: "who made a machine is noted before it starts", or: "a machine gets what VM-Operator left",
			before: func(s *machine.Snapshot) {
				s.Claims = slices.Clone(s.Claims)
				for i := range s.Claims {
					c := s.Claims[i].DeepCopy()
					if c.Name == "web-runner-data" && c.Annotations[names.AnnotationOrigin] == "" {
						metav1.SetMetaDataAnnotation(&c.ObjectMeta, names.AnnotationOrigin, string(machineconfig.OriginVMOP))
					}
					s.Claims[i] = *c
				}
			},
		},
		{
			fault: "pods are resized where no node does that", promise: "a node that does not resize pods is not asked to",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if s.Pod() != nil && s.VM.DeletionTimestamp == nil {
					p.Actions = append(p.Actions, reconcile.ResizePod{Name: s.Pod().Name, UID: s.Pod().UID, ResourceVersion: s.Pod().ResourceVersion})
				}
			},
		},
	}
}

func policyMutants() []mutant {
	return []mutant{
		{
			fault: "requests are not looked at", promise: "a run policy is followed",
			before: func(s *machine.Snapshot) { delete(s.VM.Annotations, names.AnnotationPowerRequest) },
		},
		{
			fault: "a request is answered and not carried out", promise: "an end is kept", or: "a request is carried out; a phase says what is wanted",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if next, has := st.Status["power"].(map[string]any); has && s.VM.Status.Power != nil && s.VM.Spec.RunPolicy == s.VM.Status.Power.Policy {
						next["state"] = string(s.VM.Status.Power.State)
					}
				}
			},
		},
		{
			fault: "the pod of a guest that executes is not noted", promise: "the world comes to rest", or: "an end is kept",
			before: func(s *machine.Snapshot) {
				if p := s.VM.Status.Power; p != nil {
					p.PodUID = ""
				}
			},
		},
		{
			fault: "nobody asks whether changes need approval", promise: "changes that need no approval do not wait",
			before: func(s *machine.Snapshot) { s.VM.Spec.Disruptions = nil },
		},
		{
			fault: "an automatic restart trusts that Secrets are there", promise: "a pod that runs as it should is left alone", or: "a pod that has started is not replaced",
			before: func(s *machine.Snapshot) {
				if s.Pod() == nil {
					return
				}
				s.Secrets = map[string]machine.SecretState{"web-init": machine.SecretThere}
			},
		},
		{
			fault: "a request is noted when it is seen", promise: "a request is carried out", or: "a run policy is followed",
			before: func(s *machine.Snapshot) {
				if p := s.VM.Status.Power; p != nil && s.VM.Annotations[names.AnnotationPowerRequest] != "" {
					p.Request = s.VM.Annotations[names.AnnotationPowerRequest]
				}
			},
		},
		{
			fault: "a machine is started before the request is noted", promise: "a start is noted before there is a pod",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				request, power := s.VM.Annotations[names.AnnotationPowerRequest], s.VM.Status.Power
				if s.Pod() != nil || power == nil || power.Request == request || !strings.HasPrefix(request, string(machine.VerbStart)) {
					return
				}
				aware := *s
				aware.VM = s.VM.DeepCopy()
				aware.VM.Status.Power.Request, aware.VM.Status.Power.State = request, spec.StateRunning
				p.Actions = machine.Decide(aware).Actions
			},
		},
		{
			fault: "the end of a pod that is gone is noted beside the next one", promise: "an end is noted before there is another pod",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if _, notes := st.Status["lastEnd"]; !notes || s.VM.Status.RunnerEnd == nil || s.Pod() != nil {
						continue
					}
					unaware := *s
					unaware.VM = s.VM.DeepCopy()
					unaware.VM.Status.RunnerEnd = nil
					p.Actions = machine.Decide(unaware).Actions
				}
			},
		},
	}
}

// decide is the decision with the fault. The snapshot is the mutant's own,
// unless the fault is to change it.
func (m *mutant) decide(s machine.Snapshot) reconcile.Plan {
	mine := s
	if m.before != nil {
		mine.VM, mine.ConfigMap = s.VM.DeepCopy(), s.ConfigMap.DeepCopy()
		mine.Pods = make([]corev1.Pod, len(s.Pods))
		for i := range s.Pods {
			s.Pods[i].DeepCopyInto(&mine.Pods[i])
		}
		m.before(&mine)
	}
	p := machine.Decide(mine)
	if m.after != nil {
		m.after(&s, &p)
	}
	return p
}
