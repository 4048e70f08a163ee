package machine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Namespace is the input of [Remains]: all objects of these kinds in one namespace. Machines and
// pods must be read after claims and secrets: otherwise a new machine's objects would seem
// unused.
type Namespace struct {
	Machines []*spec.VirtualMachine
	Pods     []corev1.Pod
	Claims   []corev1.PersistentVolumeClaim
	Secrets  []corev1.Secret
}

// Remainder is an unused volume claim or display secret left by a machine that no longer exists.
type Remainder struct {
	// Kind is PersistentVolumeClaim or Secret.
	Kind, Name string
	UID        types.UID
	// Machine is the name of the machine that it was made for.
	Machine string
	// Size is the volume's capacity, or the claim's request before it has one; nil for a secret.
	Size *resource.Quantity
	// Created is the time of its creation.
	Created metav1.Time
}

// Remains returns the claims and secrets of machines that no longer exist, ordered by machine,
// kind and name. A user who does not need the data may delete them; Remains deletes nothing.
//
// An object counts if it has the labels of the operator, a name that the operator or VM-Operator
// gives to an object of the machine that the labels name, no owner, and, as a secret, nothing in
// it but a display's password. Labels alone do not suffice: a backup has those of its original.
// One that is being deleted, that a machine's manifest mentions, or that an unfinished pod uses
// does not count.
func Remains(in Namespace) []Remainder {
	machines, mentioned := map[string]bool{}, map[string]bool{}
	for _, vm := range in.Machines {
		machines[vm.Name] = true
		for _, c := range slices.Concat(objects.ClaimNames(vm), objects.SharedClaims(vm)) {
			mentioned[c] = true
		}
	}
	pods, secrets := map[string]bool{}, map[string]bool{}
	for i := range in.Pods {
		if pod := &in.Pods[i]; !finished(pod) {
			pods[pod.Name] = true
			for _, c := range objects.PodClaims(pod) {
				mentioned[c] = true
			}
			for _, v := range pod.Spec.Volumes {
				if v.Secret != nil {
					secrets[v.Secret.SecretName] = true
				}
			}
		}
	}
	var out []Remainder
	for i := range in.Claims {
		c := &in.Claims[i]
		vm := c.Labels[names.LabelInstance]
		if c.Labels[names.LabelManagedBy] != names.ManagedBy || !abandoned(c, machines, pods) || mentioned[c.Name] || !claimOf(vm, c.Name) {
			continue
		}
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		if has, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
			size = has
		}
		out = append(out, Remainder{Kind: names.KindClaim, Name: c.Name, UID: c.UID, Machine: vm, Size: &size, Created: c.CreationTimestamp})
	}
	for i := range in.Secrets {
		s := &in.Secrets[i]
		vm := s.Labels[names.LabelInstance]
		if s.Labels[names.LabelComponent] != names.ComponentDisplaySecret || !abandoned(s, machines, pods) || secrets[s.Name] ||
			s.Name != objects.DisplaySecretName(vm) || !holdsPasswordOnly(s) {
			continue
		}
		out = append(out, Remainder{Kind: names.KindSecret, Name: s.Name, UID: s.UID, Machine: vm, Created: s.CreationTimestamp})
	}
	slices.SortFunc(out, func(a, b Remainder) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// abandoned reports whether an object was made, by its labels, for a machine that no longer
// exists, and has no other owner. A machine's pod may outlive it.
func abandoned(o metav1.Object, machines, pods map[string]bool) bool {
	vm := o.GetLabels()[names.LabelInstance]
	return o.GetLabels()[names.LabelName] == names.AppName && vm != "" && !machines[vm] && !pods[vm] &&
		len(o.GetOwnerReferences()) == 0 && o.GetDeletionTimestamp() == nil
}

// claimOf reports whether a claim has a name that the operator would give to one of a machine:
// that of a disk ends in -disk, or in -disk- and a number if the disk has no name. VM-Operator
// before version 3.4 put the machine's name after the disk's.
func claimOf(vm, claim string) bool {
	if claim == spec.RunnerDataClaimName(vm) || claim == objects.FormerClaim(vm, objects.RunnerDataDisk) {
		return true
	}
	disk, ok := strings.CutPrefix(claim, spec.DiskClaimName(vm, ""))
	if !ok {
		disk, ok = strings.CutSuffix(claim, objects.FormerClaim(vm, ""))
	}
	return ok && diskName(disk)
}

func diskName(s string) bool {
	if stem, ok := strings.CutSuffix(s, "-disk"); ok && stem != "" {
		return true
	}
	number, ok := strings.CutPrefix(s, "disk-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

func holdsPasswordOnly(s *corev1.Secret) bool {
	for k := range s.Data {
		if k != names.PasswordKey && k != names.PasswordExpiryKey {
			return false
		}
	}
	return s.Type == corev1.SecretTypeOpaque || s.Type == ""
}
