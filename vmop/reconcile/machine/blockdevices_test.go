package machine_test

import (
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

// A disk that is not there keeps the machine from starting, and so does a claim that
// merely has its name.
func TestBlockDeviceIsNotThere(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		says   string
	}{
		"no disk":         {func(c *corev1.PersistentVolumeClaim) { c.Name = "" }, "claim data-vd of spec.blockDeviceRefs[0] is not there: VirtualDisk data does not exist, or has no claim yet; see kubectl describe vd data"},
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
		"no image":        {change: func(c *corev1.PersistentVolumeClaim) { c.Name = "" }, says: "VirtualImage golden does not exist"},
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
