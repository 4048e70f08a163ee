package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/spec"
)

// Foresee returns the differences between a machine of a cluster and a proposed version of it,
// and how each is applied while the machine runs: what [Decide] would have wait for a restart
// does, all else is live. Of the snapshot it needs the machine, its pods, claims, classes and
// attachments; the claims are those of both manifests. For a machine that does not run, or whose
// started manifest is not known, the result is that for a cluster without special abilities.
func Foresee(s Snapshot, proposed *spec.VirtualMachine) []changes.Change {
	before := s.VM
	plainly := func() []changes.Change { return changes.Between(before, proposed, changes.Options{}) }
	if before == nil || proposed == nil || before.DeletionTimestamp != nil {
		return plainly()
	}
	after := *proposed
	after.Namespace, after.Name, after.UID, after.Status = before.Namespace, before.Name, before.UID, before.Status
	s.VM = &after
	d := begin(&s)
	if !d.pod.exists() || d.pod.state == podOrphaned || len(spec.ValidateAmended(d.manifest)) > 0 {
		return plainly()
	}
	then := startedWith(d.pod.pod.Annotations[names.AnnotationStarted])
	if then == nil {
		return plainly()
	}
	d.findChanges(then.Spec)
	return changes.Proposed(before, proposed, d.awaiting, changes.Options{Pod: d.inPod()})
}
