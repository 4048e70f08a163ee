package disk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// copying are all states of a disk that is a copy of another one, by what they are; can
// says that the copy may be begun, and torn that what was copied may not be believed.
func copying(yield func(name string, s disk.Snapshot, can, torn bool)) {
	deleted := &metav1.Time{Time: noon}
	pod := func(name string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "p"}, Status: corev1.PodStatus{Phase: phase}}
	}
	for _, from := range []string{"no source", "ready", "growing", "provisioning", "being deleted", "larger"} {
		for _, claim := range []string{"no claim", "block device", "file", "somebody else's", "unbound", "not filled", "being deleted"} {
			for _, users := range []string{"nobody", "a machine", "one that has ended", "another copy of it", "what fills it"} {
				for _, own := range []string{"no pod", "pod that runs", "pod that has the disk"} {
					d := spec.NewDisk("lab", "copy", resource.MustParse("1Gi"))
					d.UID, d.Finalizers = "u1", []string{names.FinalizerDisk}
					d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "golden"}}
					mine := objects.FilledDisk(d).VolumeClaim()
					mine.UID, mine.Status.Phase = "c1", corev1.ClaimBound
					d.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: mine.Name, PersistentVolumeClaimUID: mine.UID}
					s := disk.Snapshot{Disk: d, Claim: mine, Now: noon, Settings: objects.Settings{RunnerImage: "registry.test/runner"}}
					golden := spec.NewDisk("lab", "golden", resource.MustParse("1Gi"))
					golden.UID, golden.Status.Phase = "u2", spec.DiskReady
					switch from {
					case "growing":
						golden.Status.Phase = spec.DiskResizing
					case "provisioning":
						golden.Status.Phase = spec.DiskProvisioning
					case "being deleted":
						golden.DeletionTimestamp = deleted
					case "larger":
						golden.Spec.PersistentVolumeClaim.Size = resource.MustParse("2Gi")
					}
					file := corev1.PersistentVolumeFilesystem
					if claim == "file" || claim == "not filled" {
						golden.Spec.PersistentVolumeClaim.VolumeMode = &file
					}
					c := objects.FilledDisk(golden).VolumeClaim()
					c.UID, c.Status.Phase = "c2", corev1.ClaimBound
					switch claim {
					case "file":
						c.Annotations[names.AnnotationFilled], c.Annotations[names.AnnotationDiskFormat] = "u2", "qcow2"
					case "somebody else's":
						delete(c.Annotations, names.AnnotationMadeFor)
					case "unbound":
						c.Status.Phase = corev1.ClaimPending
					case "being deleted":
						c.DeletionTimestamp = deleted
					}
					if from != "no source" {
						s.Source = golden
					}
					if claim != "no claim" {
						s.SourceClaim = c
					}
					switch users {
					case "a machine":
						s.SourceUsers = []corev1.Pod{pod("web", corev1.PodRunning)}
					case "another copy of it":
						other := spec.NewDisk("lab", "other", resource.MustParse("1Gi"))
						other.UID, other.Spec.DataSource = "u3", d.Spec.DataSource
						p := objects.FilledDisk(other).ImportJob(s.Settings, c)
						p.Status.Phase = corev1.PodRunning
						s.SourceUsers = []corev1.Pod{*p}
					case "what fills it":
						p := objects.FilledDisk(golden).ImportJob(s.Settings, nil)
						p.Status.Phase = corev1.PodRunning
						s.SourceUsers = []corev1.Pod{*p}
					case "one that has ended":
						s.SourceUsers = []corev1.Pod{pod("web", corev1.PodSucceeded)}
					}
					for i := range s.SourceUsers { // as the operator keeps them
						s.SourceUsers[i] = *machine.CondensePod(&s.SourceUsers[i])
					}
					if own != "no pod" {
						s.Pod = objects.FilledDisk(d).ImportJob(s.Settings, s.SourceClaim)
						s.Pod.UID, s.Pod.Status.Phase = "p1", corev1.PodRunning
						if own == "pod that has the disk" {
							s.Pod.Status.Phase = corev1.PodSucceeded
							s.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"format":"raw","size":1073741824}`}}}}
						}
					}
					yield(strings.Join([]string{from, claim, users, own}, ", "), s,
						own == "no pod" && (from == "ready" || from == "growing") && (claim == "block device" || claim == "file") && users != "a machine" && users != "what fills it",
						own == "pod that has the disk" && (users == "a machine" || users == "what fills it"))
				}
			}
		}
	}
}

// brokenCopies are the promises about copies that a decision breaks, and where.
func brokenCopies(decide func(disk.Snapshot) reconcile.Plan) []string {
	var out []string
	copying(func(name string, s disk.Snapshot, can, torn bool) {
		plan := decide(s)
		broken := func(promise string) { out = append(out, promise+": "+name) }
		var made *corev1.Pod
		filled := false
		for _, a := range plan.Actions {
			switch a := a.(type) {
			case reconcile.Create:
				if p, is := a.Object.(*corev1.Pod); is {
					made = p
				}
			case reconcile.UpdateClaim:
				filled = filled || a.Annotations[names.AnnotationFilled] != ""
			}
		}
		if is := disk.CopiesDisk(s, plan) == "golden-vd"; is != (made != nil) {
			broken("what begins to be copied is known")
		}
		if (made != nil) != can {
			broken("what is copied is there, and nobody writes to it")
		}
		if made != nil && !slices.Equal(objects.PodClaims(made), []string{"copy-vd", "golden-vd"}) {
			broken("the pod has both disks")
		}
		if filled && torn {
			broken("what may be torn is no disk")
		}
		if has := strings.HasSuffix(name, "pod that has the disk"); has && !torn && !filled {
			broken("what nobody wrote to is one")
		}
		if made == nil && s.Pod == nil && (len(plan.Statuses) == 0 || !strings.Contains(fmt.Sprint(plan.Statuses[0].Status["conditions"]), "golden")) {
			broken("what is awaited is told")
		}
	})
	return out
}

// A disk is copied when it is there and nobody writes to it, and a copy that somebody may
// have written to meanwhile is none.
func TestCopiesOfDisks(t *testing.T) {
	for _, b := range brokenCopies(disk.Decide) {
		t.Error(b)
	}
	for fault, m := range map[string]struct {
		promise string
		see     func(*disk.Snapshot)
	}{
		"pods are not looked at":    {"what is copied is there, and nobody writes to it", func(s *disk.Snapshot) { s.SourceUsers = nil }},
		"so it is when it is there": {"what may be torn is no disk", func(s *disk.Snapshot) { s.SourceUsers = nil }},
		"any claim of the name is it": {"what is copied is there, and nobody writes to it", func(s *disk.Snapshot) {
			if s.Source != nil && s.SourceClaim != nil {
				s.SourceClaim.Annotations[names.AnnotationMadeFor] = string(s.Source.UID)
			}
		}},
		"what is not there is read": {"what is copied is there, and nobody writes to it", func(s *disk.Snapshot) {
			if s.Source != nil && s.SourceClaim != nil {
				s.SourceClaim.Annotations[names.AnnotationFilled] = string(s.Source.UID)
			}
		}},
		"its phase is not looked at": {"what is copied is there, and nobody writes to it", func(s *disk.Snapshot) {
			if s.Source != nil {
				s.Source.Status.Phase = spec.DiskReady
			}
		}},
	} {
		mutant := func(s disk.Snapshot) reconcile.Plan {
			m.see(&s)
			return disk.Decide(s)
		}
		if !slices.ContainsFunc(brokenCopies(mutant), func(b string) bool { return strings.HasPrefix(b, m.promise) }) {
			t.Errorf("nobody notices: %s", fault)
		}
	}
}

// A machine that starts at the same moment as a copy, and ends before it, has written to what was
// copied: that is noted as soon as its pod is seen, because nothing shows it afterwards, and nothing
// that the attempt may have left in the claim becomes the disk.
func TestCopyDuringWhichAMachineEnds(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded} {
		copying(func(name string, s disk.Snapshot, _, torn bool) {
			if !torn {
				return
			}
			t.Run(string(phase)+", "+name, func(t *testing.T) {
				had := s.Pod
				s.Pod = had.DeepCopy()
				if s.Pod.Status.Phase = phase; phase == corev1.PodPending || phase == corev1.PodRunning {
					s.Pod.Status.ContainerStatuses = nil
				}
				fills := func() bool {
					t.Helper()
					plan := disk.Decide(s)
					s.Disk = told(t, s.Disk, plan)
					return slices.ContainsFunc(plan.Actions, func(a reconcile.Action) bool {
						c, makes := a.(reconcile.Create)
						_, pod := any(c.Object).(*corev1.Pod)
						_, marks := a.(reconcile.UpdateClaim)
						return marks || makes && pod
					})
				}
				if fills() || s.Disk.Status.Import == nil || s.Disk.Status.Import.PodUID != s.Pod.UID || !s.Disk.Status.Import.Final {
					t.Fatalf("it is not noted: %+v", s.Disk.Status)
				}
				s.SourceUsers, s.Pod = nil, had
				if fills() {
					t.Error("what may be torn is the disk")
				}
				if s.Pod = nil; fills() || s.Disk.Status.Phase != spec.DiskFailed {
					t.Errorf("another attempt finds what that one has left: %+v", s.Disk.Status)
				}
			})
		})
	}
}

// An image is copied whoever else reads it, when it is there; what a guest sees of it is
// what the disk has at least. Nobody writes to it, so that no copy is torn.
func TestCopiesOfImages(t *testing.T) {
	source := spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: "http://images.test/a"}}
	for name, tt := range map[string]struct {
		change func(*disk.Snapshot)
		says   string // empty: the copy is begun
	}{
		"ready": {func(*disk.Snapshot) {}, ""},
		"read by others": {func(s *disk.Snapshot) {
			s.SourceUsers = []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodRunning}}}
		}, ""},
		"no image": {func(s *disk.Snapshot) { s.SourceImage, s.SourceClaim = nil, nil }, "VirtualImage golden, which it is a copy of, does not exist"},
		"a disk of its name": {func(s *disk.Snapshot) {
			s.SourceImage, s.Source = nil, spec.NewDisk("lab", "golden", resource.MustParse("1Gi"))
		}, "does not exist"},
		"provisioning":        {func(s *disk.Snapshot) { s.SourceImage.Status.Phase = spec.ImageProvisioning }, "kubectl describe vi golden"},
		"not filled":          {func(s *disk.Snapshot) { delete(s.SourceClaim.Annotations, names.AnnotationFilled) }, "is not ready"},
		"somebody's claim":    {func(s *disk.Snapshot) { s.SourceClaim.Annotations[names.AnnotationMadeFor] = "u9" }, "is not ready"},
		"a former one":        {func(s *disk.Snapshot) { s.SourceClaim.Annotations[names.AnnotationFilled] = "u9" }, "is not ready"},
		"being deleted":       {func(s *disk.Snapshot) { s.SourceImage.DeletionTimestamp = &metav1.Time{Time: noon} }, "is being deleted"},
		"larger for a guest":  {func(s *disk.Snapshot) { s.SourceClaim.Annotations[names.AnnotationImageSize] = "1073741825" }, "no disk is made smaller"},
		"of nobody knows how": {func(s *disk.Snapshot) { delete(s.SourceClaim.Annotations, names.AnnotationImageSize) }, ""}, // the pod looks
	} {
		t.Run(name, func(t *testing.T) {
			golden := spec.NewImage("lab", "golden", resource.MustParse("5Gi"), source)
			golden.UID, golden.Status.Phase = "u2", spec.ImageReady
			c := objects.FilledImage(golden).VolumeClaim()
			c.UID, c.Status.Phase = "c2", corev1.ClaimBound
			c.Annotations[names.AnnotationFilled], c.Annotations[names.AnnotationDiskFormat], c.Annotations[names.AnnotationImageSize] = "u2", "qcow2", "1073741824"
			d := spec.NewDisk("lab", "copy", resource.MustParse("1Gi"))
			d.UID, d.Finalizers = "u1", []string{names.FinalizerDisk}
			d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: "golden"}}
			mine := objects.FilledDisk(d).VolumeClaim()
			mine.UID, mine.Status.Phase = "c1", corev1.ClaimBound
			d.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: mine.Name, PersistentVolumeClaimUID: mine.UID}
			s := disk.Snapshot{Disk: d, Claim: mine, SourceImage: golden, SourceClaim: c, Now: noon, Settings: objects.Settings{RunnerImage: "registry.test/runner"}}
			tt.change(&s)
			plan := disk.Decide(s)
			var made *corev1.Pod
			for _, a := range plan.Actions {
				if c, is := a.(reconcile.Create); is {
					made, _ = c.Object.(*corev1.Pod)
				}
			}
			if (made != nil) != (tt.says == "") || tt.says != "" && !strings.Contains(fmt.Sprint(plan.Statuses), tt.says) {
				t.Errorf("%+v", plan)
			}
			if made != nil && (!slices.Equal(objects.PodClaims(made), []string{"copy-vd", "golden-vi"}) || !made.Spec.Containers[0].VolumeMounts[2].ReadOnly) {
				t.Errorf("%+v", made.Spec)
			}
		})
	}
}

// An image is kept as it is: its pod is told so, and the disk in it may be larger than
// its volume. A copy of a CD is one.
func TestImageImportJob(t *testing.T) {
	i := spec.NewImage("lab", "copy", resource.MustParse("1Gi"), spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: "golden"}})
	i.Spec.PersistentVolumeClaim.AccessMode = corev1.ReadWriteMany
	golden := objects.FilledImage(spec.NewImage("lab", "golden", resource.MustParse("1Gi"), spec.VirtualDiskSource{})).VolumeClaim()
	golden.Annotations[names.AnnotationDiskFormat] = "iso"
	job := objects.FilledImage(i).ImportJob(objects.Settings{}, golden).Spec.Containers[0].Env[0].Value
	if !strings.Contains(job, `"keep":true`) || !strings.Contains(job, `"format":"raw","cd":true`) {
		t.Error(job)
	}
	d := spec.NewDisk("lab", "copy", resource.MustParse("1Gi"))
	d.Spec.DataSource = &i.Spec.DataSource
	job = objects.FilledDisk(d).ImportJob(objects.Settings{}, golden).Spec.Containers[0].Env[0].Value
	if strings.Contains(job, "keep") || strings.Contains(job, "cd") || !strings.Contains(job, `"format":"raw"`) {
		t.Error(job)
	}
	if c := objects.FilledImage(i).VolumeClaim(); !slices.Equal(c.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) || c.Name != "copy-vi" || c.OwnerReferences[0].Kind != spec.KindImage {
		t.Errorf("%+v", c)
	}
}

// Whoever deletes an image in the foreground sees its claim go before it: by then it is
// let go, and nothing is said of it any more.
func TestImageWhoseClaimGoesFirst(t *testing.T) {
	for name, finalizers := range map[string][]string{"held": {names.FinalizerImage, "foregroundDeletion"}, "let go": {"foregroundDeletion"}} {
		i := spec.NewImage("lab", "golden", resource.MustParse("1Gi"), spec.VirtualDiskSource{Type: spec.DiskSourceUpload})
		i.UID, i.Finalizers, i.DeletionTimestamp = "u1", finalizers, new(metav1.NewTime(noon))
		i.Status.Phase, i.Status.SHA256 = spec.ImageReady, "abc"
		if p := disk.Decide(disk.Snapshot{Image: i, Now: noon}); len(p.Statuses) > 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A block device is copied as such and a file as the image that it is; neither is mounted
// to be written. Credentials are a file, of the one key.
func TestImportJobOfACopy(t *testing.T) {
	d := spec.NewDisk("lab", "copy", resource.MustParse("1Gi"))
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "golden"}}
	golden := objects.FilledDisk(spec.NewDisk("lab", "golden", resource.MustParse("1Gi"))).VolumeClaim()
	p := objects.FilledDisk(d).ImportJob(objects.Settings{}, golden)
	c := &p.Spec.Containers[0]
	if len(c.VolumeDevices) != 1 || !strings.Contains(c.Env[0].Value, `"copy":{"file":"`+c.VolumeDevices[0].DevicePath+`","format":"raw"}`) || len(p.Spec.SecurityContext.SupplementalGroups) != 1 {
		t.Errorf("%+v", p.Spec)
	}
	file := corev1.PersistentVolumeFilesystem
	golden.Spec.VolumeMode, golden.Annotations[names.AnnotationDiskFormat] = &file, "qcow2"
	p = objects.FilledDisk(d).ImportJob(objects.Settings{}, golden)
	c = &p.Spec.Containers[0]
	last := c.VolumeMounts[len(c.VolumeMounts)-1]
	if len(c.VolumeDevices) != 0 || !last.ReadOnly || !strings.Contains(c.Env[0].Value, `"copy":{"file":"`+last.MountPath+`/disk.img","format":"qcow2"}`) {
		t.Errorf("%+v", c)
	}
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, ContainerImage: &spec.VirtualDiskContainerImage{Image: "images.test/a", ImagePullSecret: &spec.VirtualDiskPullSecret{Name: "pull"}}}
	p = objects.FilledDisk(d).ImportJob(objects.Settings{}, nil)
	c = &p.Spec.Containers[0]
	v := p.Spec.Volumes[len(p.Spec.Volumes)-1]
	if v.Secret == nil || v.Secret.SecretName != "pull" || len(v.Secret.Items) != 1 || v.Secret.Items[0].Key != ".dockerconfigjson" || v.Secret.Items[0].Path != "config.json" ||
		!slices.Contains(c.Env, corev1.EnvVar{Name: "DOCKER_CONFIG", Value: c.VolumeMounts[len(c.VolumeMounts)-1].MountPath}) {
		t.Errorf("%+v\n%+v", v, c)
	}
	for _, text := range append(slices.Clone(c.Args), c.Env[0].Value) {
		if strings.Contains(text, "pull") {
			t.Errorf("the secret is in %q", text)
		}
	}
}

// A block device that is filled is a device of its pod, too, beside a volume for what is
// downloaded, which a copy does not need; its claim says that it is still to be filled.
func TestImportJobOfABlockDevice(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	d := spec.NewDisk("lab", "data", resource.MustParse("1Gi"))
	d.UID = "u1"
	d.Spec.PersistentVolumeClaim.VolumeMode, d.Spec.PersistentVolumeClaim.StorageClassName = &block, new("fast")
	if c := objects.FilledDisk(d).VolumeClaim(); c.Annotations[names.AnnotationToBeFilled] != "" {
		t.Errorf("an empty one is to be filled: %+v", c)
	}
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: "http://images.test/a"}}
	if c := objects.FilledDisk(d).VolumeClaim(); c.Annotations[names.AnnotationToBeFilled] != "u1" || *c.Spec.VolumeMode != block {
		t.Errorf("%+v", c)
	}
	p := objects.FilledDisk(d).ImportJob(objects.Settings{}, nil)
	c, v := &p.Spec.Containers[0], p.Spec.Volumes[len(p.Spec.Volumes)-1]
	job, err := runnerconfig.ParseImport(c.Env[0].Value)
	if err != nil || !job.Device || job.File != c.VolumeDevices[0].DevicePath || job.Scratch != c.VolumeMounts[len(c.VolumeMounts)-1].MountPath || len(p.Spec.SecurityContext.SupplementalGroups) != 1 {
		t.Errorf("%+v, %v\n%+v", job, err, c)
	}
	if claim := v.Ephemeral; claim == nil || *claim.VolumeClaimTemplate.Spec.StorageClassName != "fast" || *claim.VolumeClaimTemplate.Spec.VolumeMode != corev1.PersistentVolumeFilesystem ||
		claim.VolumeClaimTemplate.Spec.Resources.Requests.Storage().String() != "1536Mi" {
		t.Errorf("%+v", v)
	}
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: "golden"}}
	golden := objects.FilledImage(spec.NewImage("lab", "golden", resource.MustParse("1Gi"), spec.VirtualDiskSource{})).VolumeClaim()
	golden.Annotations[names.AnnotationDiskFormat] = "qcow2"
	p = objects.FilledDisk(d).ImportJob(objects.Settings{}, golden)
	job, err = runnerconfig.ParseImport(p.Spec.Containers[0].Env[0].Value)
	if err != nil || !job.Device || job.Scratch != "" || job.Copy.Format != "qcow2" || len(p.Spec.Containers[0].VolumeDevices) != 1 || slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) {
		t.Errorf("%+v, %v\n%+v", job, err, p.Spec)
	}
}

// A pod that copies a disk keeps it, and is no machine.
func TestDiskThatIsCopied(t *testing.T) {
	d := spec.NewDisk("lab", "golden", resource.MustParse("1Gi"))
	d.UID, d.Finalizers, d.DeletionTimestamp = "u1", []string{names.FinalizerDisk}, &metav1.Time{Time: noon}
	other := spec.NewDisk("lab", "copy", resource.MustParse("1Gi"))
	s := disk.Snapshot{Disk: d, Now: noon, Users: []corev1.Pod{*objects.FilledDisk(other).ImportJob(objects.Settings{}, nil)}}
	for machines, attached := range map[string]int{"": 0, "web": 1} {
		if s.Machines = nil; machines != "" {
			s.Machines = []string{machines}
		}
		plan := disk.Decide(s)
		if len(plan.Actions) > 0 || len(plan.Statuses) != 1 {
			t.Fatalf("%+v", plan)
		}
		status := plan.Statuses[0].Status
		list, _ := status["attachedToVirtualMachines"].([]any)
		if copied := strings.Contains(fmt.Sprint(status["conditions"]), "BeingCopied"); len(list) != attached || copied != (attached == 0) {
			t.Errorf("%+v", status)
		}
	}
}
