package disk_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// told is a disk with the status that a plan gives it.
func told(t *testing.T, d *spec.VirtualDisk, p reconcile.Plan) *spec.VirtualDisk {
	t.Helper()
	for _, st := range p.Statuses {
		data, err := json.Marshal(st.Status)
		if err != nil {
			t.Fatal(err)
		}
		d = d.DeepCopy()
		d.Status = spec.VirtualDiskStatus{}
		if err := json.Unmarshal(data, &d.Status); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// The pod has no more rights than a program needs that fetches a file into a volume, and
// what it is told is in no list of options.
func TestImportJob(t *testing.T) {
	d := spec.NewDisk("lab", "data", resource.MustParse("1Gi"))
	d.UID = "u1"
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: "http://images.test/$(HOME)"}}
	p := objects.FilledDisk(d).ImportJob(objects.Settings{RunnerImage: "runner", Privileged: true, KVMResource: "kvm"}, nil)
	c := &p.Spec.Containers[0]
	for name, ok := range map[string]bool{
		"no token":                   !*p.Spec.AutomountServiceAccountToken,
		"not root":                   *p.Spec.SecurityContext.RunAsNonRoot && *p.Spec.SecurityContext.RunAsUser != 0,
		"no privileges":              c.SecurityContext.Privileged == nil && !*c.SecurityContext.AllowPrivilegeEscalation && *c.SecurityContext.ReadOnlyRootFilesystem && len(c.SecurityContext.Capabilities.Add) == 0,
		"its volume alone":           slices.Equal(objects.PodClaims(p), []string{"data-vd"}),
		"nothing of it is an option": slices.Equal(c.Args, []string{"-import"}) && !strings.Contains(c.Env[0].Value, "$"),
		"it is watched":              p.Labels[names.LabelComponent] == names.ComponentRunner && p.Labels[names.LabelInstance] == "",
	} {
		if !ok {
			t.Errorf("not so: %s\n%+v", name, p)
		}
	}
	var _ reconcile.Object = p
}

// The volume for what is downloaded is larger than the disk, however large that is.
func TestScratchOfTheLargestDisk(t *testing.T) {
	for _, size := range []string{"1", "5Ei", "7Ei", "9223372036854775807"} {
		d := spec.NewDisk("lab", "data", resource.MustParse(size))
		d.Spec.PersistentVolumeClaim.VolumeMode = new(corev1.PersistentVolumeBlock)
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: "http://images.test/a"}}
		found := false
		for _, v := range objects.FilledDisk(d).ImportJob(objects.Settings{}, nil).Spec.Volumes {
			if v.Ephemeral == nil {
				continue
			}
			found = true
			if room := v.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage]; room.Cmp(d.Spec.PersistentVolumeClaim.Size) < 0 {
				t.Errorf("%s for a disk of %s", room.String(), size)
			}
		}
		if !found {
			t.Errorf("none for a disk of %s", size)
		}
	}
}

// A quantity that means the same is no reason to write.
func TestQuantitiesMeanTheSame(t *testing.T) {
	a, b := resource.MustParse("1Gi"), resource.MustParse("1024Mi")
	d := spec.NewDisk("lab", "data", a)
	d.UID, d.Finalizers = "u1", []string{names.FinalizerDisk}
	c := objects.FilledDisk(d).VolumeClaim()
	c.UID, c.Status.Phase, c.Status.Capacity = "u2", corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: b}
	s := disk.Snapshot{Disk: d, Claim: c, Now: noon}
	for range 3 {
		s.Disk = told(t, s.Disk, disk.Decide(s))
	}
	if p := disk.Decide(s); len(p.Actions)+len(p.Statuses) > 0 || s.Disk.Status.Phase != spec.DiskReady {
		t.Errorf("%+v\n%+v", p, s.Disk.Status)
	}
}

// A disk that asks for less than its claim has is not there as asked for either while its guest
// has less than that.
func TestGuestBehindARefusedShrink(t *testing.T) {
	d := spec.NewDisk("lab", "data", resource.MustParse("2Gi"))
	d.UID, d.Finalizers = "u1", []string{names.FinalizerDisk}
	c := objects.FilledDisk(d).VolumeClaim()
	c.UID, c.Status.Phase = "u2", corev1.ClaimBound
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Gi")}
	c.Status.Capacity = c.Spec.Resources.Requests
	s := disk.Snapshot{
		Disk: d, Claim: c, Now: noon, Machines: []string{"web"},
		Users: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}, Guests: []disk.Guest{{Machine: "web", Size: resource.MustParse("1Gi")}},
	}
	for size, phase := range map[string]spec.DiskPhase{"1Gi": spec.DiskResizing, "4Gi": spec.DiskReady} {
		s.Guests[0].Size = resource.MustParse(size)
		s.Disk = d
		for range 3 {
			s.Disk = told(t, s.Disk, disk.Decide(s))
		}
		resized := spec.FindCondition(s.Disk.Status.Conditions, conditions.DiskResized)
		if got := s.Disk.Status.Phase; got != phase || resized == nil || resized.Reason != conditions.ReasonShrinkRefused {
			t.Errorf("with %s in the guest: %s, %+v", size, got, resized)
		}
	}
}

// Of a claim that is gone nothing is there, whatever else there is to say of its disk.
func TestProgressOfWhatIsGone(t *testing.T) {
	for name, change := range map[string]func(*disk.Snapshot){
		"it is alive":        func(*disk.Snapshot) {},
		"its manifest fails": func(s *disk.Snapshot) { s.Disk.Spec.PersistentVolumeClaim.Size = resource.Quantity{} },
		"it cannot be read":  func(s *disk.Snapshot) { s.Unreadable = "spec.size: a list" },
		"it is not held":     func(s *disk.Snapshot) { s.Disk.Finalizers = nil },
		"it is kept, and being deleted": func(s *disk.Snapshot) {
			s.Disk.DeletionTimestamp = new(metav1.NewTime(noon))
			s.Machines = []string{"web"}
		},
	} {
		d := spec.NewDisk("lab", "data", resource.MustParse("1Gi"))
		d.UID, d.Finalizers, d.Status.Progress, d.Status.Phase = "u1", []string{names.FinalizerDisk}, "100%", spec.DiskReady
		d.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: "data-vd", PersistentVolumeClaimUID: "u2"}
		s := disk.Snapshot{Disk: d, Now: noon}
		change(&s)
		if got := told(t, s.Disk, disk.Decide(s)).Status; got.Progress != "" {
			t.Errorf("%s: %s of it is there: %+v", name, got.Progress, got)
		}
	}
}
