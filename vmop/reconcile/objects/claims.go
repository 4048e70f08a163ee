package objects

import (
	"maps"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunnerDataClaim is the volume claim that keeps what the runner must remember:
// the machine's UUID, its firmware variables and the state of its TPM. It has
// no owner and outlives the machine unless its manifest says otherwise.
func RunnerDataClaim(vm *spec.VirtualMachine, s Settings) *corev1.PersistentVolumeClaim {
	pvc := claim(vm, spec.RunnerDataClaim(vm.Name))
	pvc.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			// VM-Operator's size. It is what existing claims have, and the
			// least that any provisioner makes is more.
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
		},
	}
	if s.RunnerDataStorageClass != "" {
		pvc.Spec.StorageClassName = &s.RunnerDataStorageClass
	}
	return pvc
}

// DiskClaim is the volume claim of a disk that the manifest has a template for, or an image.
// The labels by which machines' claims are found win over the template's. It
// has no owner and outlives the machine unless its manifest says otherwise.
func DiskClaim(vm *spec.VirtualMachine, d machineconfig.Disk) *corev1.PersistentVolumeClaim {
	t := d.Entry.Template().DeepCopy()
	pvc := claim(vm, d.Claim)
	pvc.Annotations = maps.Clone(t.Metadata.Annotations)
	delete(pvc.Annotations, names.AnnotationMadeFor) // which nobody says but who makes it
	all := maps.Clone(t.Metadata.Labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, pvc.Labels)
	pvc.Labels = all
	pvc.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes:      t.Spec.AccessModes,
		Selector:         t.Spec.Selector,
		Resources:        t.Spec.Resources,
		VolumeName:       t.Spec.VolumeName,
		StorageClassName: t.Spec.StorageClassName,
		VolumeMode:       t.Spec.VolumeMode,
		DataSource:       t.Spec.DataSource,
		DataSourceRef:    t.Spec.DataSourceRef,
	}
	return pvc
}

func claim(vm *spec.VirtualMachine, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: vm.Namespace, Labels: InstanceLabels(vm.Name)},
	}
}
