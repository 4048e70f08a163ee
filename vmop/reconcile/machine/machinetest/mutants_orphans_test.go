package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func orphanMutants() []mutant {
	return []mutant{
		{
			fault: "labels suffice to take over a pod", promise: "only what was left is taken over",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil && len(s.Pod().OwnerReferences) == 0 {
					s.Pod().Annotations[names.AnnotationOrphaned] = "somebody " + string(s.Pod().UID)
				}
			},
		},
		{
			fault: "a pod is left and another started", promise: "a pod that is left runs on",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if s.Pod() != nil && slices.Contains(s.VM.Finalizers, metav1.FinalizerOrphanDependents) {
					p.Actions = slices.Insert(p.Actions, 0, reconcile.Action(reconcile.DeletePod{Name: s.Pod().Name, UID: s.Pod().UID, GraceSeconds: 30}))
				}
			},
		},
		{
			fault: "nobody asks whose the ConfigMap is", promise: "only what is its own goes with a machine that wants it",
			before: func(s *machine.Snapshot) {
				if s.ConfigMap != nil && s.VM.DeletionTimestamp != nil {
					s.ConfigMap.OwnerReferences = []metav1.OwnerReference{{UID: s.VM.UID}}
				}
			},
		},
	}
}
