package attachment_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// keys are two certificates, which are expensive to make.
var keys = sync.OnceValue(func() [2]map[string][]byte {
	var out [2]map[string][]byte
	for i := range out {
		data, err := displaycert.Make(&reconcile.Certificate{CommonName: "test", NotBefore: noon, NotAfter: noon.Add(time.Hour)})
		if err != nil {
			panic(err)
		}
		out[i] = data
	}
	return out
})

func decoded(t *testing.T, st reconcile.StatusApply) (out spec.VirtualMachineBlockDeviceAttachmentStatus) {
	t.Helper()
	data, err := json.Marshal(st.Status)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ready is a snapshot in which nothing is in the way.
func ready() attachment.Snapshot {
	vm := spec.NewVirtualMachine("lab", "web")
	vm.UID, vm.Status.Phase = "machine", spec.PhaseRunning
	a := spec.NewAttachment("lab", "a", "web", spec.AttachedBlockDevice{Kind: spec.AttachedDisk, Name: "data"})
	a.UID, a.ResourceVersion, a.CreationTimestamp = "attachment", "1", metav1.NewTime(noon)
	disk := &spec.VirtualDisk{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Status: spec.VirtualDiskStatus{Phase: spec.DiskReady}}
	return attachment.Snapshot{
		Attachment: a, Machine: vm, Disk: disk, Now: noon, Settings: objects.Settings{RunnerImage: "registry.test/runner"},
		Pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "pod"}, Spec: corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
		Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-vd"}},
	}
}

// other is another attachment.
func other(name, machine, disk string, age time.Duration, connected bool) spec.VirtualMachineBlockDeviceAttachment {
	a := spec.NewAttachment("lab", name, machine, spec.AttachedBlockDevice{Kind: spec.AttachedDisk, Name: disk})
	a.UID, a.CreationTimestamp = types.UID(name), metav1.NewTime(noon.Add(-age))
	if connected {
		a.Status.Connection = &spec.AttachmentConnection{PodUID: "other"}
	}
	return *a
}

// What is refused is refused for the first of several reasons, and with who is in the
// way.
func TestWhatIsRefused(t *testing.T) {
	user := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}
	for _, c := range []struct {
		name   string
		change func(*attachment.Snapshot)
		phase  spec.AttachmentPhase
		reason string
		says   string
	}{
		{"nothing", func(*attachment.Snapshot) {}, spec.AttachmentPending, conditions.ReasonNotAttached, "about to be attached"},
		{"an older one of the disk", func(s *attachment.Snapshot) {
			s.Others, s.Machine = append(s.Others, other("z", "db", "data", time.Hour, false)), nil
		}, spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "attachment z has the disk, for machine db"},
		{"a younger one that is attached", func(s *attachment.Snapshot) { s.Others = append(s.Others, other("z", "db", "data", -time.Hour, true)) }, spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "attachment z"},
		{"a younger one", func(s *attachment.Snapshot) { s.Others = append(s.Others, other("z", "db", "data", -time.Hour, false)) }, spec.AttachmentPending, conditions.ReasonNotAttached, "about to be attached"},
		{"one of the same time with a name before", func(s *attachment.Snapshot) { s.Others = append(s.Others, other("0", "db", "data", 0, false)) }, spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "attachment 0"},
		{"no disk", func(s *attachment.Snapshot) { s.Disk, s.Machine = nil, nil }, spec.AttachmentPending, conditions.ReasonNotAttached, "there is no disk data"},
		{"a disk that is made", func(s *attachment.Snapshot) { s.Disk.Status.Phase = spec.DiskProvisioning }, spec.AttachmentPending, conditions.ReasonNotAttached, "disk data is Provisioning"},
		{"a disk without a volume yet", func(s *attachment.Snapshot) { s.Disk.Status.Phase = spec.DiskWaitForFirstConsumer }, spec.AttachmentPending, conditions.ReasonNotAttached, "about to be attached"},
		{"the claim of an image", func(s *attachment.Snapshot) {
			s.Claim.Labels = map[string]string{names.LabelImage: "golden"}
			s.Claim.Annotations = map[string]string{names.AnnotationMadeFor: "u"}
		}, spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "VirtualImage golden"},
		{"no claim", func(s *attachment.Snapshot) { s.Claim = nil }, spec.AttachmentPending, conditions.ReasonNotAttached, "there is no claim data-vd"},
		{"no machine", func(s *attachment.Snapshot) { s.Machine = nil }, spec.AttachmentPending, conditions.ReasonNotAttached, "there is no machine web"},
		{"a machine that is stopped", func(s *attachment.Snapshot) { s.Pod, s.Machine.Status.Phase = nil, spec.PhaseStopped }, spec.AttachmentPending, conditions.ReasonNotAttached, "machine web is Stopped"},
		{"a disk of the machine", func(s *attachment.Snapshot) {
			s.Machine.Spec.VM.Disks = []spec.Disk{{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "data-vd"}}}
			s.Users = []corev1.Pod{user}
		}, spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "by its manifest already"},
		{"no place", func(s *attachment.Snapshot) {
			for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
				s.Others = append(s.Others, other(n, "web", n, time.Hour, true))
			}
			s.Users = []corev1.Pod{user}
		}, spec.AttachmentPending, conditions.ReasonCapacityReached, "has 6 disks attached"},
		{"a pod with the claim", func(s *attachment.Snapshot) { s.Users = []corev1.Pod{user} }, spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "used by pod backup"},
		{"an invalid one", func(s *attachment.Snapshot) { s.Attachment.Spec.BlockDeviceRef.Kind = "Floppy" }, spec.AttachmentFailed, conditions.ReasonInvalidSpecification, "Floppy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ready()
			c.change(&s)
			p := attachment.Decide(s)
			if len(p.Statuses) != 1 {
				t.Fatalf("%+v", p)
			}
			got := decoded(t, p.Statuses[0])
			about := spec.FindCondition(got.Conditions, conditions.Attached)
			if about == nil || got.Phase != c.phase || about.Reason != c.reason || !strings.Contains(about.Message, c.says) {
				t.Errorf("%s, %+v; want %s, %s, %q", got.Phase, about, c.phase, c.reason, c.says)
			}
		})
	}
}

// The pod of an exporter has the rights of an ordinary program, one volume, and goes where
// its machine is.
func TestExporter(t *testing.T) {
	s := ready()
	s.Attachment.Status.Connection = &spec.AttachmentConnection{PodUID: "pod", Key: strings.Repeat("ab", 32)}
	for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem} {
		p := objects.ExportJob(s.Attachment, s.Machine, "node", mode, s.Settings)
		if got := objects.PodClaims(p); len(got) != 1 || got[0] != "data-vd" {
			t.Errorf("claims %v", got)
		}
		c := p.Spec.Containers[0]
		devices, want := len(c.VolumeDevices), 0
		if mode == corev1.PersistentVolumeBlock {
			want = 1
		}
		term := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]
		if devices != want || *p.Spec.AutomountServiceAccountToken || !*p.Spec.SecurityContext.RunAsNonRoot || term.Values[0] != "node" || objects.ExportsFor(p) != "web" {
			t.Errorf("%s: %+v", mode, p.Spec)
		}
	}
}

// connected is a snapshot in which the runner is told where the disk is.
func connected(age time.Duration, phase string) attachment.Snapshot {
	s := ready()
	key := strings.Repeat("ab", 32)
	s.Key = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.AnnotationMadeFor: "attachment"}}, Data: keys()[0]}
	s.Attachment.Finalizers = []string{names.FinalizerAttachment}
	s.Attachment.Status.Connection = &spec.AttachmentConnection{PodUID: "pod", Key: key, Address: "192.0.2.1:10809", Fingerprint: objects.ExportFingerprint(s.Key)}
	s.Machine.Status.AttachmentKey = key
	s.Machine.Status.Attachments = []spec.MachineAttachment{{UID: "attachment", Name: "a", Phase: phase, Message: "it cannot be plugged: no room"}}
	s.Exporter = objects.ExportJob(s.Attachment, s.Machine, "node", corev1.PersistentVolumeBlock, s.Settings)
	s.Exporter.UID, s.Exporter.CreationTimestamp = "exporter", metav1.NewTime(noon.Add(-age))
	s.Exporter.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1"}
	return s
}

// A disk that the runner could not plug is told so, and gets another exporter, but not
// again and again.
func TestWhatCannotBePlugged(t *testing.T) {
	for age, ends := range map[time.Duration]bool{time.Second: false, time.Hour: true} {
		p := attachment.Decide(connected(age, "Failed"))
		got := decoded(t, p.Statuses[0])
		about := spec.FindCondition(got.Conditions, conditions.Attached)
		if got.Phase != spec.AttachmentFailed || about.Reason != conditions.ReasonAttachmentFailed || !strings.Contains(about.Message, "no room") || len(p.Events) != 1 {
			t.Errorf("%+v", got)
		}
		if (len(p.Actions) == 1) != ends || p.Wake.IsZero() != ends {
			t.Errorf("after %v: %+v, wake %v", age, p.Actions, p.Wake)
		}
	}
}

// An exporter that does not run is told, of a disk that the guest has as of one that it
// has not.
func TestExporterThatDoesNotRun(t *testing.T) {
	for _, c := range []struct {
		report string
		change func(*corev1.PodStatus)
		phase  spec.AttachmentPhase
		reason string
		says   string
	}{
		{"Attached", func(*corev1.PodStatus) {}, spec.AttachmentAttached, conditions.ReasonAttached, "the guest has the disk"},
		{"Attached", func(s *corev1.PodStatus) { s.Phase = corev1.PodPending }, spec.AttachmentAttached, conditions.ReasonAttached, "waits for it"},
		{"Pending", func(s *corev1.PodStatus) {
			s.Phase, s.Conditions = corev1.PodPending, []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "1 node(s) had volume node affinity conflict"}}
		}, spec.AttachmentFailed, conditions.ReasonDeviceNotAvailableOnNode, "node affinity"},
		{"Pending", func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "no such file"}}}}
		}, spec.AttachmentInProgress, conditions.ReasonAttachmentRequestSent, "no such file"},
	} {
		s := connected(time.Hour, c.report)
		c.change(&s.Exporter.Status)
		got := decoded(t, attachment.Decide(s).Statuses[0])
		about := spec.FindCondition(got.Conditions, conditions.Attached)
		if got.Phase != c.phase || about.Reason != c.reason || !strings.Contains(about.Message, c.says) {
			t.Errorf("%s, %+v; want %s, %s, %q", got.Phase, about, c.phase, c.reason, c.says)
		}
	}
}

// The exporter that failed in a former run is gone before its attachment is, also where the
// machine's next pod has had the volume itself.
func TestFailedExporterGoesWithItsAttachment(t *testing.T) {
	s := ready()
	s.Attachment.Finalizers, s.Attachment.DeletionTimestamp = []string{names.FinalizerAttachment}, new(metav1.NewTime(noon))
	s.Attachment.Status.Connection = &spec.AttachmentConnection{PodUID: "pod", Direct: true, Detach: true}
	s.Machine.Status.Attachments = []spec.MachineAttachment{{UID: "attachment", Phase: "Detached"}}
	s.Exporter = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: objects.ExportPod("a"), UID: "exporter", Annotations: map[string]string{names.AnnotationMadeFor: "attachment"}},
		Status:     corev1.PodStatus{Phase: corev1.PodFailed},
	}
	p := attachment.Decide(s)
	if len(p.Actions) != 1 {
		t.Fatalf("%+v", p)
	}
	if a, is := p.Actions[0].(reconcile.DeletePod); !is || a.UID != "exporter" {
		t.Errorf("with the exporter: %+v", p.Actions)
	}
	s.Exporter = nil
	p = attachment.Decide(s)
	if len(p.Actions) != 1 {
		t.Fatalf("%+v", p)
	}
	if a, is := p.Actions[0].(reconcile.SetFinalizers); !is || len(a.Finalizers) != 0 {
		t.Errorf("without it: %+v", p.Actions)
	}
}

// What an exporter's key is known by is what its runner says of itself.
func TestFingerprint(t *testing.T) {
	s := &corev1.Secret{Data: keys()[0]}
	if got := objects.ExportFingerprint(s); len(got) != 64 || got == objects.ExportFingerprint(&corev1.Secret{Data: keys()[1]}) {
		t.Errorf("%q", got)
	}
	if got := objects.ExportFingerprint(&corev1.Secret{}); got != "" {
		t.Errorf("of nothing it is %q", got)
	}
}
