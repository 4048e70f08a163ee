package machinetest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// referring is a stopped machine that refers to the disk "data", whose claim is what the
// function makes of it.
func referring(t *testing.T, change func(*corev1.PersistentVolumeClaim)) *world {
	w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
	vm := get[*spec.VirtualMachine](w, theVM)
	d := spec.NewDisk(vm.Namespace, "data", quantity("1Gi"))
	d.UID = "u1"
	c := objects.FilledDisk(d).VolumeClaim()
	c.UID, c.Namespace, c.Status.Phase = "u2", vm.Namespace, corev1.ClaimBound
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity("2Gi")}
	change(c)
	if c.Name != "" {
		w.put("claim/"+c.Name, machine.CondenseClaim(c))
	}
	vm.Spec.VM.State, vm.Generation = spec.StateRunning, vm.Generation+1
	vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: spec.KindDisk, Name: "data", BootOrder: new(int32(1))}}
	w.put(theVM, vm)
	for range 10 {
		w.observeAll()
		w.work()
	}
	return w
}

// The status says what became of a reference, and goes with it.
func TestStatusOfBlockDevices(t *testing.T) {
	w := referring(t, func(*corev1.PersistentVolumeClaim) {})
	pod := get[*corev1.Pod](w, thePod)
	if pod == nil {
		t.Fatal("there is no pod")
	}
	want := []spec.BlockDeviceStatus{{
		Kind: spec.KindDisk, Name: "data", BootOrder: new(int32(1)), Size: new(quantity("2Gi")),
		Target: "/dev/disk/by-id/virtio-data-vd-claim", Attached: true,
	}}
	if diff := cmp.Diff(want, get[*spec.VirtualMachine](w, theVM).Status.BlockDeviceRefs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	config := get[*corev1.ConfigMap](w, theConfig).Data[names.ConfigKey]
	if !strings.Contains(config, "data-vd-claim") {
		t.Errorf("the runner does not have it:\n%s", config)
	}
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.BlockDeviceRefs, vm.Generation = nil, vm.Generation+1
	w.put(theVM, vm)
	for range 10 {
		w.observeAll()
		w.work()
	}
	if got := get[*spec.VirtualMachine](w, theVM).Status.BlockDeviceRefs; len(got) > 0 {
		t.Errorf("the reference is gone, and the status has %+v", got)
	}
}

// What a guest has by an attachment stands behind the references, with the attachment's
// name, until the guest has released it; what a runner says of a machine that has ended,
// or of another attachment, does not.
func TestStatusOfAttachedDisks(t *testing.T) {
	of := func(change func(*machine.Snapshot, *spec.VirtualMachineBlockDeviceAttachment)) []spec.BlockDeviceStatus {
		t.Helper()
		w := referring(t, func(*corev1.PersistentVolumeClaim) {})
		plan := w.decided(func(s *machine.Snapshot) {
			vm := s.VM.DeepCopy()
			a := spec.NewAttachment(vm.Namespace, "scratch", vm.Name, spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: "scratch-claim"})
			a.UID, a.Status.Connection = "uid-scratch", &spec.AttachmentConnection{PodUID: s.Pod().UID}
			vm.Status.Attachments = []spec.MachineAttachment{{UID: "uid-scratch", Name: "scratch", Phase: "Attached", Place: 1}}
			claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "scratch-claim"}}
			claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity("3Gi")}
			s.VM, s.Claims = vm, append(slices.Clone(s.Claims), claim)
			change(s, a)
			s.Attachments = append(s.Attachments, *a)
		})
		for _, status := range plan.Statuses {
			if status.Manager != names.OperatorStatusManager {
				continue
			}
			data, err := json.Marshal(status.Status)
			if err != nil {
				t.Fatal(err)
			}
			var got spec.VirtualMachineStatus
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			return got.BlockDeviceRefs[min(1, len(got.BlockDeviceRefs)):]
		}
		return nil // it is as it was: without
	}
	same := func(*machine.Snapshot, *spec.VirtualMachineBlockDeviceAttachment) {}
	want := []spec.BlockDeviceStatus{{
		Kind: string(spec.AttachedClaim), Name: "scratch-claim", Size: new(quantity("3Gi")), Target: "/dev/disk/by-id/virtio-scratch",
		Attached: true, Hotplugged: true, VirtualMachineBlockDeviceAttachmentName: "scratch",
	}}
	if diff := cmp.Diff(want, of(same)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, tt := range map[string]struct {
		change func(*machine.Snapshot, *spec.VirtualMachineBlockDeviceAttachment)
		there  bool
	}{
		"it is asked to release it": {func(s *machine.Snapshot, a *spec.VirtualMachineBlockDeviceAttachment) {
			a.Status.Connection.Detach, s.VM.Status.Attachments[0].Phase = true, "Detaching"
		}, true},
		"it has released it": {func(s *machine.Snapshot, a *spec.VirtualMachineBlockDeviceAttachment) {
			a.Status.Connection.Detach, s.VM.Status.Attachments[0].Phase, s.VM.Status.Attachments[0].Place = true, "Detached", 0
		}, false},
		"it has not come": {func(s *machine.Snapshot, _ *spec.VirtualMachineBlockDeviceAttachment) {
			s.VM.Status.Attachments[0].Phase, s.VM.Status.Attachments[0].Place = "Pending", 0
		}, false},
		"it is another's": {func(_ *machine.Snapshot, a *spec.VirtualMachineBlockDeviceAttachment) {
			a.Spec.VirtualMachineName = "other"
		}, false},
		"it is another one": {func(_ *machine.Snapshot, a *spec.VirtualMachineBlockDeviceAttachment) {
			a.UID = "uid-later"
		}, false},
		"the machine has ended": {func(s *machine.Snapshot, _ *spec.VirtualMachineBlockDeviceAttachment) {
			s.Pods = slices.Clone(s.Pods)
			for i := range s.Pods {
				s.Pods[i].Status.Phase = corev1.PodSucceeded
			}
		}, false},
	} {
		if got := of(tt.change); (len(got) == 1) != tt.there {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A disk that is not there keeps the machine from starting, and so does a claim that
// merely has its name.
func TestBlockDeviceIsNotThere(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		says   string
	}{
		"no disk":         {func(c *corev1.PersistentVolumeClaim) { c.Name = "" }, "VirtualDisk data of spec.blockDeviceRefs[0] does not exist, or has no claim yet; create it, or see kubectl describe vd data"},
		"somebody's own":  {func(c *corev1.PersistentVolumeClaim) { c.Labels, c.Annotations = nil, nil }, "claim data-vd is there, and none of VirtualDisk data"},
		"a labelled one":  {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, "claim data-vd is there, and none of VirtualDisk data"},
		"of another disk": {func(c *corev1.PersistentVolumeClaim) { c.Labels[names.LabelDisk] = "other" }, "claim data-vd is there, and none of VirtualDisk data"},
	} {
		t.Run(name, func(t *testing.T) {
			w := referring(t, tt.change)
			if get[*corev1.Pod](w, thePod) != nil {
				t.Error("there is a pod")
			}
			got := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionBlockDevicesReady)
			if got.Reason != spec.ReasonClaimNotFound || !strings.Contains(got.Message, tt.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An image is mounted to be read, and others may have it at the same time; the machine
// waits until it is there.
func TestImageOfAMachine(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*corev1.PersistentVolumeClaim)
		says    string // empty: the machine runs
		config  string
		without string
	}{
		"a disk":          {change: func(*corev1.PersistentVolumeClaim) {}, config: "type: raw", without: "type: ide-cd"},
		"a CD":            {change: func(c *corev1.PersistentVolumeClaim) { c.Annotations[names.AnnotationDiskFormat] = "iso" }, config: "type: ide-cd"},
		"not filled":      {change: func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, names.AnnotationFilled) }, says: "VirtualImage golden, which is not in it yet"},
		"no image":        {change: func(c *corev1.PersistentVolumeClaim) { c.Name = "" }, says: "VirtualImage golden of spec.blockDeviceRefs[0] does not exist, or has no claim yet; create it"},
		"of another one":  {change: func(c *corev1.PersistentVolumeClaim) { c.Labels[names.LabelImage] = "other" }, says: "none of VirtualImage golden"},
		"somebody's own":  {change: func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, says: "none of VirtualImage golden"},
		"a disk's really": {change: func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{names.LabelDisk: "golden"} }, says: "none of VirtualImage golden"},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
			vm := get[*spec.VirtualMachine](w, theVM)
			i := spec.NewImage(vm.Namespace, "golden", quantity("1Gi"), spec.VirtualDiskSource{})
			i.UID = "u1"
			c := objects.FilledImage(i).VolumeClaim()
			c.UID, c.Status.Phase = "u2", corev1.ClaimBound
			c.Annotations[names.AnnotationFilled], c.Annotations[names.AnnotationDiskFormat], c.Annotations[names.AnnotationImageSize] = "u1", "qcow2", "3221225472"
			tt.change(c)
			if c.Name != "" {
				w.put("claim/"+c.Name, machine.CondenseClaim(c))
			}
			vm.Spec.VM.State, vm.Generation = spec.StateRunning, vm.Generation+1
			vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: spec.KindImage, Name: "golden"}}
			w.put(theVM, vm)
			for range 10 {
				w.observeAll()
				w.work()
			}
			status := get[*spec.VirtualMachine](w, theVM).Status
			pod := get[*corev1.Pod](w, thePod)
			if tt.says != "" {
				got := spec.FindCondition(status.Conditions, spec.ConditionBlockDevicesReady)
				if pod != nil || !strings.Contains(got.Message, tt.says) {
					t.Errorf("%+v", got)
				}
				return
			}
			if pod == nil {
				t.Fatalf("there is no pod: %+v", status.Conditions)
			}
			config := get[*corev1.ConfigMap](w, theConfig).Data[names.ConfigKey]
			if !strings.Contains(config, tt.config) || !strings.Contains(config, "readOnly: true") || tt.without != "" && strings.Contains(config, tt.without) {
				t.Errorf("%s", config)
			}
			if b := status.BlockDeviceRefs; len(b) != 1 || !b[0].Attached || b[0].Size == nil || b[0].Size.String() != "3Gi" || (b[0].Target == "") != (name == "a CD") {
				t.Errorf("%+v", b)
			}
			another := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
			another.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "golden-vi"}}}}
			if machine.SharesDisks(get[*spec.VirtualMachine](w, theVM), nil, another) {
				t.Error("another machine that has the image is in the way")
			}
		})
	}
}

// The claim of an image is no disk of a machine, nor a folder: it would be written to.
func TestClaimOfAnImage(t *testing.T) {
	for name, have := range map[string]func(*spec.VirtualMachine){
		"a disk": func(vm *spec.VirtualMachine) {
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "golden-vi"}})
		},
		"a folder": func(vm *spec.VirtualMachine) {
			vm.Spec.VM.Shares = append(vm.Spec.VM.Shares, spec.Share{Tag: "golden", PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "golden-vi"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
			vm := get[*spec.VirtualMachine](w, theVM)
			i := spec.NewImage(vm.Namespace, "golden", quantity("1Gi"), spec.VirtualDiskSource{})
			i.UID = "u1"
			c := objects.FilledImage(i).VolumeClaim()
			c.UID, c.Status.Phase, c.Annotations[names.AnnotationFilled] = "u2", corev1.ClaimBound, "u1"
			w.put("claim/"+c.Name, machine.CondenseClaim(c))
			vm.Spec.VM.State, vm.Generation = spec.StateRunning, vm.Generation+1
			have(vm)
			w.put(theVM, vm)
			for range 10 {
				w.observeAll()
				w.work()
			}
			got := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionBlockDevicesReady)
			if get[*corev1.Pod](w, thePod) != nil || got.Reason != spec.ReasonClaimOfImage || !strings.Contains(got.Message, "VirtualImage golden") {
				t.Errorf("%+v", got)
			}
		})
	}
}
