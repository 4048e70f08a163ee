package machinetest

import (
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A claim is noted as made for its machine when it is made, and by nothing else: not
// by a template that names the UID.
func TestMadeForIsNotedOnce(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	vm := get[*spec.VirtualMachine](w, theVM)
	template := vm.Spec.VM.Disks[0].VolumeClaimTemplate
	template.Metadata.Annotations = map[string]string{names.AnnotationMadeFor: string(vm.UID), "tier": "gold"}
	w.put(theVM, vm)
	found := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "web-system-disk", Namespace: "apps"}}
	found.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
	w.put("claim/web-system-disk", found)
	for range 4 {
		w.work()
	}
	disk, data := get[*corev1.PersistentVolumeClaim](w, "claim/web-system-disk"), get[*corev1.PersistentVolumeClaim](w, "claim/web-runner-data")
	if disk.Annotations["tier"] != "gold" || disk.Annotations[names.AnnotationMadeFor] != "" {
		t.Errorf("a claim that was there: %v", disk.Annotations)
	}
	secret := get[*corev1.Secret](w, "secret/web-display-secret")
	if data.Annotations[names.AnnotationMadeFor] != string(vm.UID) || secret.Annotations[names.AnnotationMadeFor] != string(vm.UID) {
		t.Errorf("what was made: %v, %v", data.Annotations, secret.Annotations)
	}
}
