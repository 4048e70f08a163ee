package disk

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	corev1 "k8s.io/api/core/v1"
)

func (d *decision) attempt(p *corev1.Pod) {
	im := d.disk.Status.Import
	counted := im != nil && im.PodUID == p.UID
	switch {
	case !counted && d.torn():
		// Nothing shows it once that pod has ended, and another attempt would take what this one
		// has left for its own.
		d.count(p, runnerconfig.Imported{Final: true, Error: fmt.Sprintf("VirtualDisk %s was used by pod %s while it was copied, so that the copy may be torn",
			d.disk.Spec.DataSource.ObjectRef.Name, few(d.sourceWriters()))})
	case counted || p.DeletionTimestamp != nil && !finished(p):
		d.wait(conditions.ReasonDiskProvisioning, "pod %s is ending; another one is made when it is gone", p.Name)
		switch {
		case d.uploaded():
			d.needUpload(im)
		case im != nil && im.Message != "":
			d.wait(conditions.ReasonDiskImportFailed, "%s; pod %s is ending, and another one is made when it is gone", im.Message, p.Name)
		}
		d.end(p)
	case p.Status.Phase == corev1.PodSucceeded && said(p).Error == "" && d.s.ClusterImage != nil && (len(said(p).SHA256) != 64 || said(p).Length <= 0):
		d.count(p, runnerconfig.Imported{Error: "the pod did not say which digest the image has: the runner's image is one of an earlier version"})
	case p.Status.Phase == corev1.PodSucceeded && said(p).Error == "" && d.unasked():
	case p.Status.Phase == corev1.PodSucceeded && said(p).Error == "":
		got := said(p)
		if d.disk.Spec.VolumeMode() != corev1.PersistentVolumeBlock {
			d.next.Format = got.Format
		}
		d.wait(conditions.ReasonDiskProvisioning, "the %s is in claim %s", d.noun, d.s.Claim.Name)
		d.do(reconcile.UpdateClaim{
			Name: d.s.Claim.Name, UID: d.s.Claim.UID, ResourceVersion: d.s.Claim.ResourceVersion,
			Annotations: d.marks(got),
		})
	case finished(p):
		d.failed(p)
	case d.uploaded():
		d.uploads(p)
	default:
		if why := machine.WaitsFor(p); why != "" {
			see := ""
			if d.restored() && d.s.Claim.Status.Phase != corev1.ClaimBound {
				see = ", and kubectl describe pvc " + d.s.Claim.Name
			}
			if d.in != "" {
				see += "; all in namespace " + d.s.Settings.ImageNamespace
			}
			d.wait(conditions.ReasonPodNotStarted, "claim %s waits for its pod: %s%s", d.s.Claim.Name, why, see)
			return
		}
		what := "makes an empty disk"
		if name := snapshotOf(d.disk.Spec.DataSource); name != "" {
			what = "looks at what was restored from VolumeSnapshot " + name
		} else if source := d.disk.Spec.DataSource; source != nil && source.ObjectRef != nil {
			what = "makes the " + d.noun + " of " + source.ObjectRef.Kind + " " + source.ObjectRef.Name
		} else if source != nil {
			what = "makes the " + d.noun + " of " + withoutQuery(source.Location())
		}
		d.wait(conditions.ReasonDiskProvisioning, "pod %s %s; see kubectl logs %s%s", p.Name, what, p.Name, d.in)
		d.progress()
	}
}

func (d *decision) failed(p *corev1.Pod) {
	got := said(p)
	if got.Error == "" {
		got.Error = "it ended without a disk"
	}
	if p.Status.Message != "" || p.Status.Reason != "" {
		got.Error = strings.TrimPrefix(strings.Join([]string{got.Error, p.Status.Reason, p.Status.Message}, "; "), "; ")
	}
	d.count(p, got)
}

// withoutQuery removes the parts of a URL that may contain a secret.
func withoutQuery(location string) string {
	location, _, _ = strings.Cut(location, "?")
	location, _, _ = strings.Cut(location, "#")
	return location
}
