package machine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// goingWith is a machine that is being deleted and whose guest has ended, with the
// claims that were made for it.
func goingWith(vm *spec.VirtualMachine, policy spec.DeletionPolicy) machine.Snapshot {
	vm = vm.DeepCopy()
	now := metav1.Now()
	vm.DeletionTimestamp, vm.Finalizers = &now, []string{names.FinalizerMachine}
	vm.ResourceVersion, vm.Spec.DeletionPolicy = "7", policy
	claims, _ := leftBy(vm)
	for i := range claims {
		claims[i].UID, claims[i].ResourceVersion = "uid-"+vm.UID, "5"
		claims[i].Annotations = map[string]string{names.AnnotationMadeFor: string(vm.UID)}
	}
	_, secret := leftBy(vm)
	secret.UID, secret.ResourceVersion = "uid-secret", "6"
	secret.Annotations = map[string]string{names.AnnotationMadeFor: string(vm.UID)}
	return machine.Snapshot{VM: vm, Claims: claims, DisplaySecrets: []corev1.Secret{secret}, Now: now.Time}
}

func deletedSecrets(p reconcile.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		if d, is := a.(reconcile.DeleteSecret); is {
			out = append(out, d.Name)
		}
	}
	return out
}

func deletedClaims(p reconcile.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		if d, is := a.(reconcile.DeleteClaim); is {
			out = append(out, d.Name)
		}
	}
	return out
}

// Whatever machine is deleted, and whatever of its claims is whose: a plan deletes
// those that were made for it, that nobody else mentions or uses, if its manifest asks
// for it, and lets the machine go with them.
func TestDisksGoWithTheirMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]spec.DeletionPolicy{"", spec.DeletionRetain, spec.DeletionDelete, spec.DeletionDelete, spec.DeletionDelete}).Draw(t, "policy")
		s := goingWith(machineWithDisks(t, "machine"), policy)
		orphan := rapid.IntRange(0, 5).Draw(t, "orphan") == 0
		if orphan {
			s.VM.Finalizers = append(s.VM.Finalizers, metav1.FinalizerOrphanDependents)
		}
		slices.SortFunc(s.Claims, func(a, b corev1.PersistentVolumeClaim) int { return strings.Compare(a.Name, b.Name) })
		s.Claims = slices.CompactFunc(s.Claims, func(a, b corev1.PersistentVolumeClaim) bool { return a.Name == b.Name })
		var want []string
		for i := range s.Claims {
			c := &s.Claims[i]
			switch rapid.IntRange(0, 6).Draw(t, "claim") {
			case 0:
				c.Annotations = nil
			case 1:
				c.Annotations[names.AnnotationMadeFor] = "uid of a former machine"
			case 2:
				s.Mentioned = append(s.Mentioned, c.Name)
			case 3:
				pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}
				pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}}}
				s.Pods = append(s.Pods, pod)
			default:
				want = append(want, c.Name)
			}
		}
		secret, wantSecrets := &s.DisplaySecrets[0], []string(nil)
		switch rapid.IntRange(0, 7).Draw(t, "secret") {
		case 0:
			secret.Annotations = nil
		case 1:
			secret.Annotations[names.AnnotationMadeFor] = "uid of a former machine"
		case 2:
			secret.Name = "somebodys-own"
		case 3:
			secret.Data = map[string][]byte{names.PasswordKey: nil, "token": nil}
		case 4:
			s.Failures = []reconcile.Failure{{Target: reconcile.DeleteSecret{Name: secret.Name}.Target(), Reason: "Forbidden", Count: 1, Last: s.Now}}
		default:
			wantSecrets = []string{secret.Name}
		}
		if policy != spec.DeletionDelete || orphan {
			want, wantSecrets = nil, nil
		}
		if rapid.Bool().Draw(t, "condensed") {
			s.DisplaySecrets[0] = *machine.CondenseSecret(secret)
		}
		p := machine.Decide(s)
		if got := deletedSecrets(p); !slices.Equal(got, wantSecrets) {
			t.Errorf("secrets %v are deleted, not %v", got, wantSecrets)
		}
		got := deletedClaims(p)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%v are deleted, not %v", got, want)
		}
		if !p.Releases() {
			t.Error("the machine stays")
		}
	})
}

// While the guest shuts down its disks stay, and before the right to delete them is
// there the machine says so, and an event which command gives it.
func TestDisksWait(t *testing.T) {
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps", UID: "u"}}
	s := goingWith(vm, spec.DeletionDelete)
	s.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
		Name: "web", UID: "p", DeletionTimestamp: s.VM.DeletionTimestamp, OwnerReferences: []metav1.OwnerReference{{UID: "u"}},
	}}}
	s.Pod().Status.Phase = corev1.PodRunning
	if p := machine.Decide(s); len(deletedClaims(p)) > 0 || len(deletedSecrets(p)) > 0 || p.Releases() {
		t.Errorf("while the guest shuts down: %+v", p.Actions)
	}
	s.Pods = nil
	if got := deletedClaims(machine.Decide(s)); !slices.Equal(got, []string{"web-runner-data"}) {
		t.Errorf("deleted: %v", got)
	}
	s.Failures = []reconcile.Failure{{
		Target: reconcile.DeleteClaim{Name: "web-runner-data"}.Target(), Reason: "Forbidden", Count: 1, Last: s.Now,
		Message: `persistentvolumeclaims "web-runner-data" is forbidden: User "system:serviceaccount:vmop-system:vmop-operator" cannot delete resource "persistentvolumeclaims" in API group "" in the namespace "apps"`,
	}}
	p := machine.Decide(s)
	if slices.ContainsFunc(p.Actions, func(a reconcile.Action) bool { _, is := a.(reconcile.SetFinalizers); return is }) {
		t.Errorf("the machine goes without its disks: %+v", p.Actions)
	}
	const command = "kubectl create rolebinding vmop-claims-operator -n apps --clusterrole=vmop-operator-claims --serviceaccount=vmop-system:vmop-operator"
	if len(p.Statuses) == 0 || !slices.ContainsFunc(p.Statuses[0].Status["conditions"].([]any), func(c any) bool {
		m := c.(map[string]any)
		return m["type"] == spec.ConditionBlockDevicesReady && m["reason"] == spec.ReasonNamespaceNotPrepared && strings.Contains(m["message"].(string), "deploy/components/delete-claims")
	}) {
		t.Errorf("the status does not say what is missing: %+v", p.Statuses)
	}
	if !slices.ContainsFunc(p.Events, func(e reconcile.Event) bool {
		return strings.Contains(e.Note, "; run: "+command+"; or: kubectl patch vm web -n apps ")
	}) {
		t.Errorf("no event says %q: %+v", command, p.Events)
	}
	if p := machine.Decide(goingWith(vm, "")); len(deletedClaims(p)) > 0 || !p.Releases() {
		t.Errorf("without a policy: %+v", p.Actions)
	}
}
