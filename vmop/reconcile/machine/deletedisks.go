package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// MadeClaims returns the names of the claims that the operator creates for a machine: those of
// its templates and the one with the runner's data.
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

// deleteDisks deletes the claims of a machine whose guest has ended, if its manifest says so:
// those created for it, by the UID recorded on them, and not used otherwise. It reports whether
// all of them are being deleted.
//
// The runner's data goes with the disks: it describes them, and a machine of the same name would
// expect disks that no longer exist.
func (d *decision) deleteDisks() bool {
	if !DeletesDisks(d.s.VM) || d.disowned() {
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

// disowned reports whether the garbage collector has orphaned what belongs to the machine, which is
// being deleted with --cascade=orphan. It removes its own finalizer afterwards, so that the machine
// does not show it; the operator writes the owner of the ConfigMap again while the machine is wanted.
func (d *decision) disowned() bool {
	cm := d.s.ConfigMap
	return cm != nil && cm.DeletionTimestamp == nil && d.ours(cm) && !d.owned(cm)
}

// deleteSecret deletes the display secret created for a machine, before its claims: after a
// refusal only the secret remains, a password and no data. The results are texts for the event:
// deleted ends what it says was deleted, kept begins what was kept.
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
