package machinetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gains is a machine that runs, the manifest of which gains a disk.
func gains(t *testing.T, change func(*spec.VirtualMachine)) *world {
	t.Helper()
	w := running(t, nil)
	w.exports = true
	for _, name := range []string{"data", "more"} {
		d := spec.NewDisk("apps", name, quantity("1Gi"))
		d.UID = "u1"
		c := objects.FilledDisk(d).VolumeClaim()
		c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: quantity("2Gi")}
		w.put("claim/"+c.Name, c)
	}
	w.changes(change)
	return w
}

// changes has somebody change the machine, and everybody work.
func (w *world) changes(change func(*spec.VirtualMachine)) {
	vm := get[*spec.VirtualMachine](w, theVM)
	change(vm)
	vm.Generation++
	w.put(theVM, vm)
	w.rest()
}

func (w *world) rest() {
	for range 10 {
		w.work()
		w.attached()
		w.tellAttached()
		w.pass(time.Second)
	}
	w.observeAll()
}

// tellAttached is the runner, which tells which disks the guest has by attachments.
func (w *world) tellAttached() {
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Status.Attachments = nil
	for _, k := range w.keys("attachment/") {
		if a := get[*spec.VirtualMachineBlockDeviceAttachment](w, k); a != nil && a.Status.Connection != nil {
			vm.Status.Attachments = append(vm.Status.Attachments, spec.MachineAttachment{UID: string(a.UID), Name: a.Name, Phase: "Attached", Place: 1})
		}
	}
	w.put(theVM, vm)
}

func (w *world) ownAttachments() []*spec.VirtualMachineBlockDeviceAttachment {
	var out []*spec.VirtualMachineBlockDeviceAttachment
	for _, k := range w.keys("attachment/") {
		if a := get[*spec.VirtualMachineBlockDeviceAttachment](w, k); a != nil && len(a.OwnerReferences) > 0 {
			out = append(out, a)
		}
	}
	return out
}

func (w *world) runnersConfig(t *testing.T) runnerconfig.Config {
	t.Helper()
	c, _, err := runnerconfig.Parse([]byte(get[*corev1.ConfigMap](w, theConfig).Data[names.ConfigKey]))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func refer(names ...string) func(*spec.VirtualMachine) {
	return func(vm *spec.VirtualMachine) {
		vm.Spec.BlockDeviceRefs = nil
		for _, n := range names {
			vm.Spec.BlockDeviceRefs = append(vm.Spec.BlockDeviceRefs, spec.BlockDeviceRef{Kind: spec.KindDisk, Name: n})
		}
	}
}

// A VirtualDisk that comes into the manifest of a machine that runs comes to its guest with
// the name that it has from the next start on, and nothing waits; when it leaves the
// manifest, it leaves the guest; and the next pod has it itself.
func TestReferencesComeAndGo(t *testing.T) {
	w := gains(t, refer("data"))
	pod := get[*corev1.Pod](w, thePod)
	own := w.ownAttachments()
	if len(own) != 1 || own[0].Spec.BlockDeviceRef != (spec.AttachedBlockDevice{Kind: spec.AttachedDisk, Name: "data"}) || len(spec.ValidateAttachment(own[0])) > 0 {
		t.Fatalf("%+v", own)
	}
	c := w.runnersConfig(t)
	if len(c.Runner.VM.Drives) != 1 || len(c.Runner.VM.Attachments) != 1 || c.Runner.VM.Attachments[0].Name != "data-vd-claim" || c.Runner.GuestResetEnds {
		t.Errorf("%+v", c.Runner)
	}
	vm := get[*spec.VirtualMachine](w, theVM)
	want := []spec.BlockDeviceStatus{{
		Kind: spec.KindDisk, Name: "data", Size: new(quantity("2Gi")), Target: "/dev/disk/by-id/virtio-data-vd-claim",
		Attached: true, Hotplugged: true, VirtualMachineBlockDeviceAttachmentName: own[0].Name,
	}}
	if diff := cmp.Diff(want, vm.Status.BlockDeviceRefs); diff != "" || len(vm.Status.RestartAwaitingChanges) > 0 {
		t.Errorf("(-want +got):\n%s%+v", diff, vm.Status.RestartAwaitingChanges)
	}

	w.changes(refer("data", "more"))
	w.changes(refer("more"))
	own = w.ownAttachments()
	if len(own) != 1 || own[0].Spec.BlockDeviceRef.Name != "more" || get[*corev1.Pod](w, thePod).UID != pod.UID {
		t.Fatalf("%+v", own)
	}

	w.changes(func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
	w.changes(func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateRunning })
	now := get[*corev1.Pod](w, thePod)
	if now == nil || now.UID == pod.UID || !slices.Contains(objects.PodClaims(now), "more-vd") || len(w.ownAttachments()) > 0 {
		t.Fatalf("%+v", w.ownAttachments())
	}
	c = w.runnersConfig(t)
	if serials := runnerconfig.DiskSerials(c.Runner.VM.Drives); len(serials) != 2 || serials[1] != "more-vd-claim" || len(c.Runner.VM.Attachments) > 0 {
		t.Errorf("%+v", c.Runner.VM)
	}

	// What the pod has is not taken from it.
	w.exports = false
	w.changes(refer())
	waits := get[*spec.VirtualMachine](w, theVM).Status.RestartAwaitingChanges
	if len(waits) != 1 || waits[0].Path != "spec.blockDeviceRefs[0]" || waits[0].Operation != spec.OperationRemove {
		t.Errorf("%+v", waits)
	}
}

// What cannot come while the machine runs waits for its restart, and has no attachment.
func TestDisksThatWait(t *testing.T) {
	byHand := func(w *world, name, claim string) {
		a := spec.NewAttachment("apps", name, "web", spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: claim})
		w.put("attachment/"+name, a)
		w.rest()
	}
	for name, tt := range map[string]struct {
		before func(*world)
		change func(*spec.VirtualMachine)
		path   string
		says   string
	}{
		"something else waits": {change: func(vm *spec.VirtualMachine) {
			refer("data")(vm)
			vm.Spec.VM.MaximumCPUs = new(int32(5))
		}, path: "spec.blockDeviceRefs[0]", says: "only where nothing else waits"},
		"a boot order": {change: func(vm *spec.VirtualMachine) {
			vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: spec.KindDisk, Name: "data", BootOrder: new(int32(1))}}
		}, path: "spec.blockDeviceRefs[0]"},
		"a template": {change: func(vm *spec.VirtualMachine) {
			disk := *vm.Spec.VM.Disks[0].DeepCopy()
			disk.VolumeClaimTemplate.Metadata.Name = "other"
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, disk)
		}, path: "spec.vm.disks[1]", says: "made for the next start"},
		"somebody has attached it": {before: func(w *world) { byHand(w, "mine", "data-vd") }, change: refer("data"), path: "spec.blockDeviceRefs[0]", says: "attached by mine"},
		"all places are taken": {before: func(w *world) {
			for i := range 6 {
				byHand(w, "a"+string(rune('0'+i)), "c"+string(rune('0'+i)))
			}
		}, change: refer("data"), path: "spec.blockDeviceRefs[0]", says: "no more than 6 places"},
	} {
		t.Run(name, func(t *testing.T) {
			w := gains(t, func(*spec.VirtualMachine) {})
			if tt.before != nil {
				tt.before(w)
			}
			w.exports = false // something waits
			w.changes(tt.change)
			waits := get[*spec.VirtualMachine](w, theVM).Status.RestartAwaitingChanges
			if !slices.ContainsFunc(waits, func(c spec.AwaitingChange) bool { return c.Path == tt.path && strings.Contains(c.Message, tt.says) }) || len(w.ownAttachments()) > 0 {
				t.Errorf("%+v, attachments %+v", waits, w.ownAttachments())
			}
		})
	}
}

// A disk that the runner cannot plug waits for the next start, which nobody causes for it.
func TestDisksThatCannotBePlugged(t *testing.T) {
	w := gains(t, func(vm *spec.VirtualMachine) {
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
	})
	pod := get[*corev1.Pod](w, thePod)
	vm := get[*spec.VirtualMachine](w, theVM)
	refer("data")(vm)
	vm.Generation++
	w.put(theVM, vm)
	w.work()
	w.observeAll()
	w.reconcile(false)
	own := w.ownAttachments()
	if len(own) != 1 {
		t.Fatalf("%+v", own)
	}
	w.exports = false
	own[0].Status.Phase = spec.AttachmentFailed
	w.put("attachment/"+own[0].Name, own[0])
	for range 5 {
		w.work()
	}
	waits := get[*spec.VirtualMachine](w, theVM).Status.RestartAwaitingChanges
	if len(waits) != 1 || waits[0].Path != "spec.blockDeviceRefs[0]" || !strings.Contains(waits[0].Message, "vmbda "+own[0].Name) {
		t.Errorf("%+v", waits)
	}
	if now := get[*corev1.Pod](w, thePod); now == nil || now.UID != pod.UID {
		t.Error("the machine was restarted")
	}
}

// An attachment is a machine's own if it has the name and the owner.
func TestOwnAttachments(t *testing.T) {
	vm := get[*spec.VirtualMachine](gains(t, refer("data")), theVM)
	for name, change := range map[string]func(*spec.VirtualMachineBlockDeviceAttachment){
		"of a name of its own":  func(a *spec.VirtualMachineBlockDeviceAttachment) { a.Name = "data" },
		"without an owner":      func(a *spec.VirtualMachineBlockDeviceAttachment) { a.OwnerReferences = nil },
		"of an earlier machine": func(a *spec.VirtualMachineBlockDeviceAttachment) { a.OwnerReferences[0].UID = "earlier" },
		"of another machine":    func(a *spec.VirtualMachineBlockDeviceAttachment) { a.Spec.VirtualMachineName = "other" },
		"that it has not alone": func(a *spec.VirtualMachineBlockDeviceAttachment) {
			a.OwnerReferences = append([]metav1.OwnerReference{}, a.OwnerReferences...)
			a.OwnerReferences[0].Controller = nil
		},
	} {
		for _, long := range []string{vm.Name, strings.Repeat("a", 63)} {
			vm := vm.DeepCopy()
			vm.Name = long
			disk := objectsDisk(vm)
			a := objects.OwnAttachment(vm, disk)
			if errs := spec.ValidateAttachment(a); len(errs) > 0 || !objects.OwnsAttachment(vm, a) {
				t.Fatalf("%v, %+v", errs, a)
			}
			if change(a); objects.OwnsAttachment(vm, a) {
				t.Errorf("one %s is the machine's", name)
			}
		}
	}
}

// objectsDisk is the last disk of a machine.
func objectsDisk(vm *spec.VirtualMachine) *machineconfig.Disk {
	all := machineconfig.Disks(vm)
	return &all[len(all)-1]
}
