package disk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	theDriver     = "csi.test"
	byProvisioner = "volume.kubernetes.io/storage-provisioner"
)

// restorable is a disk that is about to be made of a snapshot.
func restorable() disk.Snapshot {
	d := spec.NewDisk("lab", "back", resource.MustParse("2Gi"))
	d.UID, d.Finalizers = "u1", []string{names.FinalizerDisk}
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindVolumeSnapshot, Name: "nightly", Format: "qcow2"}}
	return disk.Snapshot{Disk: d, Now: noon, Settings: objects.Settings{RunnerImage: "registry.test/runner"}, VolumeSnapshot: &disk.VolumeSnapshot{
		UID: "s1", Ready: true, Driver: theDriver, Size: new(resource.MustParse("1Gi")), Mode: corev1.PersistentVolumeFilesystem,
	}}
}

// What is missing of a snapshot is told with the next step, and looked for again.
func TestSnapshotsThatAreNoDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*disk.Snapshot)
		phase  spec.DiskPhase
		says   string
	}{
		"no definitions":  {func(s *disk.Snapshot) { s.VolumeSnapshot, s.SnapshotAccess = nil, disk.SnapshotsUndefined }, spec.DiskPending, "the cluster has no definitions of snapshots (snapshot.storage.k8s.io/v1), which its administrator installs"},
		"no rights":       {func(s *disk.Snapshot) { s.VolumeSnapshot, s.SnapshotAccess = nil, disk.SnapshotsForbidden }, spec.DiskPending, "needs the role vmop-operator-snapshots: bind it as deploy/components/read-snapshots does"},
		"none":            {func(s *disk.Snapshot) { s.VolumeSnapshot = nil }, spec.DiskPending, "VolumeSnapshot nightly, which it is a copy of, does not exist: create it"},
		"deleted":         {func(s *disk.Snapshot) { s.VolumeSnapshot.Deleted = true }, spec.DiskPending, "is being deleted"},
		"not ready":       {func(s *disk.Snapshot) { s.VolumeSnapshot.Ready = false }, spec.DiskPending, "is not ready; see kubectl describe volumesnapshot nightly"},
		"failed":          {func(s *disk.Snapshot) { s.VolumeSnapshot.Ready, s.VolumeSnapshot.Error = false, "no room" }, spec.DiskPending, "is not ready: no room; see kubectl"},
		"ready after all": {func(s *disk.Snapshot) { s.VolumeSnapshot.Error = "no room" }, spec.DiskProvisioning, "claim back-vd is being made"},
		"no content":      {func(s *disk.Snapshot) { s.VolumeSnapshot.Driver = "" }, spec.DiskPending, "is not ready"},
		"too large":       {func(s *disk.Snapshot) { s.VolumeSnapshot.Size = new(resource.MustParse("3Gi")) }, spec.DiskFailed, "needs a volume of 3Gi, and this disk asks for 2Gi: ask for as much"},
		"just fits":       {func(s *disk.Snapshot) { s.VolumeSnapshot.Size = new(resource.MustParse("2Gi")) }, spec.DiskProvisioning, "claim back-vd is being made"},
		"size unknown":    {func(s *disk.Snapshot) { s.VolumeSnapshot.Size = nil }, spec.DiskProvisioning, "claim back-vd is being made"},
		"of a device":     {func(s *disk.Snapshot) { s.VolumeSnapshot.Mode = corev1.PersistentVolumeBlock }, spec.DiskFailed, "is one of a volume with volumeMode Block: make another disk with that"},
	} {
		t.Run(name, func(t *testing.T) {
			s := restorable()
			tt.change(&s)
			plan := disk.Decide(s)
			if len(plan.Statuses) != 1 || plan.Statuses[0].Status["phase"] != string(tt.phase) || !strings.Contains(fmt.Sprint(plan.Statuses[0].Status), tt.says) {
				t.Fatalf("%+v", plan.Statuses)
			}
			c := created[*corev1.PersistentVolumeClaim](plan)
			if (c != nil) != (tt.phase == spec.DiskProvisioning) {
				t.Fatalf("%+v", plan.Actions)
			}
			if c == nil && (plan.Wake.IsZero() || plan.Wake.Sub(noon) > sourceWait) {
				t.Errorf("it is looked at again at %v", plan.Wake)
			}
		})
	}
}

// sourceWait is how soon what is missing is looked for again.
const sourceWait = 10e9

// From the snapshot to the disk, which needs the snapshot for its claim alone.
func TestFromASnapshotToADisk(t *testing.T) {
	s := restorable()
	c := created[*corev1.PersistentVolumeClaim](disk.Decide(s))
	if c == nil || c.Spec.DataSource == nil || c.Spec.DataSource.Kind != "VolumeSnapshot" || *c.Spec.DataSource.APIGroup != "snapshot.storage.k8s.io" || c.Spec.DataSource.Name != "nightly" || c.Spec.DataSourceRef != nil {
		t.Fatalf("%+v", c)
	}
	c.UID = "c1"
	s.Claim, s.VolumeSnapshot = c, nil
	s.Disk.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: c.Name, PersistentVolumeClaimUID: c.UID}
	p := created[*corev1.Pod](disk.Decide(s))
	if p == nil {
		t.Fatalf("%+v", disk.Decide(s))
	}
	job, err := runnerconfig.ParseImport(p.Spec.Containers[0].Env[0].Value)
	if err != nil || job.Restored == nil || job.Restored.Format != "qcow2" || job.Copy != nil || len(objects.PodClaims(p)) != 1 {
		t.Fatalf("%+v, %v, %v", job, err, objects.PodClaims(p))
	}
	p.UID = "p1"
	s.Pod = p
	if plan := disk.Decide(s); !strings.Contains(fmt.Sprint(plan.Statuses), "kubectl describe pvc back-vd") {
		t.Errorf("%+v", plan.Statuses)
	}
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Message: string(runnerconfig.Imported{Format: "qcow2", Size: 1 << 30}.Encode()),
	}}}}
	marks := func(plan reconcile.Plan) map[string]string {
		for _, a := range plan.Actions {
			if u, is := a.(reconcile.UpdateClaim); is {
				return u.Annotations
			}
		}
		return nil
	}
	for by, want := range map[string]struct {
		filled bool
		says   string
	}{
		theDriver:   {true, "the disk is in claim back-vd"},
		"":          {false, "does not say who has made its volume"},
		"forgetful": {false, "is of driver csi.test, and claim back-vd asks forgetful, which cannot restore it: make another disk with a storage class that can"},
	} {
		s := s
		s.Claim = c.DeepCopy()
		s.Claim.Status.Phase = corev1.ClaimBound
		if by != "" {
			s.Claim.Annotations[byProvisioner] = by
		}
		plan := disk.Decide(s)
		if got := marks(plan); (got[names.AnnotationFilled] == "u1") != want.filled || want.filled && got[names.AnnotationDiskFormat] != "qcow2" || !strings.Contains(fmt.Sprint(plan.Statuses), want.says) {
			t.Errorf("%q: %v\n%+v", by, got, plan.Statuses)
		}
		if ended := len(plan.Actions) == 1 && plan.Actions[0].Target().Kind == "Pod"; ended != (by == "forgetful") {
			t.Errorf("%q: %+v", by, plan.Actions)
		}
	}
}
