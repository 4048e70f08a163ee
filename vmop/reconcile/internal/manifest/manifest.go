// Package manifest has what everything that reads a manifest needs.
package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Defaulted returns a machine with the specification of vm and its defaults. It shares the
// metadata and the documents for cloud-init with vm, and has no status: nothing made from a
// manifest depends on that.
func Defaulted(vm *spec.VirtualMachine) *spec.VirtualMachine {
	if vm == nil {
		vm = &spec.VirtualMachine{}
	}
	out := &spec.VirtualMachine{TypeMeta: vm.TypeMeta, ObjectMeta: vm.ObjectMeta}
	CopySpec(&vm.Spec, &out.Spec)
	spec.DefaultSpec(&out.Spec)
	if out.Spec.Image == nil {
		out.Spec.Image = &spec.RunnerImage{Source: names.FormerImage}
	}
	return out
}

// CopySpec makes a copy of a specification that shares only what is never modified: resources, the
// load balancer's service, what claims are made from, and the documents for cloud-init, which are
// long.
func CopySpec(in, out *spec.VirtualMachineSpec) {
	short := *in
	short.LoadBalancerService, short.Resources, short.VM.Disks = nil, nil, nil
	c := in.CloudInit
	if c != nil {
		without := *c
		without.UserData, without.NetworkConfig = nil, nil
		short.CloudInit = &without
	}
	short.DeepCopyInto(out)
	out.LoadBalancerService, out.Resources, out.VM.Disks = in.LoadBalancerService, in.Resources, copyDisks(in.VM.Disks)
	if c != nil {
		out.CloudInit.UserData, out.CloudInit.NetworkConfig = c.UserData, c.NetworkConfig
	}
}

func copyDisks(in []spec.Disk) []spec.Disk {
	out := slices.Clone(in)
	for i := range out {
		d := &out[i]
		if d.VolumeClaimTemplate != nil {
			d.VolumeClaimTemplate = new(*d.VolumeClaimTemplate)
		}
		if d.ContainerDisk != nil {
			d.ContainerDisk = new(*d.ContainerDisk)
		}
	}
	return out
}

// ForgetFormerImage removes the image that [Defaulted] sets where the manifest names none.
func ForgetFormerImage(vm *spec.VirtualMachine) {
	if i := vm.Spec.Image; i != nil && *i == (spec.RunnerImage{Source: names.FormerImage}) {
		vm.Spec.Image = nil
	}
}

// InstanceID returns how cloud-init identifies the guest of a machine: by its meta-data, or else
// <namespace>.<name>, which is a directory's name in the guest and so has no slash. A renamed
// machine may have kept another one.
func InstanceID(vm *spec.VirtualMachine) string {
	if c := vm.Spec.CloudInit; c != nil && c.MetaData[InstanceIDKey] != "" {
		return c.MetaData[InstanceIDKey]
	}
	return cmp.Or(vm.Namespace, corev1.NamespaceDefault) + "." + vm.Name
}

// InstanceIDKey is the key of the instance-id in meta-data.
const InstanceIDKey = "instance-id"

// RawJSON returns the JSON of a RawExtension, whether it was decoded or made in Go.
func RawJSON(r *runtime.RawExtension) (json.RawMessage, error) {
	if r == nil {
		return nil, nil
	}
	if r.Raw == nil && r.Object != nil {
		raw, err := json.Marshal(r.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot be written as JSON: %w", err)
		}
		return raw, nil
	}
	return r.Raw, nil
}
