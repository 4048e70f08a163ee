package disk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var imageSettings = objects.Settings{RunnerImage: "registry.test/runner", ImageNamespace: "golden"}

// withKey fills a Secret as the operator does that executes a plan.
func withKey(t *testing.T, s *corev1.Secret, c objects.Certificate) *corev1.Secret {
	t.Helper()
	data, err := displaycert.Make((*reconcile.Certificate)(&c))
	if err != nil {
		t.Fatal(err)
	}
	s.Data = data
	return s
}

// clusterImage is an image of the cluster that is ready, and its claim.
func clusterImage() (*spec.ClusterVirtualImage, *corev1.PersistentVolumeClaim) {
	i := spec.NewClusterImage("debian", resource.MustParse("1Gi"), spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: "http://images.test/a"}})
	i.UID, i.Finalizers, i.Status.Phase = "image", []string{names.FinalizerImage}, spec.ImageReady
	c := objects.FilledClusterImage(i, "golden").VolumeClaim()
	c.UID, c.Status.Phase = "claim", corev1.ClaimBound
	for k, v := range map[string]string{
		names.AnnotationFilled: "image", names.AnnotationDiskFormat: "qcow2", names.AnnotationImageSize: "3221225472", names.AnnotationStoredSize: "1",
		names.AnnotationImageDigest: strings.Repeat("a", 64), names.AnnotationImageLength: "4096",
	} {
		c.Annotations[k] = v
	}
	i.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: c.Name, PersistentVolumeClaimUID: c.UID, Namespace: "golden"}
	return i, c
}

func copierNumber(n int) objects.Copier {
	return objects.Copier{Kind: spec.KindDisk, Namespace: fmt.Sprintf("lab%d", n%2), Name: fmt.Sprintf("d%d", n), UID: types.UID(fmt.Sprintf("u%d", n)), Key: fmt.Sprintf("k%d", n)}
}

// made are the pods and Secrets that a plan makes, and ended those that it deletes.
func madeAndEnded(p reconcile.Plan) (made []reconcile.Object, ended []string) {
	for _, a := range p.Actions {
		switch a := a.(type) {
		case reconcile.Create:
			made = append(made, a.Object)
		case reconcile.DeletePod:
			ended = append(ended, a.Name)
		}
	}
	return made, ended
}

// An image of the cluster is served to those who are made of it, by a key that is there
// before, to so many at a time, as long as they want it, and to nobody new when it goes.
func TestClusterImageIsServed(t *testing.T) {
	i, c := clusterImage()
	s := disk.Snapshot{ClusterImage: i, Claim: c, Settings: imageSettings, Now: noon}
	for n := range 12 {
		s.Copiers = append(s.Copiers, copierNumber(n))
	}
	made, _ := madeAndEnded(disk.Decide(s))
	if len(made) != 1 || made[0].GetName() != "debian-cvi-key" || made[0].GetNamespace() != "golden" {
		t.Fatalf("no key is made first: %+v", made)
	}
	secret, certificate := objects.ServerKey(i, "golden", noon)
	s.ServerKey = withKey(t, secret, certificate)
	foreign := s
	foreign.ServerKey = s.ServerKey.DeepCopy()
	foreign.ServerKey.Annotations = nil
	waits := disk.Decide(foreign)
	if made, _ := madeAndEnded(waits); len(made) > 0 {
		t.Errorf("it is served by somebody else's key: %+v", made)
	}
	if waits.Wake.IsZero() {
		t.Error("nothing shows that somebody else's key goes, and nobody looks")
	}
	made, _ = madeAndEnded(disk.Decide(s))
	if len(made) != 8 {
		t.Fatalf("%d pods serve it", len(made))
	}
	for _, o := range made {
		p := o.(*corev1.Pod)
		v := p.Spec.Containers[0].VolumeMounts[0]
		if !slices.Contains(s.Copiers, objects.ServedBy(p)) || p.Namespace != "golden" || !v.ReadOnly || *p.Spec.AutomountServiceAccountToken || !slices.Equal(objects.PodClaims(p), []string{"debian-cvi"}) ||
			!slices.Contains(p.Spec.Containers[0].Args, "-client="+objects.ServedBy(p).Key) || p.OwnerReferences[0].UID != i.UID {
			t.Errorf("%+v", p)
		}
		s.Servers = append(s.Servers, *p)
	}
	// A namespace whose copies do not get on leaves room for the others.
	greedy := s
	greedy.Servers, greedy.Copiers = nil, nil
	for n := range 12 {
		greedy.Copiers = append(greedy.Copiers, copierNumber(2*n))
	}
	if made, _ := madeAndEnded(disk.Decide(greedy)); len(made) != 4 {
		t.Errorf("%d pods serve one namespace", len(made))
	}
	s.Users = s.Servers
	made, ended := madeAndEnded(disk.Decide(s))
	if len(made)+len(ended) > 0 {
		t.Errorf("%v, %v", made, ended)
	}
	// Two are done, one has another key, and two others get their turn when they have
	// gone.
	s.Copiers = slices.DeleteFunc(s.Copiers, func(c objects.Copier) bool { return c.Name == "d0" || c.Name == "d1" })
	_, ended = madeAndEnded(disk.Decide(s))
	if len(ended) != 2 {
		t.Errorf("ended are %v", ended)
	}
	s.Servers = slices.DeleteFunc(s.Servers, func(p corev1.Pod) bool { return slices.Contains(ended, p.Name) })
	s.Users = s.Servers
	deleted := s
	deleted.ClusterImage = i.DeepCopy()
	deleted.ClusterImage.DeletionTimestamp = &metav1.Time{Time: noon}
	plan := disk.Decide(deleted)
	if made, ended := madeAndEnded(plan); len(made)+len(ended) > 0 || plan.Releases() {
		t.Errorf("an image that is copied goes: %v, %v, %v", made, ended, plan.Actions)
	}
	if made, _ = madeAndEnded(disk.Decide(s)); len(made) != 2 {
		t.Errorf("%d more are served", len(made))
	}
	// A pod of somebody else is left alone.
	s.Servers[0].Annotations = map[string]string{names.AnnotationServesTo: s.Servers[0].Annotations[names.AnnotationServesTo]}
	s.Copiers = nil
	if _, ended = madeAndEnded(disk.Decide(s)); len(ended) != 5 {
		t.Errorf("ended are %v", ended)
	}
}

// A disk of a namespace is filled when its image of the cluster is served to its own key,
// and by what the image is known to be.
func TestDiskOfClusterImage(t *testing.T) {
	i, c := clusterImage()
	d := spec.NewDisk("lab", "data", resource.MustParse("5Gi"))
	d.UID, d.Finalizers = "disk", []string{names.FinalizerDisk}
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindClusterImage, Name: "debian"}}
	mine := objects.FilledDisk(d).VolumeClaim()
	mine.UID = "mine"
	d.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: mine.Name, PersistentVolumeClaimUID: mine.UID}
	s := disk.Snapshot{Disk: d, Claim: mine, Settings: imageSettings, Now: noon, SourceClusterImage: i, SourceClaim: c}
	ready := func(s disk.Snapshot) spec.Condition {
		t.Helper()
		return *spec.FindCondition(told(t, d, disk.Decide(s)).Status.Conditions, conditions.Ready)
	}
	without := s
	without.NoClusterImages = true
	if c := ready(without); !strings.Contains(c.Message, "single namespaces") {
		t.Errorf("%+v", c)
	}
	made, _ := madeAndEnded(disk.Decide(s))
	if len(made) != 1 || made[0].GetName() != "data-vd-key" || made[0].GetNamespace() != "lab" || made[0].GetOwnerReferences()[0].UID != d.UID {
		t.Fatalf("%+v", made)
	}
	own, certificate := objects.FilledDisk(d).CopyKey("debian", noon)
	s.Key = withKey(t, own, certificate)
	d.Status.Phase = spec.DiskPending
	to, wanted := disk.CopierOf(&s, s.Key)
	if !wanted || to.Key == "" || to.UID != d.UID {
		t.Fatalf("%+v", to)
	}
	if _, wanted := disk.CopierOf(&s, nil); wanted {
		t.Error("one without a key is served")
	}
	serverKey, certificate := objects.ServerKey(i, "golden", noon)
	s.ServerKey = withKey(t, serverKey, certificate)
	s.Server = objects.ServerJob(i, to, imageSettings)
	for name, change := range map[string]func(*disk.Snapshot){
		"nobody serves it": func(s *disk.Snapshot) { s.Server = nil },
		"nobody is ready":  func(*disk.Snapshot) {},
		"served to others": func(s *disk.Snapshot) {
			s.Server = objects.ServerJob(i, copierNumber(1), imageSettings)
			serving(s.Server)
		},
		"somebody else's key": func(s *disk.Snapshot) { s.Key.Annotations = nil; serving(s.Server) },
		"no digest": func(s *disk.Snapshot) {
			delete(s.SourceClaim.Annotations, names.AnnotationImageDigest)
			serving(s.Server)
		},
		"the image is deleted": func(s *disk.Snapshot) {
			s.SourceClusterImage.DeletionTimestamp = &metav1.Time{Time: noon}
			serving(s.Server)
		},
		"the image is not ready": func(s *disk.Snapshot) {
			s.SourceClusterImage.Status.Phase = spec.ImageProvisioning
			serving(s.Server)
		},
	} {
		changed := s
		changed.Server, changed.Key, changed.SourceClaim, changed.SourceClusterImage = s.Server.DeepCopy(), s.Key.DeepCopy(), c.DeepCopy(), i.DeepCopy()
		change(&changed)
		if made, _ := madeAndEnded(disk.Decide(changed)); len(made) > 0 {
			t.Errorf("%s: %+v", name, made)
		}
		if c := ready(changed); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "ClusterVirtualImage debian") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	serving(s.Server)
	made, _ = madeAndEnded(disk.Decide(s))
	if len(made) != 1 || made[0].GetName() != "data-vd-import" {
		t.Fatalf("%+v", made)
	}
	// Its claim is an ordinary one, whatever that of the image could be cloned to.
	early, target := s, d.Status.Target
	early.Claim, early.SourceClaim, d.Status.Target = nil, c.DeepCopy(), nil
	early.SourceClaim.Annotations["volume.kubernetes.io/storage-provisioner"] = "rook-ceph.rbd.csi.ceph.com"
	if claim := created[*corev1.PersistentVolumeClaim](disk.Decide(early)); claim == nil || claim.Spec.DataSource != nil || claim.Annotations[names.AnnotationCloneOf] != "" {
		t.Errorf("%+v", claim)
	}
	d.Status.Target = target
	p := made[0].(*corev1.Pod)
	if job := p.Spec.Containers[0].Env[0].Value; !strings.Contains(job, `"address":"10.0.0.7:10812"`) || !strings.Contains(job, strings.Repeat("a", 64)) || !strings.Contains(job, objects.ExportFingerprint(s.ServerKey)) || !slices.Equal(objects.PodClaims(p), []string{"data-vd"}) {
		t.Errorf("%s, %v", job, objects.PodClaims(p))
	}
	// One that is there, or has failed for good, wants nothing.
	for _, phase := range []spec.DiskPhase{"", spec.DiskReady, spec.DiskFailed, spec.DiskTerminating} {
		if d.Status.Phase = phase; phase != "" {
			if _, wanted := disk.CopierOf(&s, s.Key); wanted {
				t.Errorf("one that is %s is served", phase)
			}
		}
	}
}

// serving is what a kubelet says of a pod that serves.
func serving(p *corev1.Pod) {
	p.Status.PodIP, p.Status.Conditions = "10.0.0.7", []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}
