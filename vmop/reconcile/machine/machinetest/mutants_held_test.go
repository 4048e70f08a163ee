package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
)

func heldMutants() []mutant {
	const promise = "a machine is held while it is there"
	held := func(s *machine.Snapshot) bool { return slices.Contains(s.VM.Finalizers, names.FinalizerMachine) }
	return []mutant{
		{
			fault: "a finalizer is added again", promise: promise,
			before: func(s *machine.Snapshot) {
				if s.VM.DeletionTimestamp == nil {
					s.VM.Finalizers = nil
				}
			},
		},
		{
			fault: "a machine without a pod is let go", promise: promise,
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if held(s) && s.VM.DeletionTimestamp == nil && len(s.Pods) == 0 {
					p.Actions = append(p.Actions, reconcile.SetFinalizers{
						Kind: names.KindVirtualMachine, Name: s.VM.Name, UID: s.VM.UID, ResourceVersion: s.VM.ResourceVersion, Releases: true,
					})
				}
			},
		},
		{
			fault: "only a machine that had a pod is let go when it is deleted", promise: "a machine that is deleted goes",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if s.VM.DeletionTimestamp != nil && s.VM.Status.LastEnd == nil {
					without[reconcile.SetFinalizers](s, p)
				}
			},
		},
		{
			fault: "a machine is let go before its guest has ended", promise: "a machine is seen until its guest has ended",
			or: "pods of others are left alone; at most one guest of a machine executes",
			before: func(s *machine.Snapshot) {
				if s.VM.DeletionTimestamp != nil {
					setPod(s, nil)
				}
			},
		},
	}
}
