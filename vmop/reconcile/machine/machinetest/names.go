package machinetest

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func isRunners(o reconcile.Object) bool {
	_, is := o.(*corev1.Pod)
	return is && o.GetLabels()[names.LabelComponent] == names.ComponentRunner
}

func (w *world) rename(o reconcile.Object) {
	if w.named && isRunners(o) && w.choose("name", 3) > 0 {
		o.SetName(fmt.Sprintf("%s-%d", o.GetName(), w.serial))
	}
}

// machinesPod returns the pod in which the machine truly runs or is to run: of several the one
// with the guest.
func (w *world) machinesPod() *corev1.Pod {
	var found *corev1.Pod
	for _, k := range w.keys("pod/") {
		pod := get[*corev1.Pod](w, k)
		if pod != nil && (k == thePod || pod.Labels[names.LabelInstance] == "web") && (found == nil || w.guests[pod.UID] != nil) {
			found = pod
		}
	}
	return found
}

func (w *world) observePods() (news bool) {
	for _, k := range w.keys("pod/") {
		if h := w.objects[k]; h.seen < len(h.versions)-1 && (k == thePod || w.named) {
			h.seen, news = len(h.versions)-1, true
		}
	}
	return news
}

// makeSecondPod creates a second pod of the machine. It waits for the guest in the first, as with
// ReadWriteOncePod claims.
func (w *world) makeSecondPod() {
	pod, vm := w.machinesPod(), get[*spec.VirtualMachine](w, theVM)
	if pod == nil || vm == nil || vm.DeletionTimestamp != nil || w.guests[pod.UID] == nil || pod.DeletionTimestamp != nil ||
		len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].UID != vm.UID || len(w.seconds) > 0 {
		return
	}
	from := pod.UID
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: fmt.Sprintf("web-copy-%d", w.serial), Namespace: pod.Namespace, Labels: pod.Labels, Annotations: pod.Annotations,
		OwnerReferences: pod.OwnerReferences, CreationTimestamp: metav1.NewTime(w.now), UID: w.uid(),
	}
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
	w.seconds[pod.UID] = true
	w.made[pod.UID], w.madeAt[pod.UID] = w.made[from], w.madeAt[from]
	w.put("pod/"+pod.Name, pod)
	w.note("somebody makes pod %s beside pod %s", pod.UID, from)
}

func (w *world) restorePods() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	all := w.objects[theVM].versions
	former, is := all[w.choose("backup", len(all))].object.(*spec.VirtualMachine)
	if !is || former.UID != vm.UID {
		return
	}
	vm.Status.VirtualMachinePods = slices.Clone(former.Status.VirtualMachinePods)
	w.put(theVM, vm)
	w.note("the status has pods %v again", vm.Status.VirtualMachinePods)
}

// intruder creates another pod that uses the machine's disk, as an old StatefulSet would. It
// starts only when no guest runs, and is observed at once: no operator can prevent simultaneous
// writes of others.
func (w *world) intruder() {
	if len(w.guests) > 0 || w.machinesPod() != nil || get[*corev1.Pod](w, "pod/intruder") != nil {
		return
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "intruder", UID: w.uid()}}
	pod.Spec.NodeName = "n1"
	pod.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "web-system-disk"}}}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "intruder", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	w.put("pod/intruder", pod)
	w.guests[pod.UID] = &guest{pod: pod, stage: 3, claims: []string{"web-system-disk"}}
	h := w.objects["pod/intruder"]
	h.seen = len(h.versions) - 1
}
