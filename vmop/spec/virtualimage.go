package spec

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func imageKind() Kind {
	return typed(Kind{
		Name: KindImage, Plural: ResourceImages, noun: "image",
		NewList:   func() runtime.Object { return &VirtualImageList{} },
		defaulted: func(reflect.Type) []string { return nil },
	}, functions[*VirtualImage]{
		setDefaults: func(*VirtualImage) {}, // it has none
		validate:    ValidateImage,
		written:     func(i *VirtualImage) { i.Status = VirtualImageStatus{} },
	})
}

// NewImage is [NewVirtualMachine] for an image.
func NewImage(namespace, name string, size resource.Quantity, source VirtualDiskSource) *VirtualImage {
	i := &VirtualImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       VirtualImageSpec{PersistentVolumeClaim: VirtualImageClaim{Size: size}, DataSource: source},
	}
	i.SetGroupVersionKind(GroupVersion().WithKind(KindImage))
	return i
}

// ValidateImage is [Validate] for an image.
func ValidateImage(i *VirtualImage) field.ErrorList {
	if i == nil {
		return missing(KindImage)
	}
	meta, path := paths(true).at("metadata"), paths(true).at("spec")
	errs := validateDiskName(i.Name, meta.Child("name"))
	errs = append(errs, validateNamespace(&i.ObjectMeta, true)...)
	errs = append(errs, validateImageSpec(&i.Spec, path)...)
	return append(errs, notItself(&i.Spec.DataSource, KindImage, i.Name, "this image", path.Child("dataSource"))...)
}

// validateImageSpec checks what an image is, of a namespace or of the cluster.
func validateImageSpec(s *VirtualImageSpec, path spot) field.ErrorList {
	var errs field.ErrorList
	c, at := &s.PersistentVolumeClaim, path.Child("persistentVolumeClaim")
	size := &c.Size
	if size.IsZero() {
		errs, size = append(errs, requiredAt(at.Child("size"), "the size of the volume that the image is kept on, such as 5Gi")), nil
	}
	errs = append(errs, validateMade(size, c.StorageClassName, at)...)
	if c.AccessMode != "" {
		errs = append(errs, oneOf(at.Child("accessMode"), c.AccessMode, corev1.ReadWriteOnce, corev1.ReadWriteMany)...)
	}
	if r := s.DataSource.ObjectRef; r != nil && r.Kind == KindVolumeSnapshot {
		errs = append(errs, forbiddenAt(path.Child("dataSource", "objectRef", "kind"), "no image is made of a "+KindVolumeSnapshot+": make a VirtualDisk of it, and the image of that"))
	}
	return append(errs, validateDiskSource(&s.DataSource, path.Child("dataSource"))...)
}
