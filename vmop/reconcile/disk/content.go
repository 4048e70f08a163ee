package disk

import (
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *decision) content() bool {
	p := d.s.Pod
	if p != nil && !d.mine(p) {
		p = nil
	}
	if d.isFilled() || !needsFilling(d.disk) {
		if p != nil {
			d.end(p)
		}
		d.next.Import = nil
		if d.next.Progress = ""; d.isFilled() {
			d.next.Progress = "100%"
		}
		return true
	}
	if d.restored() && !d.restores() {
		if p != nil {
			d.end(p)
		}
		return false
	}
	if p != nil {
		d.attempt(p)
		return false
	}
	im := d.disk.Status.Import
	if source := d.disk.Spec.DataSource; source != nil && source.ObjectRef == nil && !d.uploaded() {
		if why, setting := objects.RefuseSource(source.Location(), &d.s.Settings.Allowed); why != "" {
			d.say(spec.DiskPending, metav1.ConditionFalse, conditions.ReasonDiskSourceNotAllowed, "%s; the operator's option %s allows it", why, setting)
			return false
		}
	}
	switch image := objects.ImporterImage(&d.s.Settings); {
	case objects.IsFormerRunner(image):
		d.say(spec.DiskPending, metav1.ConditionFalse, conditions.ReasonDiskProvisioning, "the operator has no image of a runner of ours, but %s: the administrator names one by its option runnerImage", image)
		return false
	case im != nil && im.Final:
		d.fail(conditions.ReasonDiskImportFailed, "%s; another attempt would end likewise: correct the source in another %s, and delete this one", im.Message, d.noun)
		return false
	case d.s.Pod != nil:
		d.plan.WakeAt(d.s.Now.Add(nameRetry))
		d.say(spec.DiskPending, metav1.ConditionFalse, conditions.ReasonDiskPodInTheWay, "there is a pod %s that is not this %s's: delete it, or name the %[2]s otherwise", d.s.Pod.Name, d.noun)
		return false
	case len(d.pods()) > 0:
		d.wait(conditions.ReasonDisksInUse, "claim %s is used by pod %s already, before the %s is in it: delete that first", d.s.Claim.Name, few(d.pods()), d.noun)
		return false
	}
	// What is restored from a snapshot no longer needs it.
	if !d.restored() && !d.source() {
		return false
	}
	if d.uploaded() {
		d.takeUpload(im)
		return false
	}
	if im != nil && im.FailedAt != nil {
		again := im.FailedAt.Add(reconcile.Backoff(importDelay, int(im.Attempts)))
		if d.s.Now.Before(again) {
			d.plan.WakeAt(again)
			d.wait(conditions.ReasonDiskImportFailed, "%s; this was attempt %d, and the next one is at %s", im.Message, im.Attempts, again.UTC().Format(time.RFC3339))
			return false
		}
	}
	if d.do(reconcile.Create{Object: d.importJob()}) {
		d.wait(conditions.ReasonDiskProvisioning, "pod %s is being made, which puts the %s into claim %s", d.podName, d.noun, d.s.Claim.Name)
	}
	return false
}
