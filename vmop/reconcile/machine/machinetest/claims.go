package machinetest

import (
	"regexp"
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

// deleteClaim deletes a drawn claim, which exists until no pod uses it.
func (w *world) deleteClaim() {
	var keys []string
	for _, k := range w.keys("claim/") {
		if pvc := get[*corev1.PersistentVolumeClaim](w, k); pvc != nil && pvc.DeletionTimestamp == nil {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return
	}
	k := keys[w.choose("claim", len(keys))]
	pvc := get[*corev1.PersistentVolumeClaim](w, k)
	at := metav1.NewTime(w.now)
	pvc.DeletionTimestamp = &at
	w.put(k, pvc)
	w.note("somebody deletes claim %s", pvc.Name)
}

// inUse reports whether Kubernetes protects a claim because of a pod.
func (w *world) inUse(claim string) bool {
	return slices.ContainsFunc(w.keys("pod/"), func(k string) bool {
		pod := get[*corev1.Pod](w, k)
		return pod != nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && slices.Contains(objects.PodClaims(pod), claim)
	})
}

func (w *world) restoreClaims() {
	for _, k := range w.keys("claim/") {
		if k == "claim/runner-data-web-0" && w.objects["claim/web-runner-data"] != nil {
			continue // there was another one since
		}
		h := w.objects[k]
		if last := len(h.versions) - 1; h.versions[last].object == nil && last > 0 && h.versions[last-1].object != nil {
			pvc := h.versions[last-1].object.DeepCopyObject().(*corev1.PersistentVolumeClaim)
			pvc.DeletionTimestamp, pvc.UID = nil, ""
			w.put(k, pvc)
			w.note("claim %s is restored", pvc.Name)
		}
	}
}

var newDiskAnnotation = regexp.MustCompile(" (" + names.AnnotationNewDisk + ")=(\\S+)$")

func (w *world) wantNewDisks() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionBlockDevicesReady)
	if c == nil || c.Reason != spec.ReasonClaimGone {
		return
	}
	says := newDiskAnnotation.FindStringSubmatch(c.Message)
	if says == nil {
		w.violated("an event has an object and a next step", "%s", c.Message)
	}
	key, entries := says[1], says[2]
	if vm.Annotations[key] == entries {
		return
	}
	// Naming the disks to vmop-cli must have the same result.
	var disks []string
	for entry := range strings.SplitSeq(entries, ",") {
		disk, _, _ := strings.Cut(entry, ":")
		disks = append(disks, disk)
	}
	value, err := machine.NewDisks(vm, disks...)
	if err != nil {
		w.violated("an event has an object and a next step", "%v", err)
	}
	for part := range strings.SplitSeq(entries, ",") {
		if !slices.Contains(strings.Split(value, ","), part) {
			w.violated("an event has an object and a next step", "%s is not %s", value, entries)
		}
	}
	if _, err := machine.NewDisks(vm, append(disks, "other-disk")...); err == nil {
		w.violated("a disk is not replaced without a word", "a disk that is not gone is given up")
	}
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	vm.Annotations[key] = entries
	if w.choose("command", 2) == 1 {
		vm.Annotations[key] = value
	}
	w.put(theVM, vm)
	w.note("somebody wants the new disks %s", entries)
}

// checkNewClaim verifies that no new claim replaces one that the machine has run with, unless a
// user has requested it since.
func (w *world) checkNewClaim(vm *spec.VirtualMachine, pvc *corev1.PersistentVolumeClaim) {
	for _, c := range vm.Status.Claims {
		asked := slices.Contains(strings.Split(vm.Annotations[names.AnnotationNewDisk], ","), c.Disk+":"+string(c.UID)[:min(8, len(c.UID))])
		if pvc.Name == "web-"+c.Disk && !asked {
			w.violated("a disk is not replaced without a word", "claim %s is made, %+v is gone, and %q is asked for", pvc.Name, c, vm.Annotations[names.AnnotationNewDisk])
		}
	}
}

// checkRemembered verifies that each status keeps the recorded claims, unless the machine runs
// with others.
func (w *world) checkRemembered(s *machine.Snapshot, st reconcile.StatusApply) {
	next, _ := st.Status["claims"].([]any)
	for _, c := range s.VM.Status.Claims {
		if !slices.ContainsFunc(next, func(v any) bool { return v.(map[string]any)["disk"] == c.Disk }) {
			w.violated("what a machine has run with is remembered", "%+v is forgotten: %v", c, next)
		}
	}
}

func (w *world) checkNoted(vm *spec.VirtualMachine, pod *corev1.Pod) {
	for _, name := range objects.PodClaims(pod) {
		pvc := get[*corev1.PersistentVolumeClaim](w, "claim/"+name)
		if name != names.ImageRepositoryClaim && !slices.ContainsFunc(vm.Status.Claims, func(c spec.MachineClaim) bool { return c.ClaimName == name && c.UID == pvc.UID }) {
			w.violated("what a machine has run with is remembered", "claim %s of the pod is not among %+v", name, vm.Status.Claims)
		}
	}
}

func (w *world) startOrStop() {
	vm := get[*spec.VirtualMachine](w, theVM)
	w.decisions++
	if vm.Spec.VM.State == spec.StateRunning {
		vm.Spec.VM.State = spec.StateStopped
	} else {
		vm.Spec.VM.State = spec.StateRunning
	}
	vm.Generation++
	w.put(theVM, vm)
}
