package machine_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// leftBy are the claims and the secret that the operator makes for a machine.
func leftBy(vm *spec.VirtualMachine) (claims []corev1.PersistentVolumeClaim, secret corev1.Secret) {
	claims = append(claims, *objects.RunnerDataClaim(vm, objects.Settings{}))
	for _, d := range machineconfig.Disks(vm) {
		if d.Entry.VolumeClaimTemplate != nil {
			claims = append(claims, *objects.DiskClaim(vm, d))
		}
	}
	return claims, *objects.DisplaySecret(vm, "secret")
}

// What a machine leaves is listed once it is gone, and nothing of it before: whatever
// another machine mentions or a pod uses is somebody's.
func TestRemains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gone, other := machineWithDisks(t, "gone"), machineWithDisks(t, "other")
		if gone.Name == other.Name {
			t.Skip("one machine")
		}
		var in machine.Namespace
		claims, secret := leftBy(gone)
		in.Claims, in.Secrets = claims, []corev1.Secret{secret}
		in.Machines = []*spec.VirtualMachine{gone, other}
		if got := machine.Remains(in); len(got) > 0 {
			t.Errorf("of machines that exist: %v", got)
		}
		in.Machines = in.Machines[1:]
		used := rapid.SampledFrom(append([]corev1.PersistentVolumeClaim{{}}, claims...)).Draw(t, "used").Name
		if used != "" {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}
			pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: used}}}}
			in.Pods = append(in.Pods, pod)
		}
		listed := map[string]bool{}
		for _, r := range machine.Remains(in) {
			listed[r.Kind+" "+r.Name] = true
			if r.Machine != gone.Name {
				t.Errorf("%s is said to be of machine %s", r.Name, r.Machine)
			}
			if r.Kind == names.KindClaim && (r.Name == used || slices.Contains(objects.ClaimNames(other), r.Name)) {
				t.Errorf("claim %s is in use", r.Name)
			}
		}
		if !listed["Secret "+secret.Name] {
			t.Errorf("secret %s is not listed", secret.Name)
		}
		for _, c := range claims {
			if !listed["PersistentVolumeClaim "+c.Name] && c.Name != used && !slices.Contains(objects.ClaimNames(other), c.Name) {
				t.Errorf("claim %s is not listed", c.Name)
			}
		}
	})
}

// What a machine has as a folder is no leftover of the one whose disk it was.
func TestSharedClaimIsNoRemainder(t *testing.T) {
	gone := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps"}}
	claims, _ := leftBy(gone)
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "apps"}}
	vm.Spec.VM.Shares = []spec.Share{{Tag: "old", PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: claims[0].Name}}}
	for _, r := range machine.Remains(machine.Namespace{Machines: []*spec.VirtualMachine{vm}, Claims: claims}) {
		if r.Name == claims[0].Name {
			t.Errorf("%+v", r)
		}
	}
}

// Labels alone make nothing a leftover.
func TestNoRemains(t *testing.T) {
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps"}}
	claims, secret := leftBy(vm)
	claim := claims[0]
	now := metav1.Now()
	for what, change := range map[string]func(c *corev1.PersistentVolumeClaim, s *corev1.Secret){
		"other names": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) {
			c.Name, s.Name = "backup-of-web", "password-of-web"
		},
		"names of another machine": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) {
			c.Name, s.Name = spec.RunnerDataClaimName("db"), objects.DisplaySecretName("db")
		},
		"no labels": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) { c.Labels, s.Labels = nil, nil },
		"no instance": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) {
			c.Labels[names.LabelInstance], s.Labels[names.LabelInstance] = "", ""
		},
		"another app": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) {
			c.Labels[names.LabelName], s.Labels[names.LabelName] = "backup", "backup"
		},
		"an owner": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) {
			owner := []metav1.OwnerReference{{Kind: "Backup", Name: "web", UID: types.UID("b")}}
			c.OwnerReferences, s.OwnerReferences = owner, owner
		},
		"on its way": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) {
			c.DeletionTimestamp, s.DeletionTimestamp = &now, &now
		},
		"other content": func(c *corev1.PersistentVolumeClaim, s *corev1.Secret) {
			c.Name = "web-data" // as no template's disk is called
			s.Data = map[string][]byte{"tls.key": nil}
		},
	} {
		c, s := claim.DeepCopy(), secret.DeepCopy()
		c.Labels, s.Labels = maps.Clone(c.Labels), maps.Clone(s.Labels)
		change(c, s)
		got := machine.Remains(machine.Namespace{Claims: []corev1.PersistentVolumeClaim{*c}, Secrets: []corev1.Secret{*s}})
		if len(got) > 0 {
			t.Errorf("%s: %v", what, got)
		}
	}
	// The pod of a machine that was deleted with --cascade=orphan runs on.
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if got := machine.Remains(machine.Namespace{Claims: claims, Secrets: []corev1.Secret{secret}, Pods: []corev1.Pod{pod}}); len(got) > 0 {
		t.Errorf("of a pod that runs: %v", got)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if got := machine.Remains(machine.Namespace{Claims: claims, Secrets: []corev1.Secret{secret}, Pods: []corev1.Pod{pod}}); len(got) != 2 {
		t.Errorf("of a pod that has ended: %v", got)
	}
	former := claim.DeepCopy()
	former.Name = objects.FormerClaim("web", "disk-0")
	if got := machine.Remains(machine.Namespace{Claims: []corev1.PersistentVolumeClaim{*former}}); len(got) != 1 {
		t.Errorf("VM-Operator's claim: %v", got)
	}
}
