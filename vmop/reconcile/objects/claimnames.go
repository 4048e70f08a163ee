package objects

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// formerSuffix ends the claim names of VM-Operator before version 3.4, those of a StatefulSet
// with one pod.
const formerSuffix = "-0"

// FormerClaim returns the name of a disk's claim before VM-Operator's version 3.4.
func FormerClaim(vmName, diskName string) string { return diskName + "-" + vmName + formerSuffix }

// RunnerDataDisk is the disk name of the runner's own data in former claim names.
const RunnerDataDisk = "runner-data"

// ClaimNames returns the names of all claims that the machine uses or may come to use: those that
// its disks refer to, those that the operator creates, and those that VM-Operator once created
// for the same disks.
func ClaimNames(vm *spec.VirtualMachine) []string {
	out := []string{spec.RunnerDataClaimName(vm.Name), FormerClaim(vm.Name, RunnerDataDisk)}
	for _, d := range machineconfig.Disks(vm) {
		switch {
		case d.Claim == "", d.IsImage():
		case d.Entry.PersistentVolumeClaim != nil:
			out = append(out, d.Claim)
		default:
			out = append(out, d.Claim, FormerClaim(vm.Name, d.Name))
		}
	}
	return out
}

// SharedClaims returns the claims that a machine has as folders or as images, which other
// machines may have too: they are not in [ClaimNames].
func SharedClaims(vm *spec.VirtualMachine) []string {
	var out []string
	for i := range vm.Spec.VM.Shares {
		if c := vm.Spec.VM.Shares[i].PersistentVolumeClaim; c != nil {
			out = append(out, c.ClaimName)
		}
	}
	for i := range vm.Spec.BlockDeviceRefs {
		if r := &vm.Spec.BlockDeviceRefs[i]; r.IsImage() {
			out = append(out, r.Claim())
		}
	}
	return out
}

// ClaimMachines returns the names of the few machines that a claim could belong to by its own
// name. Any other machine uses such a claim only by referring to it in its manifest.
func ClaimMachines(claim string) []string {
	var out []string
	for i := range len(claim) {
		if claim[i] == '-' && i > 0 {
			out = append(out, claim[:i])
		}
	}
	if stem, ok := strings.CutSuffix(claim, formerSuffix); ok {
		for i := range len(stem) {
			if stem[i] == '-' && i+1 < len(stem) {
				out = append(out, stem[i+1:])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PodClaims returns the names of the claims that a pod uses.
func PodClaims(pod *corev1.Pod) []string {
	var out []string
	for i := range pod.Spec.Volumes {
		if c := pod.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
			out = append(out, c.ClaimName)
		}
	}
	return out
}

// PodHasClaim reports whether a pod uses a claim.
func PodHasClaim(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
