package disk

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// importDelay is the pause after an attempt to fill a disk that has failed. It
	// doubles, up to five minutes.
	importDelay = 10 * time.Second
	// progressDelay is how often a disk that is being made is looked at, for how far it
	// is.
	progressDelay = 10 * time.Second
	// sourceDelay is how often a disk is looked at that others are a copy of.
	sourceDelay = 10 * time.Second
	// importGrace is what a pod that is not needed any more has to end in, in seconds.
	importGrace = 5
)

// Decide is total and deterministic: equal snapshots give equal plans, and the snapshot
// is not changed. Without a disk there is nothing to do.
func Decide(s Snapshot) reconcile.Plan {
	subject := subjectOf(&s)
	if subject.object == nil {
		return reconcile.Plan{}
	}
	d := &decision{s: &s, subject: subject, next: *subject.disk.Status.DeepCopy()}
	d.next.ObservedGeneration = d.disk.Generation
	d.attachments()
	if d.disk.DeletionTimestamp != nil {
		d.deleted()
	} else {
		d.alive()
		d.download()
	}
	d.serve()
	if next, changed := d.status(); changed && !d.gone {
		d.plan.Statuses = []reconcile.StatusApply{reconcile.StatusOf(d.kind, d.object, names.OperatorStatusManager, next)}
	}
	return d.plan
}

// decision is the state of one call of Decide.
type decision struct {
	s *Snapshot
	subject
	// next is the status that the disk gets.
	next spec.VirtualDiskStatus
	plan reconcile.Plan
	// gone: the disk is let go, and has no status any more.
	gone bool
}

// alive brings the disk about.
func (d *decision) alive() {
	if d.s.Unreadable != "" {
		d.fail(conditions.ReasonInvalidSpecification, "%s; correct it", d.s.Unreadable)
		return
	}
	if errs := d.validate(); len(errs) > 0 {
		d.fail(conditions.ReasonInvalidSpecification, "%v", errs.ToAggregate())
		return
	}
	if !d.held() {
		d.wait(conditions.ReasonDiskProvisioning, "claim %s is about to be made", d.claimName)
		d.do(reconcile.SetFinalizers{
			Kind: d.kind, Name: d.disk.Name, UID: d.disk.UID, ResourceVersion: d.disk.ResourceVersion,
			Finalizers: append(slices.Clone(d.disk.Finalizers), d.finalizer),
		})
		return
	}
	if d.claim() && d.content() {
		d.ready()
	}
	d.size()
}

func (d *decision) held() bool { return slices.Contains(d.disk.Finalizers, d.finalizer) }

// mine reports whether an object was made for this very disk: nothing but the making of
// one says so.
func (d *decision) mine(o metav1.Object) bool {
	return d.disk.UID != "" && o.GetAnnotations()[names.AnnotationMadeFor] == string(d.disk.UID)
}

// isFilled reports whether the disk is in its claim.
func (d *decision) isFilled() bool {
	return d.s.Claim != nil && d.s.Claim.Annotations[names.AnnotationFilled] == string(d.disk.UID)
}

// needsFilling reports whether something has to be put into the claim of a disk.
func needsFilling(disk *spec.VirtualDisk) bool {
	return disk.Spec.DataSource != nil || disk.Spec.VolumeMode() == corev1.PersistentVolumeFilesystem
}
