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
	form := RunnerDataForm(vm)
	pvc := claim(vm, spec.RunnerDataClaim(vm.Name), &form)
	pvc.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: form.Storage}},
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
	t, form := d.Entry.Template().DeepCopy(), DiskForm(vm, &d)
	pvc := claim(vm, d.Claim, &form)
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

func claim(vm *spec.VirtualMachine, name string, form *ClaimForm) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: vm.Namespace, Labels: form.Labels, Annotations: form.Annotations},
	}
}

// ClaimForm is what of a claim follows its machine's manifest as long as there is one;
// nothing else of a claim can be changed. To have it alone takes a fraction of what it
// takes to make the claim.
type ClaimForm struct {
	Labels, Annotations map[string]string
	// Storage is the size that is asked for.
	Storage resource.Quantity
}

// RunnerDataForm is that of [RunnerDataClaim].
func RunnerDataForm(vm *spec.VirtualMachine) ClaimForm {
	// VM-Operator's size. It is what existing claims have, and the least that any
	// provisioner makes is more.
	return ClaimForm{Labels: InstanceLabels(vm.Name), Storage: *resource.NewQuantity(1<<20, resource.BinarySI)}
}

// DiskForm is that of [DiskClaim].
func DiskForm(vm *spec.VirtualMachine, d *machineconfig.Disk) ClaimForm {
	t := d.Entry.Template()
	form := ClaimForm{Labels: InstanceLabels(vm.Name), Annotations: maps.Clone(t.Metadata.Annotations), Storage: t.Spec.Resources.Requests[corev1.ResourceStorage]}
	delete(form.Annotations, names.AnnotationMadeFor) // which only the maker of a claim sets
	for k, v := range t.Metadata.Labels {
		if _, ours := form.Labels[k]; !ours {
			form.Labels[k] = v
		}
	}
	return form
}
