package machinetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// disksAnew changes the disks of a machine, and perhaps something else.
func disksAnew(t *rapid.T, vm *spec.VirtualMachine) *spec.VirtualMachine {
	vm = vm.DeepCopy()
	vm.Generation++
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		disks, refs := vm.Spec.VM.Disks, vm.Spec.BlockDeviceRefs
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		switch rapid.IntRange(0, 7).Draw(t, "change") {
		case 0, 1:
			if !refersTo(vm, name) {
				at := rapid.IntRange(min(1, len(disks)), len(disks)).Draw(t, "at")
				vm.Spec.VM.Disks = slices.Insert(disks, at, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: name}})
			}
		case 2, 3:
			if !slices.ContainsFunc(refs, func(r spec.BlockDeviceRef) bool { return r.Name == name }) {
				vm.Spec.BlockDeviceRefs = append(refs, spec.BlockDeviceRef{Kind: spec.KindDisk, Name: name})
			}
		case 4:
			if len(disks) > 1 {
				at := rapid.IntRange(1, len(disks)-1).Draw(t, "at")
				vm.Spec.VM.Disks = slices.Delete(disks, at, at+1)
			}
		case 5:
			if len(refs) > 0 {
				at := rapid.IntRange(0, len(refs)-1).Draw(t, "at")
				vm.Spec.BlockDeviceRefs = slices.Delete(refs, at, at+1)
			}
		case 6:
			if i := len(disks) - 1; i > 0 {
				vm.Spec.VM.Disks[i].Bootindex = new(rapid.Int32Range(7, 8).Draw(t, "place"))
			}
		case 7:
			vm.Spec.VM.MaximumCPUs = new(rapid.Int32Range(4, 5).Draw(t, "CPUs"))
		}
	}
	return vm
}

// startedAs has the machine of a snapshot run in a pod that was made for a manifest.
func startedAs(s *machine.Snapshot, vm *spec.VirtualMachine) {
	s.Pods = slices.Clone(s.Pods)
	pod := s.Pod()
	pod.Annotations = map[string]string{}
	for k, v := range s.Pods[0].Annotations {
		pod.Annotations[k] = v
	}
	text, err := json.Marshal(struct {
		Generation int64                    `json:"generation"`
		Spec       *spec.VirtualMachineSpec `json:"spec"`
	}{vm.Generation, &vm.Spec})
	if err != nil {
		panic(err)
	}
	pod.Annotations[names.AnnotationStarted] = string(text)
	pod.Spec.Volumes = nil
	for _, claim := range objects.ClaimNames(vm) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
}

// withClaims has claims for what a machine may refer to, attachments of some that somebody
// has made, and those that the operator has.
func withClaims(t *rapid.T, s *machine.Snapshot, now *spec.VirtualMachine) {
	s.Claims = slices.Clone(s.Claims)
	for _, name := range []string{"a", "b", "c", "d", "a-vd", "b-vd", "c-vd", "d-vd"} {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps", Labels: map[string]string{}, Annotations: map[string]string{}}}
		c.Status.Phase = corev1.ClaimBound
		disk, is := strings.CutSuffix(name, "-vd")
		switch rapid.IntRange(0, 9).Draw(t, "claim "+name) {
		case 0:
			c.Labels[names.LabelImage], c.Annotations[names.AnnotationMadeFor] = "x", "u"
		case 1: // somebody's own
		default:
			if is {
				c.Labels[names.LabelDisk], c.Annotations[names.AnnotationMadeFor], c.Annotations[names.AnnotationFilled] = disk, "u", "u"
			}
		}
		s.Claims = append(s.Claims, c)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "others") {
		claim := rapid.SampledFrom([]string{"a", "b-vd", "x", "y"}).Draw(t, "attached by hand")
		a := spec.NewAttachment("apps", fmt.Sprintf("by-hand-%d", i), now.Name, spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: claim})
		a.UID = "by-hand"
		s.Attachments = append(s.Attachments, *a)
	}
	settled := *s
	settled.VM = now
	for _, a := range machine.Decide(settled).Actions {
		if c, is := a.(reconcile.Create); is {
			if made, is := c.Object.(*spec.VirtualMachineBlockDeviceAttachment); is {
				made = made.DeepCopy()
				made.UID = "own"
				s.Attachments = append(s.Attachments, *made)
			}
		}
	}
}

// awaits are the changes that wait for a restart, by a decision.
func awaits(t interface{ Fatalf(string, ...any) }, p reconcile.Plan) []spec.AwaitingChange {
	var out []spec.AwaitingChange
	for _, st := range p.Statuses {
		text, err := json.Marshal(st.Status["restartAwaitingChanges"])
		if err != nil || json.Unmarshal(text, &out) != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return out
}

// startable reports whether all disks of a machine are there, so that it can be started anew.
func startable(s *machine.Snapshot, vm *spec.VirtualMachine) bool {
	return !slices.ContainsFunc(machineconfig.Disks(vm), func(disk machineconfig.Disk) bool {
		i := slices.IndexFunc(s.Claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == disk.Claim })
		return i >= 0 && (s.Claims[i].Labels[names.LabelImage] != "" || disk.Ref != nil && s.Claims[i].Labels[names.LabelDisk] != disk.Ref.Name)
	})
}

func overlap(a, b string) bool {
	within := func(outer, inner string) bool {
		rest, ok := strings.CutPrefix(inner, outer)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	return within(a, b) || within(b, a)
}

func listOf(path string) string {
	list, _, _ := strings.Cut(path, "[")
	return list
}

// What is foreseen of a manifest that somebody proposes is what the operator does when the
// machine has it: what waits for a restart then, which disks are attached and detached, and
// whether the machine is restarted by itself.
func TestForeseenIsWhatHappens(t *testing.T) {
	ran := runningMachine()
	rapid.Check(t, func(t *rapid.T) {
		s := ran
		start := disksAnew(t, ran.VM)
		before := start
		if rapid.Bool().Draw(t, "changed before") {
			before = disksAnew(t, start)
		}
		startedAs(&s, start)
		if rapid.Bool().Draw(t, "automatic") {
			before = before.DeepCopy()
			before.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		}
		withClaims(t, &s, before)
		after := disksAnew(t, before)
		if len(spec.Validate(after.DeepCopy())) > 0 || len(spec.Validate(before.DeepCopy())) > 0 {
			t.Skip()
		}
		s.VM = before
		found := machine.Foresee(s, after)
		s.VM = after
		plan := machine.Decide(s)
		waits := awaits(t, plan)
		s.VM = before.DeepCopy()
		s.VM.Generation++ // so that there is something to tell
		waited := awaits(t, machine.Decide(s))

		for _, c := range found {
			waiting := slices.ContainsFunc(waits, func(w spec.AwaitingChange) bool {
				return overlap(w.Path, c.Path) || c.Operation == spec.OperationRemove && w.Operation == spec.OperationRemove && listOf(w.Path) == listOf(c.Path)
			})
			same := slices.ContainsFunc(waits, func(w spec.AwaitingChange) bool {
				return w.Path == c.Path && w.Operation == c.Operation && c.Operation != spec.OperationRemove
			})
			switch {
			case c.Applied == changes.AppliedRestart && !waiting:
				t.Errorf("nothing waits for a restart as %v does: %+v", c, waits)
			case c.Applied == changes.AppliedLive && same:
				t.Errorf("%v waits for a restart: %+v", c, waits)
			}
		}
		for _, w := range waits {
			if !slices.ContainsFunc(waited, func(e spec.AwaitingChange) bool { return overlap(e.Path, w.Path) || listOf(e.Path) == listOf(w.Path) }) &&
				!slices.ContainsFunc(found, func(c changes.Change) bool {
					return c.Applied == changes.AppliedRestart && (overlap(c.Path, w.Path) || listOf(c.Path) == listOf(w.Path))
				}) {
				t.Errorf("%+v waits, and is not foreseen: %v", w, found)
			}
		}
		s.VM = after
		next := settledConfig(s)
		restarts := slices.ContainsFunc(next.Actions, func(a reconcile.Action) bool { _, is := a.(reconcile.DeletePod); return is })
		if restarts && len(waits) == 0 {
			t.Errorf("it is restarted for nothing: %v", found)
		}
		if after.Spec.RestartsAutomatically() && !restarts && startable(&s, after) && slices.ContainsFunc(found, func(c changes.Change) bool { return c.Applied == changes.AppliedRestart }) {
			t.Errorf("it is not restarted: %v, %v", found, targets(next))
		}
		if restarts {
			return
		}
		had := objects.PodClaims(s.Pod())
		for _, disk := range machineconfig.Disks(after) {
			i := slices.IndexFunc(found, func(c changes.Change) bool { return c.Path == disk.Field() && c.Operation == spec.OperationAdd })
			if i < 0 || slices.Contains(had, disk.Claim) || disk.Entry.PersistentVolumeClaim == nil {
				continue
			}
			comes := slices.ContainsFunc(next.Actions, func(a reconcile.Action) bool {
				c, is := a.(reconcile.Create)
				made, ok := c.Object.(*spec.VirtualMachineBlockDeviceAttachment)
				return is && ok && made.Spec.BlockDeviceRef.ClaimName() == disk.Claim
			}) || slices.ContainsFunc(s.Attachments, func(a spec.VirtualMachineBlockDeviceAttachment) bool {
				return objects.OwnsAttachment(after, &a) && a.Spec.BlockDeviceRef.ClaimName() == disk.Claim
			})
			if comes != (found[i].Applied == changes.AppliedLive) {
				t.Errorf("%v, and the disk comes: %v", found[i], comes)
			}
		}
	})
}

// Of a machine that was started with its manifest, and has no attachments, two manifests say
// the same as the machine does.
func TestManifestsSayWhatIsForeseen(t *testing.T) {
	ran := runningMachine()
	rapid.Check(t, func(t *rapid.T) {
		s := ran
		start := disksAnew(t, ran.VM)
		startedAs(&s, start)
		after := disksAnew(t, start)
		if len(spec.Validate(after.DeepCopy())) > 0 || len(spec.Validate(start.DeepCopy())) > 0 {
			t.Skip()
		}
		s.VM = start
		want, got := machine.Foresee(s, after), changes.Between(start, after, changes.Options{Pod: changes.StartedWith(start)})
		for i, c := range got {
			if len(got) != len(want) || want[i].Path != c.Path || want[i].Applied != c.Applied || want[i].Reason != c.Reason {
				t.Fatalf("%v, and by the machine %v", got, want)
			}
		}
	})
}

// Of changes of the class and of a disk that the guest has already, none restarts a machine
// by itself: nobody has approved of the one, and the other waits for nothing.
func TestAPluggedDiskIsNoReasonToRestart(t *testing.T) {
	w := gains(t, func(vm *spec.VirtualMachine) {
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		refer("data")(vm)
	})
	if len(w.ownAttachments()) != 1 {
		t.Fatal(w.ownAttachments())
	}
	class := spec.NewClass("large")
	class.Annotations = map[string]string{names.AnnotationDefaultClass: "true"}
	class.Spec.NodeSelector = &spec.ClassNodeSelector{MatchLabels: map[string]string{"for": "large"}}
	s, _ := w.snapshot()
	s.Classes = []spec.VirtualMachineClass{*class}
	p := machine.Decide(s)
	if waits := awaits(t, p); len(waits) != 1 || waits[0].Path != "spec.nodeSelector[for]" {
		t.Errorf("%+v", waits)
	}
	if p := settledConfig(s); slices.ContainsFunc(p.Actions, func(a reconcile.Action) bool { _, is := a.(reconcile.DeletePod); return is }) {
		t.Errorf("it is restarted: %v", targets(p))
	}

	// One that cannot come for the class's change waits as its author's, and so does a place
	// in the boot order.
	for what, change := range map[string]func(*spec.VirtualMachine){
		"another disk": refer("data", "more"),
		"a place":      func(vm *spec.VirtualMachine) { vm.Spec.BlockDeviceRefs[0].BootOrder = new(int32(1)) },
	} {
		vm := s.VM.DeepCopy()
		change(vm)
		vm.Generation++
		s := s
		s.VM = vm
		if p := settledConfig(s); !slices.ContainsFunc(p.Actions, func(a reconcile.Action) bool { _, is := a.(reconcile.DeletePod); return is }) {
			t.Errorf("%s: it is not restarted: %v, %+v", what, targets(p), awaits(t, p))
		}
	}
}

// settledConfig is a decision after the ConfigMap was written, for which others wait.
func settledConfig(s machine.Snapshot) reconcile.Plan {
	p := machine.Decide(s)
	for _, a := range p.Actions {
		if c, is := a.(reconcile.Apply); is {
			if cm, is := c.Object.(*corev1.ConfigMap); is {
				cm.UID, s.ConfigMap = s.ConfigMap.UID, cm
				return machine.Decide(s)
			}
		}
	}
	return p
}

// Of a machine without a pod, or one that nobody knows of what it runs with, the manifests
// say what becomes of their differences.
func TestForeseenWithoutAPod(t *testing.T) {
	ran := runningMachine()
	rapid.Check(t, func(t *rapid.T) {
		s := ran
		s.Pods = slices.Clone(s.Pods)
		pod := s.Pod()
		switch rapid.IntRange(0, 3).Draw(t, "pod") {
		case 0:
			s.Pods = nil
		case 1:
			pod.Status.Phase = corev1.PodFailed
		case 2:
			pod.Annotations = nil
		case 3:
			pod.OwnerReferences = nil
		}
		after := disksAnew(t, s.VM)
		want, got := changes.Between(s.VM, after, changes.Options{}), machine.Foresee(s, after)
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
