package changes

import (
	"reflect"
	"slices"

	"github.com/vmop/sdk/vmop/spec"
)

// StartedWith returns the pod of a machine that runs with a manifest, without attachments.
func StartedWith(vm *spec.VirtualMachine) *Pod {
	pod := &Pod{}
	if vm == nil {
		return pod
	}
	disks := reflect.ValueOf(vm.Spec.VM.Disks)
	for i := range vm.Spec.VM.Disks {
		if claim := claimOf(vm, disks, i); claim != "" {
			pod.Claims = append(pod.Claims, claim)
		}
	}
	for i := range vm.Spec.BlockDeviceRefs {
		pod.Claims = append(pod.Claims, vm.Spec.BlockDeviceRefs[i].Claim())
	}
	return pod
}

// plugged returns the disks that the machine has by its own attachments. The pod's volumes it has
// from its start.
func (p *Pod) plugged() []string {
	var out []string
	for i := range p.Attachments {
		if a := &p.Attachments[i]; a.Own && !slices.Contains(p.Claims, a.Claim) {
			out = append(out, a.Claim)
		}
	}
	return out
}

func (d *differ) comes(i int) bool {
	c := &d.changes[i]
	return c.IsDisk() && c.Operation == spec.OperationAdd && slices.ContainsFunc(d.coming, func(disk coming) bool {
		return disk.at == i && !slices.Contains(d.options.Pod.claims(), disk.claim)
	})
}

func (p *Pod) claims() []string {
	if p == nil {
		return nil
	}
	return p.Claims
}
