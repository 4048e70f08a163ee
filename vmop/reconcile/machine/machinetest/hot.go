package machinetest

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hotClaims are those of disks that are plugged and unplugged; the last is attached by a user.
var hotClaims = []string{"hot-0", "hot-1", "hot-2", "a-persons"}

func refersTo(vm *spec.VirtualMachine, claim string) bool {
	return slices.ContainsFunc(vm.Spec.VM.Disks, func(d spec.Disk) bool {
		return d.PersistentVolumeClaim != nil && d.PersistentVolumeClaim.ClaimName == claim
	})
}

func hotDisks(vm *spec.VirtualMachine) []string {
	var out []string
	for i := range vm.Spec.VM.Disks {
		if c := vm.Spec.VM.Disks[i].PersistentVolumeClaim; c != nil {
			out = append(out, c.ClaimName)
		}
	}
	return out
}

func (w *world) changeDisks() {
	vm := get[*spec.VirtualMachine](w, theVM)
	claim := hotClaims[w.choose("disk", 3)]
	if refersTo(vm, claim) {
		vm.Spec.VM.Disks = slices.DeleteFunc(vm.Spec.VM.Disks, func(d spec.Disk) bool {
			return d.PersistentVolumeClaim != nil && d.PersistentVolumeClaim.ClaimName == claim
		})
	} else {
		vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: claim}})
	}
	vm.Generation++
	w.put(theVM, vm)
	w.note("somebody changes the disks: %s", claim)
}

func (w *world) attachByHand() {
	const key = "attachment/by-hand"
	if a := get[*spec.VirtualMachineBlockDeviceAttachment](w, key); a == nil {
		w.put(key, spec.NewAttachment("apps", "by-hand", "web", spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: hotClaims[3]}))
	}
}

// attached models the attachment controller: an exporter is created while the machine runs, if no
// pod has the claim, and ends with the run or the attachment.
func (w *world) attached() {
	vm := get[*spec.VirtualMachine](w, theVM)
	pod := get[*corev1.Pod](w, thePod)
	runs := pod != nil && w.guests[pod.UID] != nil && pod.DeletionTimestamp == nil
	for _, k := range w.keys("attachment/") {
		a := get[*spec.VirtualMachineBlockDeviceAttachment](w, k)
		if a == nil {
			continue
		}
		exporter := "exporter/" + objects.ExportPod(a.Name)
		claim := a.Spec.BlockDeviceRef.ClaimName()
		orphan := len(a.OwnerReferences) > 0 && (vm == nil || a.OwnerReferences[0].UID != vm.UID)
		switch {
		case a.Status.Connection != nil && (!runs || a.DeletionTimestamp != nil || a.Status.Connection.PodUID != pod.UID):
			w.put(exporter, nil)
			a.Status.Connection, a.Status.Phase = nil, spec.AttachmentPending
			w.put(k, a)
		case a.DeletionTimestamp != nil || orphan:
			w.put(k, nil)
			w.note("%s is gone", k)
		case a.Status.Connection == nil && runs && !w.inUse(claim):
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: objects.ExportPod(a.Name), Annotations: map[string]string{names.AnnotationMadeFor: string(a.UID)}}}
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
			w.put(exporter, p)
			a.Finalizers = []string{names.FinalizerAttachment}
			a.Status.Connection, a.Status.Phase, a.Status.Place = &spec.AttachmentConnection{PodUID: pod.UID}, spec.AttachmentAttached, 1
			w.put(k, a)
			w.note("%s is attached", k)
		}
	}
}

func (w *world) deleteAttachment(d reconcile.DeleteAttachment) result {
	k := "attachment/" + d.Name
	a := get[*spec.VirtualMachineBlockDeviceAttachment](w, k)
	if a == nil {
		return done
	}
	if a.UID != d.UID || a.ResourceVersion != d.ResourceVersion {
		return stale
	}
	if vm := get[*spec.VirtualMachine](w, theVM); len(a.OwnerReferences) == 0 {
		w.violated("a person's attachment is left alone", "%s is deleted", a.Name)
	} else if claim, pod := a.Spec.BlockDeviceRef.ClaimName(), get[*corev1.Pod](w, thePod); vm != nil && cached[*spec.VirtualMachine](w, theVM).Generation == vm.Generation &&
		refersTo(vm, claim) && pod != nil && w.guests[pod.UID] != nil && pod.DeletionTimestamp == nil && cached[*corev1.Pod](w, thePod) != nil && a.Status.Connection != nil {
		w.violated("a disk stays for as long as the manifest has it", "%s is deleted, and the guest of pod %s has the disk", a.Name, pod.UID)
	}
	at := metav1.NewTime(w.now)
	a.DeletionTimestamp = &at
	w.put(k, a)
	return done
}

// checkWriters verifies that no two pods have a disk.
func (w *world) checkWriters() {
	users := map[string]string{}
	for _, k := range slices.Concat(w.keys("pod/"), w.keys("exporter/")) {
		pod := get[*corev1.Pod](w, k)
		if pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, c := range objects.PodClaims(pod) {
			if other := users[c]; other != "" && slices.Contains(hotClaims, c) {
				w.violated("a disk that comes and goes has one writer", "claim %s is that of %s and %s", c, other, k)
			}
			users[c] = k
		}
	}
}

// checkHot verifies that a pod that only lacks disks goes on, without waiting for a restart.
func (w *world) checkHot(s *machine.Snapshot, p *reconcile.Plan) {
	pod := s.Pod()
	if !w.exports || pod == nil || w.guests[pod.UID] == nil || s.VM.DeletionTimestamp != nil || !s.VM.ShouldRun() ||
		len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].UID != s.VM.UID || pod.Annotations[names.AnnotationStarted] == "" {
		return
	}
	// What is removed from the pod's disks, or inserted before one of them, waits.
	var has []string
	for _, c := range objects.PodClaims(pod) {
		if slices.Contains(hotClaims[:3], c) {
			has = append(has, c)
		}
	}
	wants := hotDisks(s.VM)
	if len(wants) < len(has) || !slices.Equal(has, wants[:len(has)]) {
		return
	}
	for _, a := range p.Actions {
		if d, is := a.(reconcile.DeletePod); is && d.UID == pod.UID {
			w.violated("a disk that comes restarts nothing", "pod %s is deleted", pod.UID)
		}
	}
	for _, st := range p.Statuses {
		if all, _ := st.Status["restartAwaitingChanges"].([]any); len(all) > 0 {
			w.violated("a disk that comes restarts nothing", "%v waits", all)
		}
	}
}

func (w *world) waitsFor(vm *spec.VirtualMachine) bool {
	return slices.ContainsFunc(vm.Status.RestartAwaitingChanges, func(c spec.AwaitingChange) bool { return strings.HasPrefix(c.Path, "spec.vm.disks") })
}
