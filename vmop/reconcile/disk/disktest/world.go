package disktest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// state is what an API server has of one disk, or a cache of it. Objects are never modified.
type state struct {
	disk     *spec.VirtualDisk
	claim    *corev1.PersistentVolumeClaim
	pod      *corev1.Pod
	machines []string
	user     *corev1.Pod
	key      *corev1.Secret
	// giver is the pod that serves a download, and giverKey the Secret with its key.
	giver    *corev1.Pod
	giverKey *corev1.Secret
	// snapshot is the volume snapshot that it is made of, and access why it is not known.
	snapshot *disk.VolumeSnapshot
	access   disk.SnapshotAccess
	// guest is the size that the runner of machine web reports; nil if none.
	guest *resource.Quantity
}

// world is one disk, its operator, and other clients.
type world struct {
	promises.World[disk.Snapshot]
	truth, cache state
	settings     objects.Settings
	// image: the disk is an image; cluster: one of the cluster.
	image, cluster bool
	// restores: the disk is made of a snapshot, by the storage class's provisioner. wellRestored
	// are the claims, by UID, whose volumes have the snapshot's content.
	restores     bool
	provisioner  string
	wellRestored map[types.UID]bool
	// stale: caches may lack the operator's own writes.
	stale bool
	// dirty: the caches of this operator must be updated first.
	dirty bool
	// held are the claims, by UID, with data: filled, or never created for a disk.
	held map[types.UID]string
	// said is the progress that the pod reports.
	said *runnerconfig.ImportProgress
}

func newWorld() *world {
	return &world{World: promises.World[disk.Snapshot]{Decide: disk.Decide, Now: noon}, held: map[types.UID]string{}, wellRestored: map[types.UID]bool{}, settings: objects.Settings{RunnerImage: "registry.test/runner", ImageNamespace: "golden"}}
}

const theDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func choose[T any](w *world, label string, from ...T) T { return from[w.Draw(label, len(from))] }

var aKey = sync.OnceValue(func() map[string][]byte {
	data, err := displaycert.Make(&reconcile.Certificate{CommonName: "a", NotBefore: noon, NotAfter: noon.Add(time.Hour)})
	if err != nil {
		panic(err)
	}
	return data
})

func (w *world) see(which int) {
	switch which {
	case 0:
		w.cache.disk = w.truth.disk
	case 1:
		w.cache.claim = w.truth.claim
	case 2:
		w.cache.pod, w.cache.key = w.truth.pod, w.truth.key
		w.cache.giver, w.cache.giverKey = w.truth.giver, w.truth.giverKey
	case 3:
		w.cache.machines, w.cache.user, w.cache.guest = w.truth.machines, w.truth.user, w.truth.guest
	default:
		w.cache, w.dirty = w.truth, false
	}
}

func (w *world) snapshot() disk.Snapshot {
	s := disk.Snapshot{Settings: w.settings, Claim: w.cache.claim, Pod: w.cache.pod, Machines: w.cache.machines, TransferKey: w.cache.key, DownloadPod: w.cache.giver, DownloadKey: w.cache.giverKey, Now: w.Now}
	switch {
	case w.cluster:
		i := imageOf(w.cache.disk)
		if i.Status.Size != nil { // it is reported with the size
			i.Status.SHA256 = theDigest
		}
		s.ClusterImage = &spec.ClusterVirtualImage{ObjectMeta: i.ObjectMeta, Spec: i.Spec, Status: i.Status}
	case w.image:
		s.Image = imageOf(w.cache.disk)
	default:
		s.Disk = w.cache.disk
	}
	if w.cache.user != nil {
		s.Users = []corev1.Pod{*w.cache.user}
	}
	if g := w.cache.giver; g != nil && g.Status.Phase != corev1.PodSucceeded && g.Status.Phase != corev1.PodFailed {
		s.Users = append(s.Users, *g)
	}
	if p := w.cache.pod; p != nil && p.Status.Phase == corev1.PodRunning {
		s.Progress = w.said
	}
	if w.restores && w.cache.claim == nil { // it is read when needed
		s.VolumeSnapshot, s.SnapshotAccess = w.truth.snapshot, w.truth.access
	}
	if w.cache.guest != nil {
		s.Guests = []disk.Guest{{Machine: "web", Size: *w.cache.guest}}
	}
	return s
}

func imageOf(d *spec.VirtualDisk) *spec.VirtualImage {
	i := spec.NewImage(d.Namespace, d.Name, d.Spec.PersistentVolumeClaim.Size, *d.Spec.DataSource)
	i.ObjectMeta = *d.ObjectMeta.DeepCopy()
	s := d.Status.DeepCopy()
	i.Status = spec.VirtualImageStatus{
		Phase: spec.ImagePhase(s.Phase), ObservedGeneration: s.ObservedGeneration, Format: s.Format, Target: s.Target, Import: s.Import, Progress: s.Progress, Download: s.Download, Conditions: s.Conditions,
		Size: s.Capacity, StoredSize: s.Capacity, // images have no capacity
	}
	return i
}

func (w *world) names() (claim, pod string) {
	claim = "data-" + map[string]string{names.KindDisk: "vd", names.KindImage: "vi", names.KindClusterImage: "cvi"}[w.kind()]
	return claim, claim + "-import"
}

func (w *world) claimName() string {
	claim, _ := w.names()
	return claim
}

func (w *world) kind() string {
	switch {
	case w.cluster:
		return names.KindClusterImage
	case w.image:
		return names.KindImage
	}
	return names.KindDisk
}

func (w *world) home() string {
	if w.cluster {
		return w.settings.ImageNamespace
	}
	return "lab"
}

func percent(progress string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(progress, "%"))
	if err != nil && progress != "" {
		panic(err)
	}
	return n
}

// outgrown reports whether the disk is larger than what the running guest has of it, which an
// image never is.
func (w *world) outgrown() bool {
	return !w.image && w.cache.user != nil && w.cache.user.Name == "web" && w.cache.guest != nil && w.cache.guest.Cmp(w.cache.disk.Spec.PersistentVolumeClaim.Size) < 0
}

func (w *world) usable() bool {
	// A replacement of the observed claim cannot be known.
	c, d := w.cache.claim, w.cache.disk
	if c == nil || c.Status.Phase != corev1.ClaimBound || c.DeletionTimestamp != nil || c.Annotations[names.AnnotationMadeFor] != string(d.UID) {
		return false
	}
	return d.Spec.VolumeMode() == corev1.PersistentVolumeBlock && d.Spec.DataSource == nil || w.held[c.UID] == string(d.UID)
}

func (w *world) status(st reconcile.StatusApply) {
	d := w.truth.disk
	if d == nil || d.UID != st.UID {
		return
	}
	next := d.DeepCopy()
	next.Status = spec.VirtualDiskStatus{}
	data, _ := json.Marshal(st.Status)
	if err := json.Unmarshal(data, &next.Status); err != nil {
		panic(err)
	}
	if w.image {
		var i spec.VirtualImageStatus
		if err := json.Unmarshal(data, &i); err != nil {
			panic(err)
		}
		next.Status.Capacity = i.Size
	}
	next.ResourceVersion = w.Version()
	w.truth.disk, w.dirty = next, true
	w.Note("status: %s", data)
}

func (w *world) mayFill(p *corev1.Pod) {
	d, c := w.cache.disk, w.cache.claim
	upload := d.Spec.DataSource != nil && d.Spec.DataSource.Type == spec.DiskSourceUpload
	request := d.Annotations[names.AnnotationUploadRequest]
	switch {
	case upload && (request == "" || objects.UploadRequest(p) != objects.UploadRequest(d) || d.Status.Import != nil && d.Status.Import.Request == objects.UploadRequest(d)):
		w.Violated("an upload is awaited once for who asks for it", "the request is %q: %+v", request, d.Status.Import)
	case upload && (w.cache.key == nil || w.cache.key.Annotations[names.AnnotationMadeFor] != string(d.UID)):
		w.Violated("an upload has a key of its own", "%+v", w.cache.key)
	case c == nil || c.Annotations[names.AnnotationMadeFor] != string(d.UID):
		w.Violated("nothing is put into a claim of somebody else", "claim %+v", c)
	case d.Status.Target == nil || d.Status.Target.PersistentVolumeClaimUID != c.UID:
		w.Violated("nothing is put into a claim before that is noted", "the status has %+v", d.Status.Target)
	case c.Annotations[names.AnnotationFilled] != "":
		w.Violated("a disk is filled once", "claim %s is filled", c.UID)
	case w.cache.user != nil && w.cache.user.Status.Phase != corev1.PodSucceeded:
		w.Violated("there is one writer", "pod %s has the claim", w.cache.user.Name)
	case d.Spec.DataSource != nil && strings.Contains(d.Spec.DataSource.Location(), "127.0.0.1"):
		w.Violated("what is not allowed is not fetched", "%s", d.Spec.DataSource.Location())
	case d.DeletionTimestamp != nil:
		w.Violated("nothing is left of a disk", "a pod is made for one that is being deleted")
	case d.Status.Import != nil && d.Status.Import.Final:
		w.Violated("what fails for good is not tried again", "%+v", d.Status.Import)
	case !upload && d.Status.Import != nil && d.Status.Import.FailedAt != nil && w.Now.Before(d.Status.Import.FailedAt.Add(time.Duration(min(d.Status.Import.Attempts, 5))*10*time.Second)):
		w.Violated("attempts have pauses", "%v after %d", w.Now.Sub(d.Status.Import.FailedAt.Time), d.Status.Import.Attempts)
	case slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != c.Name
	}):
		w.Violated("nothing is put into a claim of somebody else", "volumes %+v", p.Spec.Volumes)
	}
}

// fill writes the disk into the claim, as the program does: never over existing content.
func (w *world) fill(c *corev1.PersistentVolumeClaim, p *corev1.Pod) {
	uid := p.Annotations[names.AnnotationMadeFor]
	if w.restores && !w.wellRestored[c.UID] {
		return
	}
	if w.held[c.UID] == "" {
		w.held[c.UID] = uid
	}
}
