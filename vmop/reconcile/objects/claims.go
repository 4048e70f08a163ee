package objects

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunnerDataClaim returns the volume claim for the runner's persistent data: the machine's UUID,
// its firmware variables and the state of its TPM. It has no owner and outlives the machine
// unless its manifest says otherwise.
func RunnerDataClaim(vm *spec.VirtualMachine, s Settings) *corev1.PersistentVolumeClaim {
	pvc := claim(vm, spec.RunnerDataClaimName(vm.Name), nil)
	pvc.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: ClaimSize(nil)}},
	}
	if s.RunnerDataStorageClass != "" {
		pvc.Spec.StorageClassName = &s.RunnerDataStorageClass
	}
	return pvc
}

// DiskClaim returns the volume claim of a disk for which the manifest has a template or an image.
// The labels by which machines' claims are found override the template's. It has no owner and
// outlives the machine unless its manifest says otherwise.
func DiskClaim(vm *spec.VirtualMachine, d machineconfig.Disk) *corev1.PersistentVolumeClaim {
	t := d.Entry.Template().DeepCopy()
	pvc := claim(vm, d.Claim, &d)
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

func claim(vm *spec.VirtualMachine, name string, d *machineconfig.Disk) *corev1.PersistentVolumeClaim {
	labels, annotations := ClaimLacks(vm, d, &metav1.ObjectMeta{})
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: vm.Namespace, Labels: labels, Annotations: annotations},
	}
}

// ClaimLacks returns the labels and annotations that differ on the claim of a disk, or with nil
// on that of the runner's data, from what its machine wants; nil if none do. They and [ClaimSize]
// follow the manifest during the claim's life; all else is immutable.
func ClaimLacks(vm *spec.VirtualMachine, d *machineconfig.Disk, has *metav1.ObjectMeta) (labels, annotations map[string]string) {
	own := instanceLabels(vm.Name)
	labels = lacking(has.Labels, own)
	if d == nil {
		return labels, nil
	}
	t := d.Entry.Template()
	for k, v := range t.Metadata.Labels {
		if !slices.ContainsFunc(own, func(l label) bool { return l.key == k }) {
			labels = lack(labels, has.Labels, k, v)
		}
	}
	for k, v := range t.Metadata.Annotations {
		if k != names.AnnotationMadeFor { // set only on creation
			annotations = lack(annotations, has.Annotations, k, v)
		}
	}
	return labels, annotations
}

// runnerDataSize is VM-Operator's. Existing claims have it, and any provisioner creates more.
var runnerDataSize = *resource.NewQuantity(1<<20, resource.BinarySI)

// ClaimSize returns the size that the claim of a disk, or with nil that of the runner's data,
// requests.
func ClaimSize(d *machineconfig.Disk) resource.Quantity {
	if d == nil {
		return runnerDataSize
	}
	return d.Entry.Template().Spec.Resources.Requests[corev1.ResourceStorage]
}
