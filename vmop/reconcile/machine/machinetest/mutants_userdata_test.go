package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func userDataMutants() []mutant {
	return []mutant{
		{
			fault: "user data is in the ConfigMap", promise: "user data is in a Secret of its own",
			after: each(func(s *machine.Snapshot, a reconcile.Create) reconcile.Action {
				if cm, is := a.Object.(*corev1.ConfigMap); is && cm.Name == s.VM.Name {
					cm.Data[names.ConfigKey] += s.VM.Spec.InlineUserData()
				}
				return a
			}),
		},
		{
			fault: "the Secret of before is taken", promise: "a guest is given the user data of its manifest",
			before: func(s *machine.Snapshot) {
				s.UserData = slices.Clone(s.UserData)
				for i := range s.UserData {
					if o := &s.UserData[i]; o.Immutable != nil {
						o.Data = map[string][]byte{spec.UserDataKey: []byte(s.VM.Spec.InlineUserData())}
					}
				}
			},
		},
		{
			fault: "what a pod has is forgotten", promise: "only what nobody needs goes",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, h := range s.UserDataHolders {
					if s.VM.DeletionTimestamp == nil {
						p.Actions = append(p.Actions, reconcile.DeleteConfigMap{Name: h.Name, UID: h.UID, ResourceVersion: h.ResourceVersion})
					}
				}
			},
		},
		{
			fault: "nothing is removed", promise: "what nobody needs goes",
			after: without[reconcile.DeleteConfigMap],
		},
	}
}
