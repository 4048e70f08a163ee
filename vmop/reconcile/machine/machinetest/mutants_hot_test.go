package machinetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func hotMutants() []mutant {
	return []mutant{
		{
			fault: "a disk that comes has another pod", promise: "a disk that comes restarts nothing", or: "a pod that has started is not replaced",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if pod := s.Pod(); pod != nil && slices.ContainsFunc(p.Actions, isAttachment) {
					p.Actions = append(p.Actions, reconcile.DeletePod{Name: pod.Name, UID: pod.UID, GraceSeconds: s.VM.Spec.ShutdownSeconds() + objects.TerminationReserve})
				}
			},
		},
		{
			fault: "exporters are not looked at", promise: "a disk that comes and goes has one writer", or: "a disk has one machine",
			before: func(s *machine.Snapshot) {
				s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool { return strings.HasSuffix(p.Name, "-vmbda") })
			},
		},
		{
			fault: "what left the manifest stays attached", promise: "a disk that left the manifest is detached", or: "a pod that has a disk needs no attachment",
			after: without[reconcile.DeleteAttachment],
		},
		{
			fault: "a former run's attachments stay", promise: "a pod that has a disk needs no attachment",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				p.Actions = slices.DeleteFunc(p.Actions, func(a reconcile.Action) bool {
					d, is := a.(reconcile.DeleteAttachment)
					return is && slices.ContainsFunc(s.Attachments, func(a spec.VirtualMachineBlockDeviceAttachment) bool {
						return a.Name == d.Name && refersTo(s.VM, a.Spec.BlockDeviceRef.ClaimName())
					})
				})
			},
		},
		{
			fault: "all attachments of a machine are its own", promise: "a person's attachment is left alone",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, a := range s.Attachments {
					if a.Name == "by-hand" {
						p.Actions = append(p.Actions, reconcile.DeleteAttachment{Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion})
					}
				}
			},
		},
		{
			fault: "an attachment goes when the guest has the disk", promise: "a disk stays for as long as the manifest has it",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, a := range s.Attachments {
					if a.Status.Connection != nil && len(a.OwnerReferences) > 0 && a.DeletionTimestamp == nil {
						p.Actions = append(p.Actions, reconcile.DeleteAttachment{Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion})
					}
				}
			},
		},
		{
			fault: "no attachment is made", promise: "a disk that comes is attached",
			after: func(_ *machine.Snapshot, p *reconcile.Plan) { p.Actions = slices.DeleteFunc(p.Actions, isAttachment) },
		},
		{
			fault: "a machine waits for its own attachments", promise: "a machine with disks that come and go runs",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				if len(s.Attachments) > 0 {
					p.Actions = slices.DeleteFunc(p.Actions, func(a reconcile.Action) bool {
						c, is := a.(reconcile.Create)
						return is && fmt.Sprintf("%T", c.Object) == "*v1.Pod"
					})
				}
			},
		},
	}
}

func isAttachment(a reconcile.Action) bool {
	c, is := a.(reconcile.Create)
	if !is {
		return false
	}
	_, is = c.Object.(*spec.VirtualMachineBlockDeviceAttachment)
	return is
}
