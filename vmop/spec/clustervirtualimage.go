package spec

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxClusterImageName is how long the name of a [ClusterVirtualImage] may be: with what
// is added to it, it is the name of pods.
const MaxClusterImageName = MaxDiskName - 1

// ClusterVirtualImageClaimName returns the name of the volume claim of a
// [ClusterVirtualImage]. No claim that is made for a machine, a disk or another image
// ends so.
func ClusterVirtualImageClaimName(image string) string { return image + claimOfClusterImage }

// ClusterImageOfClaim is the name of the [ClusterVirtualImage] that a volume claim would
// be the one of by its own name; empty if it is none.
func ClusterImageOfClaim(claim string) string {
	if image, is := strings.CutSuffix(claim, claimOfClusterImage); is {
		return image
	}
	return ""
}

const claimOfClusterImage = "-cvi"

func clusterImageKind() Kind {
	return typed(Kind{
		Name: KindClusterImage, Plural: ResourceClusterImages, noun: "image of the cluster",
		NewList:   func() runtime.Object { return &ClusterVirtualImageList{} },
		defaulted: func(reflect.Type) []string { return nil },
	}, functions[*ClusterVirtualImage]{
		setDefaults: func(*ClusterVirtualImage) {}, // it has none
		validate:    ValidateClusterImage,
		written:     func(i *ClusterVirtualImage) { i.Status = VirtualImageStatus{} },
	})
}

// NewClusterImage is [NewVirtualMachine] for an image of the cluster.
func NewClusterImage(name string, size resource.Quantity, source VirtualDiskSource) *ClusterVirtualImage {
	i := &ClusterVirtualImage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       VirtualImageSpec{PersistentVolumeClaim: VirtualImageClaim{Size: size}, DataSource: source},
	}
	i.SetGroupVersionKind(GroupVersion().WithKind(KindClusterImage))
	return i
}

// ValidateClusterImage is [Validate] for an image of the cluster.
func ValidateClusterImage(i *ClusterVirtualImage) field.ErrorList {
	if i == nil {
		return missing(KindClusterImage)
	}
	meta, path := paths(true).at("metadata"), paths(true).at("spec")
	errs := validateDiskName(i.Name, meta.Child("name"))
	if len(i.Name) == MaxDiskName {
		errs = append(errs, tooLongAt(meta.Child("name"), i.Name, MaxClusterImageName))
	}
	if i.Namespace != "" {
		errs = append(errs, invalidAt(meta.Child("namespace"), i.Namespace, "an image of the cluster is in no namespace; remove the field"))
	}
	errs = append(errs, validateImageSpec(&i.Spec, path)...)
	if i.Spec.DataSource.ObjectRef != nil {
		errs = append(errs, forbiddenAt(path.Child("dataSource", "objectRef"), "an image of the cluster is one of a server or of a container image"))
	}
	if i.Spec.DataSource.Type == DiskSourceUpload {
		errs = append(errs, forbiddenAt(path.Child("dataSource", "type"), "an image of the cluster is one of a server or of a container image: nobody uploads it"))
	}
	return errs
}
