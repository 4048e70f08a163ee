package machinetest

import (
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func claimMutants() []mutant {
	return []mutant{
		{
			fault: "nobody looks what the machine has run with", promise: "a disk is not replaced without a word", or: "what a machine has run with is remembered",
			before: func(s *machine.Snapshot) {
				if s.VM.Status.Phase == spec.PhasePending {
					s.VM.Status.Claims = nil
				}
			},
		},
		{
			fault: "who wanted a new disk once wants one whenever its claim is gone", promise: "a disk is not replaced without a word",
			before: func(s *machine.Snapshot) {
				if s.VM.Annotations[names.AnnotationNewDisk] == "" {
					return
				}
				var all []string
				for _, c := range s.VM.Status.Claims {
					all = append(all, c.Disk+":"+string(c.UID))
				}
				s.VM.Annotations[names.AnnotationNewDisk] = strings.Join(all, ",")
			},
		},
		{
			fault: "what the machine runs with is not noted", promise: "what a machine has run with is remembered", or: "the world comes to rest",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					delete(st.Status, "claims")
				}
			},
		},
	}
}
