package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletesDisks reports whether a machine that is deleted now takes its disks with it.
func DeletesDisks(vm *spec.VirtualMachine) bool {
	return vm.Spec.DeletionPolicy == spec.DeletionDelete && !slices.Contains(vm.Finalizers, metav1.FinalizerOrphanDependents)
}

// MadeClaims are the names of the claims that the operator makes for a machine: those
// of its templates and the one with the runner's data.
func MadeClaims(vm *spec.VirtualMachine) []string {
	out := []string{spec.RunnerDataClaimName(vm.Name)}
	for _, d := range machineconfig.Disks(vm) {
		if d.Entry.Template() != nil {
			out = append(out, d.Claim)
		}
	}
	slices.Sort(out) // an invalid manifest may name one twice
	return slices.Compact(out)
}

// deleteDisks deletes the claims of a machine whose guest has ended, if its manifest
// says so: those that were made for it, by the UID that they were made with, and that
// nobody else has a use for. It reports whether all of them are on their way.
//
// The runner's data goes with the disks: it is about them, and a machine of the same
// name would look for disks that are no more.
func (d *decision) deleteDisks() bool {
	if !DeletesDisks(d.s.VM) {
		return true
	}
	all := true
	secret, kept := d.deleteSecret()
	var deleted []string
	for _, name := range MadeClaims(d.vm) {
		pvc := d.claim(name)
		if pvc == nil || pvc.DeletionTimestamp != nil {
			continue
		}
		if why := d.keeps(pvc); why != "" {
			kept = append(kept, fmt.Sprintf("claim %s (%s)", name, why))
			continue
		}
		deleted = append(deleted, name)
		all = d.do(reconcile.DeleteClaim{Name: name, UID: pvc.UID, ResourceVersion: pvc.ResourceVersion}, &d.devices) && all
	}
	if !all || !d.held() {
		return all
	}
	if len(deleted) > 0 {
		d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: "ClaimsDeleted", Action: "Delete",
			Note: "the machine is gone, and its volume claims with it: " + strings.Join(deleted, ", ") + secret + "; spec.deletionPolicy is Delete"})
	}
	if len(kept) > 0 {
		d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: "ClaimsKept", Action: "Delete",
			Note: "spec.deletionPolicy is Delete, and these are kept: " + strings.Join(kept, ", ") + "; vmop-cli leftovers lists what nobody uses"})
	}
	return true
}

// deleteSecret deletes the display secret that was made for a machine, and comes before
// its claims: a refusal keeps the secret, which is a password and no data, and nothing
// else. What it returns ends what is told of what was deleted, or begins what is told
// of what is kept.
func (d *decision) deleteSecret() (deleted string, kept []string) {
	own := objects.DisplaySecretName(d.vm.Name)
	for i := range d.s.DisplaySecrets {
		s := &d.s.DisplaySecrets[i]
		switch {
		case s.Name != own || s.DeletionTimestamp != nil:
		case d.s.VM.UID == "" || s.Annotations[names.AnnotationMadeFor] != string(d.s.VM.UID) || len(s.OwnerReferences) > 0 || !holdsPasswordOnly(s):
			kept = append(kept, "secret "+s.Name+" (it was not made for this machine, or has more than a password)")
		case !d.do(reconcile.DeleteSecret{Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion}, new(finding)):
			kept = append(kept, "secret "+s.Name+" (the operator may not delete it)")
		default:
			deleted = ", and the secret " + s.Name
		}
	}
	return deleted, kept
}

// keeps says why a claim is not deleted; empty if it is.
func (d *decision) keeps(pvc *corev1.PersistentVolumeClaim) string {
	if uid := d.s.VM.UID; uid == "" || pvc.Annotations[names.AnnotationMadeFor] != string(uid) || len(pvc.OwnerReferences) > 0 {
		return "it was not made for this machine"
	}
	if slices.Contains(d.s.Mentioned, pvc.Name) {
		return "another machine mentions it"
	}
	for i := range d.s.Pods {
		if pod := &d.s.Pods[i]; !finished(pod) && slices.Contains(objects.PodClaims(pod), pvc.Name) {
			return "pod " + pod.Name + " uses it"
		}
	}
	return ""
}

// mayNotDelete explains that the operator has no right to delete claims, which
// nobody gives it by installing it.
func (d *decision) mayNotDelete(f *reconcile.Failure, about *finding) bool {
	if f.Target.Verb != "delete" || f.Target.Kind != names.KindClaim { // a secret is kept then
		return false
	}
	namespace, user := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault), "OPERATOR"
	if _, u, ok := strings.Cut(f.Message, ` is forbidden: User "`); ok {
		if u, _, ok = strings.Cut(u, `" cannot `); ok && !strings.ContainsAny(u, " '\"\n\\$`;&|") {
			user = u
		}
	}
	if about.problem(spec.ReasonNamespaceNotPrepared, named(kindRoleBinding, names.ClaimsBinding),
		"%s: the operator may not; make role binding %s as deploy/components/delete-claims does, or set spec.deletionPolicy to Retain", f.Target, names.ClaimsBinding) {
		about.further = fmt.Sprintf("; run: %s; or: kubectl patch vm %s -n %s --type=merge -p '{\"spec\":{\"deletionPolicy\":\"Retain\"}}'",
			bindCleaner(namespace, user), d.vm.Name, namespace)
	}
	return true
}

func bindCleaner(namespace, user string) string {
	return "kubectl create rolebinding " + names.ClaimsBinding + " -n " + namespace + " --clusterrole=vmop-operator-claims " + asSubject(user)
}
