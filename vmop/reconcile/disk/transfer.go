package disk

import (
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// takeUpload creates the pod for an upload, once for each request: without requests nothing runs.
func (d *decision) takeUpload(im *spec.VirtualDiskImport) {
	request := objects.UploadRequest(d.object)
	if request == "" || im != nil && im.Request == request {
		d.needUpload(im)
		return
	}
	if d.key() && d.do(reconcile.Create{Object: d.filled.ImportJob(d.s.Settings, d.s.SourceClaim)}) {
		d.say(spec.DiskWaitForUserUpload, metav1.ConditionFalse, conditions.ReasonPodNotStarted, "pod %s is being made, which waits for the upload", d.podName)
	}
}

// key ensures the Secret with the key of uploads and downloads. It reports whether it exists.
func (d *decision) key() bool {
	k := d.s.TransferKey
	switch {
	case k == nil:
		secret, certificate := d.filled.TransferKey(d.s.Now)
		if d.do(reconcile.Create{Object: secret, Certificate: &reconcile.Certificate{
			CommonName: certificate.CommonName, Hosts: certificate.Hosts, NotBefore: certificate.NotBefore, NotAfter: certificate.NotAfter,
		}}) {
			d.say(d.next.Phase, metav1.ConditionFalse, conditions.ReasonPodNotStarted, "Secret %s is being made, with the key of the upload", secret.Name)
		}
		return false
	case !d.mine(k) || objects.ExportFingerprint(k) == "":
		d.plan.WakeAt(d.s.Now.Add(nameRetry))
		d.say(spec.DiskPending, metav1.ConditionFalse, conditions.ReasonDiskSecretInTheWay,
			"there is a Secret %s that was not made for this %s, or has no key: delete it, or name the %[2]s otherwise", k.Name, d.noun)
		return false
	}
	return true
}

// uploads manages a pod for an upload that has not ended.
func (d *decision) uploads(p *corev1.Pod) {
	until := p.CreationTimestamp.Add(objects.TransferWait)
	switch why := machine.WaitsFor(p); {
	case why != "" && !d.s.Now.Before(until):
		// The request is over: the client no longer waits.
		d.count(p, runnerconfig.Imported{Error: fmt.Sprintf("not started within %v: %s", objects.TransferWait, why)})
	case why != "":
		d.plan.WakeAt(until)
		d.say(spec.DiskWaitForUserUpload, metav1.ConditionFalse, conditions.ReasonPodNotStarted, "the upload waits for its pod: %s", why)
	case d.s.Progress != nil:
		d.wait(conditions.ReasonDiskProvisioning, "pod %s makes the %s of what is uploaded; an upload that is cut off can be gone on with within %v; see kubectl logs %[1]s", p.Name, d.noun, objects.TransferWait)
		d.progress()
	default:
		d.say(spec.DiskWaitForUserUpload, metav1.ConditionFalse, conditions.ReasonDiskUploadAwaited, "pod %s waits for the upload until %s: %s", p.Name, until.UTC().Format(time.RFC3339), d.command())
		d.progress()
	}
}
