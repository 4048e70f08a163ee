package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// machineWithDisks has any name and any disks.
func machineWithDisks(t *rapid.T, label string) *spec.VirtualMachine {
	name := rapid.StringMatching(`[a-z]([a-z0-]{0,6}[a-z0])?`)
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name.Draw(t, label+" name"), Namespace: "apps", UID: "uid-x"}}
	for range rapid.IntRange(0, 4).Draw(t, label+" disks") {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{Cdrom: &spec.Cdrom{}})
		case 1:
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: name.Draw(t, "claim")}})
		default:
			template := &spec.VolumeClaimTemplate{}
			template.Metadata.Name = rapid.SampledFrom([]string{"", "a", "system", "a-0", "0-a"}).Draw(t, "disk")
			template.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{VolumeClaimTemplate: template})
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, label+" references") {
		vm.Spec.BlockDeviceRefs = append(vm.Spec.BlockDeviceRefs, spec.BlockDeviceRef{Kind: spec.KindDisk, Name: name.Draw(t, "VirtualDisk")})
	}
	return vm
}

// referenced are the claims that the manifest names.
func referenced(vm *spec.VirtualMachine) []string {
	var out []string
	for _, r := range vm.Spec.BlockDeviceRefs {
		out = append(out, spec.VirtualDiskClaimName(r.Name))
	}
	for _, d := range vm.Spec.VM.Disks {
		if d.PersistentVolumeClaim != nil {
			out = append(out, d.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

// Whoever looks for the machines of a claim by its name and by what machines
// refer to finds all that use it.
func TestClaimLeadsToItsMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := machineWithDisks(t, "machine")
		names := objects.ClaimNames(vm)
		for _, claim := range names {
			if !slices.Contains(objects.ClaimMachines(claim), vm.Name) && !slices.Contains(referenced(vm), claim) {
				t.Errorf("claim %s does not lead to machine %s", claim, vm.Name)
			}
		}
		for _, claim := range referenced(vm) {
			if !slices.Contains(names, claim) {
				t.Errorf("claim %s is not among %q", claim, names)
			}
		}
	})
}

// A machine does not start while another pod may write to a claim that it is
// going to use, whatever names VM-Operator gave to the claims once.
func TestNoStartBesideAPodWithTheSameDisks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := machineWithDisks(t, "machine")
		vm.Spec.VM.State = spec.StateRunning
		vm.Spec.VM.MaximumCPUs = new(int32(1))
		spec.Default(vm)
		s := machine.Snapshot{VM: vm, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Password: "p"}
		claims := referenced(vm)
		// As VM-Operator had it before its version 3.4, and has it since.
		made := []string{"runner-data-" + vm.Name + "-0", vm.Name + "-runner-data"}
		for _, d := range machineconfig.Disks(vm) {
			if d.Entry.VolumeClaimTemplate != nil {
				made = append(made, d.Name+"-"+vm.Name+"-0", vm.Name+"-"+d.Name)
			}
		}
		for _, name := range made {
			if rapid.Bool().Draw(t, "there") {
				claims = append(claims, name)
			}
		}
		for _, name := range claims {
			claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps"}}
			claim.Status.Phase = corev1.ClaimBound
			claim.Labels = objects.InstanceLabels(vm.Name)
			fixture.OfReference(&claim, vm)
			s.Claims = append(s.Claims, claim)
		}
		s.ImageRepository = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: names.ImageRepositoryClaim, Namespace: "apps"}}
		// Make what is missing, until the machine would start.
		for range 5 {
			for _, a := range machine.Decide(s).Actions {
				switch a := a.(type) {
				case reconcile.SetFinalizers:
					vm.Finalizers = a.Finalizers
				case reconcile.UpdateClaim:
					for i := range s.Claims {
						if c := &s.Claims[i]; c.Name == a.Name && a.Annotations != nil {
							c.Annotations = a.Annotations
						}
					}
				case reconcile.Create:
					switch o := a.Object.(type) {
					case *corev1.ConfigMap:
						s.ConfigMap = o
					case *corev1.Secret:
						s.DisplaySecrets = append(s.DisplaySecrets, *o)
					case *corev1.PersistentVolumeClaim:
						o.Status.Phase = corev1.ClaimBound
						s.Claims = append(s.Claims, *o)
					}
				}
			}
		}
		plan := machine.Decide(s)
		if !plan.StartsPod() {
			if len(spec.Validate(vm)) == 0 {
				t.Fatalf("the machine does not start: %+v", plan.Statuses)
			}
			return // two disks with the same name
		}
		var own *corev1.Pod
		for _, a := range plan.Actions {
			if c, ok := a.(reconcile.Create); ok {
				own, _ = c.Object.(*corev1.Pod)
			}
		}
		// Any pod that has one of the claims keeps it from starting, and is one
		// that has to be looked for.
		for _, claim := range objects.PodClaims(own) {
			if claim == names.ImageRepositoryClaim {
				continue // many pods read it
			}
			other := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: vm.Name + "-other", Namespace: "apps", UID: "other"}}
			other.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}}
			if !machine.SharesDisks(vm, nil, &other) {
				t.Errorf("nobody looks for pods with claim %s", claim)
			}
			beside := s
			beside.Pods = []corev1.Pod{other}
			if machine.Decide(beside).StartsPod() {
				t.Errorf("the machine starts beside a pod with claim %s", claim)
			}
			other.Status.Phase = corev1.PodSucceeded
			if machine.SharesDisks(vm, nil, &other) {
				t.Errorf("a pod that has ended is looked for")
			}
		}
	})
}
