package disk

import (
	"slices"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deleted releases the disk when no machine has it. Its claim is left to the garbage collector:
// it is deleted with its owner, or stays if the disk is deleted with --cascade=orphan.
func (d *decision) deleted() {
	if !d.held() {
		d.gone = true
		return
	}
	if p := d.s.DownloadPod; p != nil && d.mine(p) {
		d.end(p) // it uses the disk, too
	}
	if all := d.users(); len(all) > 0 {
		d.say(spec.DiskTerminating, metav1.ConditionFalse, conditions.ReasonDiskAttached,
			"it is being deleted, and kept while "+d.heldText, few(all))
		return
	}
	if p := d.s.Pod; p != nil && d.mine(p) {
		d.say(spec.DiskTerminating, metav1.ConditionFalse, conditions.ReasonDiskDeleting, "it is being deleted when pod %s has ended", p.Name)
		d.end(p)
		return
	}
	if d.do(reconcile.SetFinalizers{
		Kind: d.kind, Name: d.disk.Name, UID: d.disk.UID, ResourceVersion: d.disk.ResourceVersion,
		Finalizers: slices.DeleteFunc(slices.Clone(d.disk.Finalizers), func(f string) bool { return f == d.finalizer }), Releases: true,
	}) {
		d.gone = true
	}
}

func (d *decision) end(p *corev1.Pod) {
	if p.DeletionTimestamp == nil {
		d.do(reconcile.DeletePod{Name: p.Name, UID: p.UID, GraceSeconds: importGrace})
	}
}
