package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// takeover puts what VM-Operator leaves in a cluster where a machine runs: its
// ConfigMap, its pod, and claims with the names of its versions before 3.4 or since.
// A machine that was stopped has no pod.
func takeover(w *world, recent, running bool) {
	claims := []string{"runner-data-web-0", "system-disk-web-0"}
	if recent {
		claims = []string{"web-runner-data", "web-system-disk"}
	}
	w.former = map[string]bool{claims[0]: true}
	vm := mustGet[*spec.VirtualMachine](w, theVM)
	no := false
	owner := []metav1.OwnerReference{{APIVersion: spec.GroupVersion().String(), Kind: spec.KindVirtualMachine, Name: "web", UID: vm.UID, Controller: &no}}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "apps", Labels: objects.InstanceLabels("web")}
	}
	vm.Spec.CloudInit = &spec.CloudInit{}
	w.put(theVM, vm)
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta("web")}
	cm.OwnerReferences = owner
	cm.Data = map[string]string{names.ConfigKey: "\"/Runner\":\n  resetCounter: 3\n  cloudInit:\n    metaData:\n      instance-id: v7\n  vm:\n    name: web\n", names.LoggingKey: ""}
	w.put(theConfig, cm)
	for _, name := range claims {
		pvc := &corev1.PersistentVolumeClaim{ObjectMeta: meta(name)}
		pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
		pvc.Status.Phase = corev1.ClaimBound
		w.put("claim/"+name, pvc)
	}
	secret := objects.DisplaySecret(vm, "secret")
	w.put("secret/"+secret.Name, secret)
	if !running {
		return
	}
	pod := &corev1.Pod{ObjectMeta: meta("web")}
	pod.OwnerReferences = owner
	pod.Annotations = map[string]string{names.AnnotationConfigVersion: cm.ResourceVersion}
	pod.UID = w.uid()
	pod.Spec.NodeName, pod.Spec.RestartPolicy = "n1", corev1.RestartPolicyAlways
	for _, c := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	w.start(pod)
	if !slices.Contains(w.guests[pod.UID].claims, claims[1]) {
		panic("the guest has no disk")
	}
}
