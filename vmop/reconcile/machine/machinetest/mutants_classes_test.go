package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func classMutants() []mutant {
	return []mutant{
		{
			fault: "the class is not looked at", promise: "a machine is started as its class says", or: "no machine is started without its class",
			before: func(s *machine.Snapshot) { s.Classes, s.VM.Spec.VirtualMachineClassName = nil, "" },
		},
		{
			fault: "a class that is missing is none", promise: "no machine is started without its class", or: "no machine stops for its class",
			before: func(s *machine.Snapshot) {
				if len(s.Classes) == 0 {
					s.VM.Spec.VirtualMachineClassName = ""
				}
			},
		},
		{
			fault: "sizes are not looked at", promise: "what is wrong with a class is told", or: "no machine is started without its class",
			before: func(s *machine.Snapshot) {
				s.Classes = slices.Clone(s.Classes)
				for i := range s.Classes {
					s.Classes[i].Spec.SizingPolicies = nil
				}
			},
		},
		{
			fault: "a pod is replaced when its class changes", promise: "no machine stops for its class",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if class, _ := classFor(s.VM, s.Classes); class != nil && s.Pod() != nil && s.Pod().DeletionTimestamp == nil && class.Generation > 1 {
					p.Actions = append(p.Actions, reconcile.DeletePod{Name: s.Pod().Name, UID: s.Pod().UID, ResourceVersion: s.Pod().ResourceVersion, GraceSeconds: 930})
				}
			},
		},
		{
			fault: "the class that a machine was started with is forgotten", promise: "a change of a class is told",
			before: func(s *machine.Snapshot) {
				s.Classes = slices.Clone(s.Classes)
				for i := range s.Classes {
					if s.Pod() != nil {
						s.Classes[i].Spec.NodeSelector = &spec.ClassNodeSelector{MatchLabels: s.Pod().Spec.NodeSelector}
					}
				}
			},
		},
		{
			fault: "what was wrong with a class stays", promise: "what is wrong with a class passes when it is corrected", or: "what is wrong with a class is told",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if c := spec.FindCondition(s.VM.Status.Conditions, spec.ConditionVirtualMachineClassReady); c != nil && c.Status == "False" {
					*p = reconcile.Plan{}
				}
			},
		},
	}
}
