package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// toldPods is a mutant's plan with what the status says of pods changed.
func toldPods(change func(*machine.Snapshot, []any) []any) func(*machine.Snapshot, *reconcile.Plan) {
	return func(s *machine.Snapshot, p *reconcile.Plan) {
		for _, st := range p.Statuses {
			if all, _ := st.Status["virtualMachinePods"].([]any); len(all) > 0 {
				st.Status["virtualMachinePods"] = change(s, all)
			}
		}
	}
}

func nameMutants() []mutant {
	const promise = "at most one guest of a machine executes"
	return []mutant{
		{
			fault: "the machine's pod is known by its name", promise: promise, or: "what is wanted is reached; the world comes to rest; only the runner with the guest reports",
			before: func(s *machine.Snapshot) {
				s.Pods = slices.DeleteFunc(s.Pods, func(p corev1.Pod) bool { return isRunners(&p) && p.Name != s.VM.Name })
			},
		},
		{
			fault: "only the active pod is looked at", promise: "the status has the pods of the machine", or: "a disk has one machine; at most one guest of a machine executes",
			before: noOthers,
		},
		{
			fault: "all pods of a machine are told to be active", promise: "one pod of a machine is active", or: "the status has the pods of the machine",
			after: toldPods(func(_ *machine.Snapshot, all []any) []any {
				for _, p := range all {
					p.(map[string]any)["active"] = true
				}
				return all
			}),
		},
		{
			fault: "the pods are told when the guest executes", promise: "the runner of the active pod may report",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Manager == names.OperatorStatusManager && st.Status["phase"] != spec.PhaseRunning {
						delete(st.Status, "virtualMachinePods")
					}
				}
			},
		},
		{
			fault: "the pod that is made last is told to be the active one", promise: "only the runner with the guest reports", or: "the runner of the active pod may report",
			after: toldPods(func(s *machine.Snapshot, all []any) []any {
				last, made := 0, metav1.Time{}
				for i, p := range all {
					p := p.(map[string]any)
					p["active"] = false
					at := slices.IndexFunc(s.Pods, func(pod corev1.Pod) bool { return string(pod.UID) == p["uid"] })
					if made.Before(&s.Pods[at].CreationTimestamp) {
						last, made = i, s.Pods[at].CreationTimestamp
					}
				}
				all[last].(map[string]any)["active"] = true
				return all
			}),
		},
		{
			fault: "all pods of a machine go with the last one", promise: "only pods that have ended go with the last one", or: "a pod is deleted by its UID",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				last := s.Pod()
				if last == nil || !slices.ContainsFunc(p.Actions, func(a reconcile.Action) bool {
					d, is := a.(reconcile.DeletePod)
					return is && d.UID == last.UID
				}) {
					return
				}
				for i := range s.Pods {
					if pod := &s.Pods[i]; pod.UID != last.UID {
						p.Actions = append(p.Actions, reconcile.DeletePod{Name: pod.Name, UID: pod.UID})
					}
				}
			},
		},
		{
			fault: "a pod that has not started is deleted for the guest beside it", promise: "a pod is deleted by its UID",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for i := range s.Pods {
					if pod := &s.Pods[i]; isRunners(pod) && pod.UID != s.Pod().UID {
						p.Actions = append(p.Actions, reconcile.DeletePod{Name: pod.Name, UID: pod.UID})
					}
				}
			},
		},
	}
}
