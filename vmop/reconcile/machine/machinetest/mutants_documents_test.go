package machinetest

import (
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"k8s.io/apimachinery/pkg/runtime"
)

func documentMutants() []mutant {
	return []mutant{
		{
			fault: "the first documents count for ever", promise: "a configuration has the documents of its manifest", or: "an invalid document is told",
			before: func(s *machine.Snapshot) {
				if s.ConfigMap != nil && s.VM.DeletionTimestamp == nil {
					s.VM.Spec.CloudInit.UserData = documentOf(someDocuments[2])
				}
			},
		},
		{
			fault: "an invalid document is passed over", promise: "an invalid document is told",
			before: func(s *machine.Snapshot) {
				for _, document := range []*runtime.RawExtension{s.VM.Spec.CloudInit.UserData, s.VM.Spec.CloudInit.NetworkConfig} {
					if document != nil && string(document.Raw) == invalidDocument {
						document.Raw = []byte("{}")
					}
				}
			},
		},
	}
}
