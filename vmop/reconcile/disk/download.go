package disk

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// collectDelay is how often an object is polled that the garbage collector deletes.
const collectDelay = 10 * time.Second

// download answers each request for a download once, with a pod or with why there is none. A
// request does not wait for machines to stop: the user is informed, and requests it again.
func (d *decision) download() {
	if d.s.ClusterImage != nil {
		return
	}
	p, was, request := d.s.DownloadPod, d.disk.Status.Download, objects.DownloadRequest(d.object)
	if p != nil && d.mine(p) {
		d.gives(p)
		return
	}
	answered := was != nil && was.Request == request
	switch {
	case was != nil && !was.Phase.Final() && was.PodUID != "":
		d.downloadIs(was.Request, spec.DownloadEnded, was.PodUID, "its pod was deleted; ask again")
		return
	case request == "" || answered && was.Phase.Final():
		return
	}
	if why := d.noDownload(); why != "" {
		d.downloadIs(request, spec.DownloadRefused, "", "%s", why)
		return
	}
	d.downloadIs(request, spec.DownloadPending, "", "pod %s is being made, which gives it", objects.DownloadName(d.claimName))
	// A request is recorded before anything is created for it.
	if !answered {
		return
	}
	if k := d.s.DownloadKey; k != nil {
		d.plan.WakeAt(d.s.Now.Add(collectDelay))
		d.downloadIs(request, spec.DownloadPending, "", "Secret %s, of a pod that has ended, is being deleted", k.Name)
		return
	}
	d.makeForDownload(request, "", reconcile.Create{Object: d.filled.DownloadJob(d.s.Settings, d.format())})
}

func (d *decision) downloadIs(request string, phase spec.DownloadPhase, pod types.UID, format string, args ...any) {
	message := spec.BoundedMessage(fmt.Sprintf(format, args...))
	if len(message) > maxImportMessage {
		message = strings.ToValidUTF8(message[:maxImportMessage], "")
	}
	d.next.Download = &spec.VirtualDiskDownload{Request: request, Phase: phase, Message: message, PodUID: pod}
}

// makeForDownload creates an object for a download. A failure does not affect the disk itself.
func (d *decision) makeForDownload(request string, pod types.UID, a reconcile.Action) {
	if f := d.plan.Add(d.s.Failures, d.s.Now, a); f != nil {
		_, text := f.Told("download", d.disk.Namespace)
		d.downloadIs(request, spec.DownloadPending, pod, "%s", text)
	}
}

// format returns that of the download: a file's is recorded on the claim, whatever a guest has
// written to it.
func (d *decision) format() string {
	if d.filled.Block() {
		return "raw"
	}
	return cmp.Or(d.s.Claim.Annotations[names.AnnotationDiskFormat], "raw")
}

func (d *decision) noDownload() string {
	if image := objects.ImporterImage(&d.s.Settings); objects.IsFormerRunner(image) {
		return fmt.Sprintf("the operator has no image of a runner of ours, but %s: the administrator names one by its option runnerImage", image)
	}
	if !d.next.Phase.Usable() || needsFilling(d.disk) && !d.isFilled() {
		return fmt.Sprintf("the %s is not there: its condition Ready says why; ask again when it is", d.noun)
	}
	if who := d.reading(); who != "" {
		return who
	}
	if p := d.s.DownloadPod; p != nil {
		return fmt.Sprintf("there is a pod %s that is not this %s's: delete it, or name the %[2]s otherwise, and ask again", p.Name, d.noun)
	}
	if k := d.s.DownloadKey; k != nil && !d.mine(k) {
		return fmt.Sprintf("there is a Secret %s that was not made for this %s: delete it, or name the %[2]s otherwise, and ask again", k.Name, d.noun)
	}
	return ""
}

// reading returns why the disk cannot be read now: another pod has it and may write to it. Images
// are read-only.
func (d *decision) reading() string {
	if d.image != nil {
		return ""
	}
	others := unfinished(slices.DeleteFunc(slices.Clone(d.s.Users), func(p corev1.Pod) bool {
		return objects.OnlyCopies(&p, d.claimName)
	}))
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("the disk is used by %s, and nobody reads it beside: stop that machine, or detach the disk from it, and ask again", few(others))
}

// gives manages the pod that serves a download.
func (d *decision) gives(p *corev1.Pod) {
	was, request := d.disk.Status.Download, objects.DownloadRequest(p)
	if was != nil && was.PodUID == p.UID && was.Phase.Final() {
		d.end(p)
		return
	}
	if why := d.reading(); why != "" && !finished(p) {
		d.downloadIs(request, spec.DownloadRefused, p.UID, "%s", why)
		return
	}
	until := p.CreationTimestamp.Add(objects.TransferWait)
	why, name := machine.WaitsFor(p), objects.DownloadName(d.claimName)
	switch {
	case finished(p) && p.Status.Phase == corev1.PodSucceeded && said(p).Error == "":
		d.downloadIs(request, spec.DownloadEnded, p.UID, "it was downloaded")
	case finished(p):
		d.downloadIs(request, spec.DownloadEnded, p.UID, "%s; ask again", strings.TrimSuffix(strings.Join([]string{said(p).Error, p.Status.Reason, p.Status.Message}, "; "), "; "))
	case p.DeletionTimestamp != nil:
		d.downloadIs(request, spec.DownloadEnded, p.UID, "pod %s is being deleted; ask again", p.Name)
	case was == nil || was.PodUID != p.UID:
		// A pod gets its key only after its UID is in the status: so each request is served at
		// most once.
		d.downloadIs(request, spec.DownloadPending, p.UID, "pod %s is there, and gets its key", p.Name)
	case d.s.DownloadKey == nil:
		d.downloadIs(request, spec.DownloadPending, p.UID, "Secret %s is being made, with the key of the download", name)
		secret, certificate := d.filled.DownloadKey(p, d.s.Now)
		d.makeForDownload(request, p.UID, reconcile.Create{Object: secret, Certificate: &reconcile.Certificate{
			CommonName: certificate.CommonName, Hosts: certificate.Hosts, NotBefore: certificate.NotBefore, NotAfter: certificate.NotAfter,
		}})
	case !d.keyOf(p):
		d.downloadIs(request, spec.DownloadRefused, p.UID, "Secret %s is not that of pod %s: delete it, and ask again", name, p.Name)
	case why != "" && !d.s.Now.Before(until):
		d.downloadIs(request, spec.DownloadEnded, p.UID, "not started within %v: %s; ask again", objects.TransferWait, why)
	case why != "":
		d.plan.WakeAt(until)
		d.downloadIs(request, spec.DownloadPending, p.UID, "the download waits for its pod: %s", why)
	default:
		d.downloadIs(request, spec.DownloadReady, p.UID, "pod %s gives it, and ends when nobody has gone on with it for %v; see kubectl logs %[1]s", p.Name, objects.TransferWait)
	}
}

// keyOf reports whether the Secret is that of the pod, with a key.
func (d *decision) keyOf(p *corev1.Pod) bool {
	k := d.s.DownloadKey
	return d.mine(k) && objects.ExportFingerprint(k) != "" && len(k.OwnerReferences) == 1 && k.OwnerReferences[0].UID == p.UID
}
