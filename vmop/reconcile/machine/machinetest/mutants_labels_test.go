package machinetest

import (
	"maps"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	corev1 "k8s.io/api/core/v1"
)

func labelMutants() []mutant {
	const promise = "what a machine is labelled with its pod is, too"
	return []mutant{
		{
			fault: "labels reach new pods only", promise: promise,
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for i, a := range p.Actions {
					if a, is := a.(reconcile.AnnotatePod); is {
						a.Labels = nil
						p.Actions[i] = a
					}
				}
			},
		},
		{
			fault: "labels that are gone stay on the pod", promise: promise,
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for i, a := range p.Actions {
					if a, is := a.(reconcile.AnnotatePod); is {
						a.Labels = maps.Clone(a.Labels)
						maps.DeleteFunc(a.Labels, func(_ string, v *string) bool { return v == nil })
						p.Actions[i] = a
					}
				}
			},
		},
		{
			fault: "the machine's labels are all passed on", promise: promise,
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, a := range p.Actions {
					if c, is := a.(reconcile.Create); is {
						if pod, is := c.Object.(*corev1.Pod); is {
							maps.Copy(pod.Labels, s.VM.Labels)
						}
					}
				}
			},
		},
	}
}
