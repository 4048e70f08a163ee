package disk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// cloneable is a disk that is about to be made of another one that can be cloned.
func cloneable() disk.Snapshot {
	d := spec.NewDisk("lab", "copy", resource.MustParse("2Gi"))
	d.UID, d.Finalizers = "u1", []string{names.FinalizerDisk}
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "golden"}}
	mode := corev1.PersistentVolumeFilesystem
	golden := spec.NewDisk("lab", "golden", resource.MustParse("1Gi"))
	golden.UID, golden.Status.Phase, golden.Spec.PersistentVolumeClaim.VolumeMode = "u2", spec.DiskReady, &mode
	c := objects.FilledDisk(golden).VolumeClaim()
	c.UID, c.Status.Phase = "c2", corev1.ClaimBound
	c.Annotations[names.AnnotationFilled], c.Annotations[names.AnnotationDiskFormat] = "u2", "raw"
	c.Annotations["volume.kubernetes.io/storage-provisioner"] = "rook-ceph.rbd.csi.ceph.com"
	return disk.Snapshot{Disk: d, Source: golden, SourceClaim: c, Now: noon, Settings: objects.Settings{RunnerImage: "registry.test/runner"}}
}

// created is what a plan makes of a kind.
func created[T any](p reconcile.Plan) (out T) {
	for _, a := range p.Actions {
		if c, is := a.(reconcile.Create); is {
			if o, is := c.Object.(T); is {
				out = o
			}
		}
	}
	return out
}

// A claim is a clone where that can be, and none otherwise; without its source it is not
// made. What is made of it looks at it.
func TestClaimsThatAreClones(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	fast := "fast"
	for name, tt := range map[string]struct {
		change        func(*disk.Snapshot)
		cloned, waits bool
	}{
		"a provisioner that clones": {func(*disk.Snapshot) {}, true, false},
		"by its older name": {func(s *disk.Snapshot) {
			s.SourceClaim.Annotations = map[string]string{names.AnnotationMadeFor: "u2", names.AnnotationFilled: "u2", "volume.beta.kubernetes.io/storage-provisioner": "csi.hpe.com"}
		}, true, false},
		"the same class": {func(s *disk.Snapshot) {
			s.Disk.Spec.PersistentVolumeClaim.StorageClassName, s.Source.Spec.PersistentVolumeClaim.StorageClassName = &fast, &fast
		}, true, false},
		"another class": {func(s *disk.Snapshot) { s.Disk.Spec.PersistentVolumeClaim.StorageClassName = &fast }, false, false},
		"a provisioner that nobody knows": {func(s *disk.Snapshot) {
			s.SourceClaim.Annotations["volume.kubernetes.io/storage-provisioner"] = "local"
		}, false, false},
		"one that the administrator knows": {func(s *disk.Snapshot) {
			s.SourceClaim.Annotations["volume.kubernetes.io/storage-provisioner"] = "local"
			s.Settings.CloningProvisioners = []string{"local"}
		}, true, false},
		"none":               {func(s *disk.Snapshot) { s.Settings.CloningProvisioners = []string{} }, false, false},
		"a volume of nobody": {func(s *disk.Snapshot) { delete(s.SourceClaim.Annotations, "volume.kubernetes.io/storage-provisioner") }, false, false},
		"another mode":       {func(s *disk.Snapshot) { s.Disk.Spec.PersistentVolumeClaim.VolumeMode = &block }, false, false},
		"another namespace":  {func(s *disk.Snapshot) { s.SourceClaim.Namespace = "golden" }, false, false},
		"a clone that was refused": {func(s *disk.Snapshot) {
			s.Disk.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: "copy-vd", PersistentVolumeClaimUID: "c1"}
			s.Disk.Status.Import = &spec.VirtualDiskImport{CloneRefused: "c1"}
		}, false, false},
		"no source": {func(s *disk.Snapshot) { s.Source, s.SourceClaim = nil, nil }, false, true},
		"one that is used": {func(s *disk.Snapshot) {
			s.SourceUsers = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}}
		}, false, true},
		"a larger one": {func(s *disk.Snapshot) { s.Source.Spec.PersistentVolumeClaim.Size = resource.MustParse("3Gi") }, false, true},
		"a claim that was lost": {func(s *disk.Snapshot) {
			s.Disk.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: "copy-vd", PersistentVolumeClaimUID: "c7"}
			s.Disk.Status.Import = &spec.VirtualDiskImport{CloneRefused: "c1"}
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := cloneable()
			tt.change(&s)
			plan := disk.Decide(s)
			c := created[*corev1.PersistentVolumeClaim](plan)
			if (c == nil) != tt.waits {
				t.Fatalf("%+v", plan)
			}
			if c == nil {
				return
			}
			from := c.Spec.DataSource
			if (from != nil) != tt.cloned || (c.Annotations[names.AnnotationCloneOf] == "u2") != tt.cloned || from != nil && (from.Kind != "PersistentVolumeClaim" || from.Name != "golden-vd" || from.APIGroup != nil) {
				t.Errorf("%+v %+v", from, c.Annotations)
			}
			// What is made of it, when it is noted.
			c.UID, c.Status.Phase = "c1", corev1.ClaimBound
			s.Claim, s.Disk.Status.Target = c, &spec.VirtualDiskTarget{PersistentVolumeClaim: c.Name, PersistentVolumeClaimUID: c.UID}
			p := created[*corev1.Pod](disk.Decide(s))
			if p == nil {
				t.Fatalf("no pod: %+v", disk.Decide(s))
			}
			job, err := runnerconfig.ParseImport(p.Spec.Containers[0].Env[0].Value)
			if err != nil || (job.Copy.CloneOf == "u2") != tt.cloned || job.Copy.Whole != tt.cloned {
				t.Errorf("%+v, %v", job.Copy, err)
			}
		})
	}
}

// refusals are all states of a claim that is to be a clone, by what they are; may says
// that it may be deleted.
func refusals(yield func(name string, s disk.Snapshot, may bool)) {
	for _, phase := range []corev1.PersistentVolumeClaimPhase{"", corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost} {
		for _, age := range []time.Duration{0, 9 * time.Minute, 10 * time.Minute, 24 * time.Hour} {
			for _, noted := range []types.UID{"", "c1", "c0"} {
				for _, pod := range []string{"no pod", "pod", "pod of another", "machine"} {
					for _, whose := range []string{"clone", "plain", "somebody's", "filled"} {
						s := cloneable()
						c := objects.FilledDisk(s.Disk).Clone(s.SourceClaim)
						c.UID, c.ResourceVersion, c.Status.Phase, c.CreationTimestamp = "c1", "7", phase, metav1.NewTime(noon.Add(-age))
						switch whose {
						case "plain":
							delete(c.Annotations, names.AnnotationCloneOf)
						case "somebody's":
							c.Annotations[names.AnnotationMadeFor] = "u9"
						case "filled":
							c.Annotations[names.AnnotationFilled] = "u1"
						}
						s.Claim = c
						s.Disk.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: c.Name, PersistentVolumeClaimUID: c.UID}
						if noted != "" {
							s.Disk.Status.Import = &spec.VirtualDiskImport{CloneRefused: noted}
						}
						switch pod {
						case "pod", "pod of another":
							s.Pod = objects.FilledDisk(s.Disk).CloneJob(s.Settings, c, s.SourceClaim)
							if s.Pod.UID = "p1"; pod == "pod of another" {
								s.Pod.Annotations[names.AnnotationMadeFor] = "u9"
							}
						case "machine":
							s.Users = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}}
						}
						yield(fmt.Sprint(phase, age, noted, pod, whose), s,
							(phase == "" || phase == corev1.ClaimPending) && age >= 10*time.Minute && noted == "c1" && (pod == "no pod" || pod == "pod of another") && whose == "clone")
					}
				}
			}
		}
	}
}

// brokenRefusals are the states in which a decision deletes a claim that it may not, or
// keeps one for ever.
func brokenRefusals(decide func(disk.Snapshot) reconcile.Plan) (deletes, keeps []string) {
	refusals(func(name string, s disk.Snapshot, may bool) {
		plan := decide(s)
		deleted := false
		for _, a := range plan.Actions {
			if d, is := a.(reconcile.DeleteClaim); is {
				deleted = deleted || d.UID == "c1" && d.ResourceVersion == "7"
			}
		}
		switch {
		case deleted && !may:
			deletes = append(deletes, name)
		case !deleted && may:
			keeps = append(keeps, name)
		}
	})
	return deletes, keeps
}

// A claim is deleted that was to be a clone and holds nothing: it is the disk's own, has no
// volume after a while, nobody uses it, and what is to become of it is noted.
func TestClonesThatAreRefused(t *testing.T) {
	if deletes, keeps := brokenRefusals(disk.Decide); len(deletes)+len(keeps) > 0 {
		t.Errorf("deleted: %v\nkept: %v", deletes, keeps)
	}
	for fault, see := range map[string]func(*disk.Snapshot){
		"a volume is not looked at":       func(s *disk.Snapshot) { s.Claim.Status.Phase = corev1.ClaimPending },
		"the time is not looked at":       func(s *disk.Snapshot) { s.Now = s.Now.Add(time.Hour) },
		"nothing is noted":                func(s *disk.Snapshot) { s.Disk.Status.Import = &spec.VirtualDiskImport{CloneRefused: s.Claim.UID} },
		"pods are not looked at":          func(s *disk.Snapshot) { s.Pod = nil },
		"machines are not looked at":      func(s *disk.Snapshot) { s.Users = nil },
		"any claim was to be a clone":     func(s *disk.Snapshot) { s.Claim.Annotations[names.AnnotationCloneOf] = "u2" },
		"any claim is the disk's":         func(s *disk.Snapshot) { s.Claim.Annotations[names.AnnotationMadeFor] = "u1" },
		"a disk that is there is nothing": func(s *disk.Snapshot) { delete(s.Claim.Annotations, names.AnnotationFilled) },
	} {
		if deletes, _ := brokenRefusals(func(s disk.Snapshot) reconcile.Plan {
			see(&s)
			return disk.Decide(s)
		}); len(deletes) == 0 {
			t.Errorf("nobody notices: %s", fault)
		}
	}
}

// From a clone that is not made to the copy: what is noted, the pod's end, the deletion,
// and another claim, which is noted in its turn. Who may not delete says what to do.
func TestFromACloneToACopy(t *testing.T) {
	s := cloneable()
	c := objects.FilledDisk(s.Disk).Clone(s.SourceClaim)
	c.UID, c.ResourceVersion, c.CreationTimestamp = "c1", "7", metav1.NewTime(noon)
	s.Claim, s.Disk.Status.Target = c, &spec.VirtualDiskTarget{PersistentVolumeClaim: c.Name, PersistentVolumeClaimUID: c.UID}
	s.Pod = objects.FilledDisk(s.Disk).CloneJob(s.Settings, c, s.SourceClaim)
	s.Pod.UID = "p1"
	if plan := disk.Decide(s); len(plan.Actions) > 0 || plan.Wake.After(noon.Add(10*time.Minute)) {
		t.Fatalf("%+v", plan)
	}
	s.Now = noon.Add(10 * time.Minute)
	if plan := disk.Decide(s); len(plan.Actions) > 0 || !strings.Contains(fmt.Sprint(plan.Statuses), "cloneRefused:c1") || !strings.Contains(fmt.Sprint(plan.Statuses), "a copy takes its place") {
		t.Fatalf("%+v", plan)
	}
	s.Disk.Status.Import = &spec.VirtualDiskImport{CloneRefused: "c1"}
	if plan := disk.Decide(s); len(plan.Actions) != 1 || plan.Actions[0].Target().Kind != "Pod" {
		t.Fatalf("%+v", plan)
	}
	s.Pod = nil
	plan := disk.Decide(s)
	if len(plan.Actions) != 1 || plan.Actions[0].Target().Kind != names.KindClaim {
		t.Fatalf("%+v", plan)
	}
	s.Failures = []reconcile.Failure{{Target: plan.Actions[0].Target(), Message: "forbidden", Count: 1, Last: s.Now}}
	if plan := disk.Decide(s); !strings.Contains(fmt.Sprint(plan.Statuses), "kubectl delete pvc copy-vd") {
		t.Fatalf("%+v", plan)
	}
	s.Failures = nil
	s.Claim.DeletionTimestamp = &metav1.Time{Time: s.Now}
	if plan := disk.Decide(s); len(plan.Actions) > 0 || !strings.Contains(fmt.Sprint(plan.Statuses), "holds nothing, is being deleted") {
		t.Fatalf("%+v", plan)
	}
	s.Claim = nil
	c = created[*corev1.PersistentVolumeClaim](disk.Decide(s))
	if c == nil || c.Spec.DataSource != nil {
		t.Fatalf("%+v", c)
	}
	c.UID = "c3"
	s.Claim = c
	if plan := disk.Decide(s); len(plan.Actions) > 0 || !strings.Contains(fmt.Sprint(plan.Statuses), "persistentVolumeClaimUID:c3") {
		t.Fatalf("%+v", plan)
	}
	s.Disk.Status.Target.PersistentVolumeClaimUID = "c3"
	if p := created[*corev1.Pod](disk.Decide(s)); p == nil || strings.Contains(p.Spec.Containers[0].Env[0].Value, "cloneOf") || !slices.Equal(objects.PodClaims(p), []string{"copy-vd", "golden-vd"}) {
		t.Fatalf("%+v", p)
	}
}
