package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func deletionMutants() []mutant {
	const promise = "only what is its own goes with a machine that wants it"
	claims := func(change func(*machine.Snapshot, *corev1.PersistentVolumeClaim)) func(*machine.Snapshot) {
		return func(s *machine.Snapshot) {
			s.Claims = slices.Clone(s.Claims)
			for i := range s.Claims {
				s.Claims[i] = *s.Claims[i].DeepCopy()
				change(s, &s.Claims[i])
			}
		}
	}
	return []mutant{
		{
			fault: "nobody asks for whom a claim was made", promise: promise,
			before: claims(func(s *machine.Snapshot, c *corev1.PersistentVolumeClaim) {
				if s.VM.DeletionTimestamp != nil {
					c.Annotations = map[string]string{names.AnnotationMadeFor: string(s.VM.UID)}
				}
			}),
		},
		{
			fault: "nobody asks what the manifest says", promise: promise,
			before: func(s *machine.Snapshot) { s.VM.Spec.DeletionPolicy = spec.DeletionDelete },
		},
		{
			fault: "other machines are not looked at", promise: promise,
			before: func(s *machine.Snapshot) { s.Mentioned = nil },
		},
		{
			fault: "other pods are not looked at", promise: promise, or: "a disk has one machine",
			before: noOthers,
		},
		{
			fault: "the guest is not waited for", promise: promise, or: "a machine is seen until its guest has ended",
			before: func(s *machine.Snapshot) {
				if s.VM.DeletionTimestamp != nil {
					setPod(s, nil)
				}
			},
		},
		{
			fault: "a claim is deleted under whatever UID", promise: promise,
			before: claims(func(s *machine.Snapshot, c *corev1.PersistentVolumeClaim) {
				if s.VM.DeletionTimestamp != nil && c.Annotations[names.AnnotationMadeFor] != "" {
					c.Annotations[names.AnnotationMadeFor] = string(s.VM.UID)
				}
			}),
		},
	}
}
