package spec

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

func diskKind() Kind {
	return typed(Kind{
		Name: KindDisk, Plural: ResourceDisks, noun: "disk",
		NewList:   func() runtime.Object { return &VirtualDiskList{} },
		defaulted: func(reflect.Type) []string { return nil },
	}, functions[*VirtualDisk]{
		setDefaults: func(*VirtualDisk) {}, // it has none
		validate:    ValidateDisk,
		written:     func(d *VirtualDisk) { d.Status = VirtualDiskStatus{} },
	})
}

// NewDisk is [NewVirtualMachine] for an empty disk.
func NewDisk(namespace, name string, size resource.Quantity) *VirtualDisk {
	d := &VirtualDisk{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       VirtualDiskSpec{PersistentVolumeClaim: VirtualDiskClaim{Size: size}},
	}
	d.SetGroupVersionKind(GroupVersion().WithKind(KindDisk))
	return d
}

// VolumeMode is how the disk's volume is used: an empty disk is a block device and one
// with a source a file, unless it says otherwise.
func (s *VirtualDiskSpec) VolumeMode() corev1.PersistentVolumeMode {
	switch {
	case s.PersistentVolumeClaim.VolumeMode != nil:
		return *s.PersistentVolumeClaim.VolumeMode
	case s.DataSource != nil:
		return corev1.PersistentVolumeFilesystem
	}
	return corev1.PersistentVolumeBlock
}

// Location is where the source is, as an image of a machine's disk has it: http://…,
// https://… or oci://….
func (s *VirtualDiskSource) Location() string {
	switch {
	case s.HTTP != nil:
		return s.HTTP.URL
	case s.ContainerImage != nil:
		return limits.ContainerSource(s.ContainerImage.Image)
	}
	return ""
}

// Sum is the checksum as limits has it, sha256:HEX or sha512:HEX; empty if there is
// none.
func (s *VirtualDiskSource) Sum() string {
	var c *VirtualDiskChecksum
	switch {
	case s.HTTP != nil:
		c = s.HTTP.Checksum
	case s.Upload != nil:
		c = s.Upload.Checksum
	}
	switch {
	case c == nil:
		return ""
	case c.SHA512 != "":
		return "sha512:" + c.SHA512
	case c.SHA256 != "":
		return "sha256:" + c.SHA256
	}
	return ""
}

// ValidateDisk is [Validate] for a disk.
func ValidateDisk(d *VirtualDisk) field.ErrorList {
	if d == nil {
		return missing(KindDisk)
	}
	var errs field.ErrorList
	meta, path := paths(true).at("metadata"), paths(true).at("spec")
	errs = append(errs, validateDiskName(d.Name, meta.Child("name"))...)
	errs = append(errs, validateNamespace(&d.ObjectMeta, true)...)
	c, at := &d.Spec.PersistentVolumeClaim, path.Child("persistentVolumeClaim")
	size := &c.Size
	if size.IsZero() {
		errs, size = append(errs, requiredAt(at.Child("size"), "the size of the disk, such as 20Gi")), nil
	}
	errs = append(errs, validateMade(size, c.StorageClassName, at)...)
	if c.VolumeMode != nil {
		errs = append(errs, oneOf(at.Child("volumeMode"), *c.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	}
	if s := d.Spec.DataSource; s != nil {
		if s.Type == DiskSourceUpload && d.Spec.VolumeMode() == corev1.PersistentVolumeBlock {
			errs = append(errs, forbiddenAt(at.Child("volumeMode"), "what is uploaded is a file: Block is for other disks"))
		}
		errs = append(errs, validateDiskSource(s, path.Child("dataSource"))...)
		if s.ObjectRef != nil && s.ObjectRef.Kind == KindClusterImage && d.Spec.VolumeMode() == corev1.PersistentVolumeBlock {
			errs = append(errs, forbiddenAt(at.Child("volumeMode"), "a disk that is made of an image of the cluster is a file: make a VirtualImage of that, and a block device of the VirtualImage"))
		}
		if r := s.ObjectRef; r != nil && r.Kind == KindVolumeSnapshot && r.Format == formatQcow2 && d.Spec.VolumeMode() == corev1.PersistentVolumeBlock {
			errs = append(errs, invalidAt(path.Child("dataSource", "objectRef", "format"), r.Format, "is for files: a block device is raw; remove the field, or volumeMode Block"))
		}
		errs = append(errs, notItself(s, KindDisk, d.Name, "this disk", path.Child("dataSource"))...)
	}
	return errs
}

func notItself(s *VirtualDiskSource, kind, name, this string, at spot) field.ErrorList {
	if r := s.ObjectRef; r != nil && r.Kind == kind && r.Name == name {
		return field.ErrorList{invalidAt(at.Child("objectRef", "name"), r.Name, "is "+this+" itself")}
	}
	return nil
}

func validateDiskSource(s *VirtualDiskSource, at spot) field.ErrorList {
	errs := validateLengths(reflect.ValueOf(s), sourceBounds, at.path)
	errs = append(errs, oneOf(at.Child("type"), s.Type, DiskSourceHTTP, DiskSourceContainerImage, DiskSourceObjectRef, DiskSourceUpload)...)
	for _, c := range []struct {
		field string
		given bool
		of    VirtualDiskSourceType
	}{
		{"http", s.HTTP != nil, DiskSourceHTTP}, {"containerImage", s.ContainerImage != nil, DiskSourceContainerImage},
		{"objectRef", s.ObjectRef != nil, DiskSourceObjectRef}, {"upload", s.Upload != nil, DiskSourceUpload},
	} {
		switch {
		case c.given && s.Type != c.of:
			errs = append(errs, forbiddenAt(at.Child(c.field), "is for type "+string(c.of)))
		case !c.given && s.Type == c.of && s.Type != DiskSourceUpload: // which needs nothing
			errs = append(errs, requiredAt(at.Child(c.field), "what the disk is a copy of"))
		}
	}
	checksum := func(c *VirtualDiskChecksum, at spot) {
		switch at := at.Child("checksum"); {
		case c == nil:
		case (c.SHA256 == "") == (c.SHA512 == ""):
			errs = append(errs, requiredAt(at, "give one of sha256 and sha512"))
		default:
			errs = append(errs, limited(at, s.Sum(), limits.ImageChecksum(s.Sum(), false))...)
		}
	}
	if u := s.Upload; u != nil {
		checksum(u.Checksum, at.Child("upload"))
	}
	if h := s.HTTP; h != nil {
		at := at.Child("http")
		switch {
		case h.URL == "":
			errs = append(errs, requiredAt(at.Child("url"), "a URL of http or https"))
		case !strings.HasPrefix(h.URL, "http://") && !strings.HasPrefix(h.URL, "https://"):
			errs = append(errs, invalidAt(at.Child("url"), shownURL(h.URL), "must be a URL of http or https"))
		default:
			errs = append(errs, limited(at.Child("url"), shownURL(h.URL), limits.ImageSource(h.URL))...)
		}
		checksum(h.Checksum, at)
		errs = append(errs, validateCABundle(h.CABundle, at.Child("caBundle"))...)
	}
	if c := s.ContainerImage; c != nil {
		at := at.Child("containerImage")
		if err := limits.ContainerImage(c.Image); c.Image == "" || err != nil || limits.LocalImage(limits.ContainerSource(c.Image)) {
			errs = append(errs, invalidAt(at.Child("image"), shownURL(c.Image), "must be a container image of a registry, such as quay.io/containerdisks/fedora:43"))
		}
		if c.Path != "" {
			errs = append(errs, limited(at.Child("path"), c.Path, limits.ImagePath(c.Path))...)
		}
		if p := c.ImagePullSecret; p != nil {
			errs = append(errs, validateSecretName(p.Name, at.Child("imagePullSecret", "name"))...)
		}
		errs = append(errs, validateCABundle(c.CABundle, at.Child("caBundle"))...)
	}
	if r := s.ObjectRef; r != nil {
		at := at.Child("objectRef")
		errs = append(errs, validateSourceReference(r.Kind, r.Name, at)...)
		switch {
		case r.Format == "":
		case r.Kind != KindVolumeSnapshot:
			errs = append(errs, forbiddenAt(at.Child("format"), "is for kind "+KindVolumeSnapshot+": of other objects it is known"))
		default:
			errs = append(errs, oneOf(at.Child("format"), r.Format, formatRaw, formatQcow2)...)
		}
	}
	return errs
}

// The formats of the file in a snapshot of a volume.
const (
	formatRaw   = "raw"
	formatQcow2 = "qcow2"
)
