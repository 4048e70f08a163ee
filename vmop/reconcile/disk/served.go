package disk

import (
	"cmp"
	"slices"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A claim cannot be mounted in another namespace than its own. So a disk that is made of an image
// of the cluster has a key ([objects.CopyKey]) in its namespace, and the image a pod for that key
// ([objects.ServerJob]) in its own, which serves the image while the disk is being made. Each of
// the two decides about its own namespace, and observes what the other has created.

// maxServers bounds the concurrent copies of an image of the cluster: if its claim is on one
// node, so are all servers. maxServersOfOne bounds those for one namespace, whose copies may wait
// long, so that the others need not wait for them.
const (
	maxServers      = 8
	maxServersOfOne = maxServers / 2
)

// CopierOf returns what a disk or image needs of the image of the cluster that it is made of,
// whose key is in a Secret; wanted is false if it needs nothing, or nothing yet.
func CopierOf(s *Snapshot, key *corev1.Secret) (c objects.Copier, wanted bool) {
	if s == nil {
		return c, false
	}
	d := subjectOf(s)
	if d.object == nil || key == nil || !keyOf(key, d.disk.UID) || d.disk.DeletionTimestamp != nil {
		return c, false
	}
	if p := d.disk.Status.Phase; p != spec.DiskPending && p != spec.DiskProvisioning || ClusterImageOf(d.disk.Spec.DataSource) == "" {
		return c, false
	}
	c = objects.Copier{Kind: d.kind, Namespace: d.disk.Namespace, Name: d.disk.Name, UID: d.disk.UID, Key: objects.ExportFingerprint(key)}
	return c, c.Key != ""
}

// ClusterImageOf returns the image of the cluster that a source names, or "".
func ClusterImageOf(source *spec.VirtualDiskSource) string {
	if source == nil || source.ObjectRef == nil || source.ObjectRef.Kind != spec.KindClusterImage {
		return ""
	}
	return source.ObjectRef.Name
}

func keyOf(s *corev1.Secret, uid types.UID) bool {
	return s != nil && uid != "" && s.Annotations[names.AnnotationMadeFor] == string(uid) && s.DeletionTimestamp == nil
}

// serve ensures the servers of an image of the cluster for those who want it, and deletes others.
func (d *decision) serve() {
	i := d.s.ClusterImage
	if i == nil {
		return
	}
	served, of := map[objects.Copier]bool{}, map[string]int{}
	serves := func(to objects.Copier) {
		if !served[to] {
			of[to.Namespace]++
		}
		served[to] = true
	}
	for n := range d.s.Servers {
		p := &d.s.Servers[n]
		to := objects.ServedBy(p)
		switch {
		case !d.mine(p):
		case !slices.Contains(d.s.Copiers, to) || finished(p):
			d.end(p)
			serves(to) // until it is deleted
		default:
			serves(to)
		}
	}
	if d.disk.DeletionTimestamp != nil || d.next.Phase != spec.DiskReady {
		return
	}
	wait := slices.Clone(d.s.Copiers)
	slices.SortFunc(wait, func(a, b objects.Copier) int { return cmp.Compare(a.String(), b.String()) })
	for _, to := range wait {
		if served[to] || len(served) >= maxServers || of[to.Namespace] >= maxServersOfOne {
			continue
		}
		if d.s.ServerKey == nil {
			secret, certificate := objects.ServerKey(i, d.s.Settings.ImageNamespace, d.s.Now)
			d.make(reconcile.Create{Object: secret, Certificate: (*reconcile.Certificate)(&certificate)})
			return // the pods' use of them must be observed first
		}
		if !keyOf(d.s.ServerKey, i.UID) {
			d.plan.WakeAt(d.s.Now.Add(nameRetry))
			return
		}
		d.make(reconcile.Create{Object: objects.ServerJob(i, to, d.s.Settings)})
		serves(to)
	}
}

// make adds an action that does not affect whether the image is ready.
func (d *decision) make(a reconcile.Action) {
	if f := reconcile.Refused(d.s.Failures, a.Target(), d.s.Now); f != nil {
		d.plan.WakeAt(f.RetryAt())
		_, text := f.Told(d.noun, d.s.Settings.ImageNamespace)
		d.condition(conditions.DiskInUse, metav1.ConditionUnknown, conditions.ReasonWriteRefused, "it is not served to those who copy it: %s", text)
		return
	}
	d.plan.Actions = append(d.plan.Actions, a)
}

// server reports whether the image of the cluster is served to the disk that is made of it, and
// requests that.
func (d *decision) server(image string, c *corev1.PersistentVolumeClaim, wait func(reason, format string, args ...any) bool) bool {
	switch {
	case c.Annotations[names.AnnotationImageDigest] == "":
		return wait(conditions.ReasonDiskSourceNotReady, "has no digest: a runner of an earlier version has fetched it; make another one")
	case d.s.Key == nil:
		secret, certificate := d.filled.CopyKey(image, d.s.Now)
		if d.do(reconcile.Create{Object: secret, Certificate: (*reconcile.Certificate)(&certificate)}) {
			return wait(conditions.ReasonDiskProvisioning, "is about to be served from namespace %s", d.s.Settings.ImageNamespace)
		}
		return false
	case !keyOf(d.s.Key, d.disk.UID):
		return wait(conditions.ReasonDiskSourceNotReady, "is served to nobody else: Secret %s was not made for this %s; delete that", d.s.Key.Name, d.noun)
	case d.s.Server == nil || d.s.ServerKey == nil || objects.ServedBy(d.s.Server).Key != objects.ExportFingerprint(d.s.Key):
		return wait(conditions.ReasonDiskProvisioning, "is served to %d at a time and %d of one namespace, and then to this one; see kubectl describe cvi %s", maxServers, maxServersOfOne, image)
	case !ready(d.s.Server):
		return wait(conditions.ReasonDiskProvisioning, "has no server yet: %s; see kubectl describe pod %s -n %s",
			cmp.Or(machine.WaitsFor(d.s.Server), "it has just started"), d.s.Server.Name, d.s.Settings.ImageNamespace)
	}
	return true
}

func ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.PodIP != "" && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (d *decision) importJob() *corev1.Pod {
	switch {
	case d.s.Claim.Annotations[names.AnnotationCloneOf] != "":
		return d.filled.CloneJob(d.s.Settings, d.s.Claim, d.s.SourceClaim)
	case ClusterImageOf(d.disk.Spec.DataSource) == "":
		return d.filled.ImportJob(d.s.Settings, d.s.SourceClaim)
	}
	return d.filled.CopyJob(d.s.Settings, objects.Server{Address: d.s.Server.Status.PodIP, Key: objects.ExportFingerprint(d.s.ServerKey), Claim: d.s.SourceClaim})
}
