package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

// maxDiskStem is what a DNS label leaves beside the suffix "-disk": the disk's
// name is also that of a volume of the pod.
const maxDiskStem = validation.DNS1123LabelMaxLength - len("-disk")

// RunnerDataClaimName returns the name of the volume claim that keeps the runner's
// data of a machine. No disk may have it.
func RunnerDataClaimName(vmName string) string { return vmName + "-runner-data" }

// DiskClaimName returns the name of the volume claim that is made for a disk of a
// machine from the disk's name, see [DiskName].
func DiskClaimName(vmName, diskName string) string { return vmName + "-" + diskName }

// DiskName returns the name of a disk that the machine makes for itself, from a
// template, an image or a container image: its own name with "-disk", or "disk-" and
// the position among the templates. It is empty if the disk at the index is no such,
// or if there is none.
func DiskName(disks []Disk, index int) string {
	if index < 0 || index >= len(disks) {
		return ""
	}
	switch d := &disks[index]; {
	case d.Image != nil:
		return d.Image.Name + "-disk"
	case d.ContainerDisk != nil:
		return d.ContainerDisk.Name + "-disk"
	case d.VolumeClaimTemplate == nil:
		return ""
	case d.VolumeClaimTemplate.Metadata.Name != "":
		return d.VolumeClaimTemplate.Metadata.Name + "-disk"
	}
	n := 0
	for _, d := range disks[:index] {
		if d.VolumeClaimTemplate != nil {
			n++
		}
	}
	return "disk-" + strconv.Itoa(n)
}

func validateDisks(disks []Disk, vmName string, path spot) field.ErrorList {
	var errs field.ErrorList
	var cds int
	if n := len(disks) - countCDs(disks); n > limits.MaxDisks {
		errs = append(errs, tooManyAt(path, n, limits.MaxDisks))
	}
	claims := map[string]spot{}
	boot := map[int32]spot{}
	once := func(claim string, at spot, value string) {
		if other, ok := claims[claim]; ok {
			errs = append(errs, invalidAt(at, value, "is the same volume claim as that of "+other.String()))
			return
		}
		claims[claim] = at
	}
	for i := range disks {
		d, at := &disks[i], path.Index(i)
		errs = append(errs, validateDiskKind(d, at)...)
		if t := d.VolumeClaimTemplate; t != nil {
			at := at.Child("volumeClaimTemplate")
			errs = append(errs, validateTemplate(t, vmName, at)...)
			once(DiskClaimName(vmName, DiskName(disks, i)), at.Child("metadata", "name"), t.Metadata.Name)
		}
		if c := d.PersistentVolumeClaim; c != nil {
			at := at.Child("persistentVolumeClaim", "claimName")
			switch {
			case c.ClaimName == "":
				errs = append(errs, requiredAt(at, "name an existing volume claim"))
			case c.ClaimName == RunnerDataClaimName(vmName):
				errs = append(errs, invalidAt(at, c.ClaimName, "is reserved for the machine's own data"))
			default:
				errs = append(errs, invalid(at, c.ClaimName, isSubdomain)...)
				once(c.ClaimName, at, c.ClaimName)
			}
		}
		if im := d.Image; im != nil {
			at := at.Child("image")
			errs = append(errs, validateDiskImage(im, vmName, at)...)
			once(DiskClaimName(vmName, DiskName(disks, i)), at.Child("name"), im.Name)
		}
		if c := d.ContainerDisk; c != nil {
			at := at.Child("containerDisk")
			errs = append(errs, validateContainerDisk(c, vmName, at)...)
			once(DiskClaimName(vmName, DiskName(disks, i)), at.Child("name"), c.Name)
		}
		if c := d.Cdrom; c != nil {
			if cds++; cds == limits.MaxCDs+1 {
				errs = append(errs, tooManyAt(at, cds, limits.MaxCDs))
			}
			errs = append(errs, validateImageName(c.Image, at.Child("cdrom", "image"))...)
		}
		if d.Bootindex == nil {
			continue
		}
		at = at.Child("bootindex")
		index := *d.Bootindex
		if err := limits.BootIndex(int64(index)); err != nil {
			errs = append(errs, limited(at, index, err)...)
		} else if other, ok := boot[index]; ok {
			errs = append(errs, invalidAt(at, index, "is also that of "+other.String()+"; QEMU takes each only once"))
		} else {
			boot[index] = path.Index(i)
		}
	}
	return errs
}

func validateDiskKind(d *Disk, path spot) field.ErrorList {
	n := 0
	for _, given := range []bool{d.VolumeClaimTemplate != nil, d.PersistentVolumeClaim != nil, d.Cdrom != nil, d.Image != nil, d.ContainerDisk != nil} {
		if given {
			n++
		}
	}
	const rule = "give exactly one of volumeClaimTemplate, persistentVolumeClaim, cdrom, image and containerDisk; there "
	switch n {
	case 0:
		return field.ErrorList{requiredAt(path, rule+"is none")}
	case 1:
		return nil
	}
	return field.ErrorList{forbiddenAt(path, rule+fmt.Sprintf("are %d", n))}
}

func validateTemplate(t *VolumeClaimTemplate, vmName string, path spot) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("metadata")
	if name := t.Metadata.Name; name != "" {
		errs = append(errs, validateDiskStem(name, vmName, at.Child("name"))...)
	}
	errs = append(errs, validateLabels(t.Metadata.Labels, at.Child("labels"))...)
	errs = append(errs, validateKeys(t.Metadata.Annotations, at.Child("annotations"))...)
	return append(errs, validateClaim(&t.Spec, path.Child("spec"))...)
}

func validateDiskStem(name, vmName string, at spot) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{requiredAt(at, "what the disk is called, such as system")}
	case name == RunnerDataClaimName(vmName):
		return field.ErrorList{invalidAt(at, name, "is reserved for the machine's own data")}
	case len(name) > maxDiskStem:
		return field.ErrorList{tooLongAt(at, name, maxDiskStem)}
	}
	return invalid(at, name, isLabel)
}

func validateDiskImage(im *DiskImage, vmName string, at spot) field.ErrorList {
	errs := validateDiskStem(im.Name, vmName, at.Child("name"))
	if im.Source == "" {
		errs = append(errs, requiredAt(at.Child("source"), "where the image is: a URL of http, https or oci, or on one host a file"))
	} else {
		errs = append(errs, limited(at.Child("source"), shownURL(im.Source), limits.ImageSource(im.Source))...)
	}
	container := limits.IsContainerImage(im.Source)
	switch {
	case im.Path == "", im.Source == "":
	case !container:
		errs = append(errs, invalidAt(at.Child("path"), im.Path, "is for container images (oci://…)"))
	default:
		errs = append(errs, limited(at.Child("path"), im.Path, limits.ImagePath(im.Path))...)
	}
	if im.Checksum != "" {
		errs = append(errs, limited(at.Child("checksum"), im.Checksum, limits.ImageChecksum(im.Checksum, container))...)
	}
	errs = append(errs, validateCABundle(im.CABundle, at.Child("caBundle"))...)
	if im.Size == nil {
		errs = append(errs, requiredAt(at.Child("size"), "the size of the disk, such as 20Gi"))
	}
	return append(errs, validateMade(im.Size, im.StorageClassName, at)...)
}

// validateCABundle checks what a server may be trusted by; an empty text is nothing more
// than others are trusted by. Definitions count characters, and who reads it bytes.
func validateCABundle(bundle string, at spot) field.ErrorList {
	switch n := len(bundle); {
	case n == 0, utf8.RuneCountInString(bundle) > limits.MaxCABundle: // which are too many characters
		return nil
	case !strings.Contains(bundle, "-----BEGIN CERTIFICATE-----"):
		return field.ErrorList{requiredAt(at, "certificates in the form of PEM, with lines -----BEGIN CERTIFICATE-----")}
	default:
		return limited(at, fmt.Sprintf("(%d bytes)", n), limits.CABundle(bundle))
	}
}

func validateContainerDisk(c *ContainerDisk, vmName string, at spot) field.ErrorList {
	errs := validateDiskStem(c.Name, vmName, at.Child("name"))
	if c.Image == "" {
		errs = append(errs, requiredAt(at.Child("image"), "the container image that has the disk, such as quay.io/containerdisks/fedora:43"))
	} else {
		errs = append(errs, limited(at.Child("image"), shownURL(c.Image), limits.ContainerImage(c.Image))...)
	}
	if c.Path != "" {
		errs = append(errs, limited(at.Child("path"), c.Path, limits.ImagePath(c.Path))...)
	}
	errs = append(errs, oneOf(at.Child("pullPolicy"), c.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	if c.Persistent && c.Size == nil {
		errs = append(errs, requiredAt(at.Child("size"), "the size of the disk, such as 20Gi, which a persistent one needs"))
	}
	if !c.Persistent && c.StorageClassName != nil {
		errs = append(errs, forbiddenAt(at.Child("storageClassName"), "a disk that is not persistent has no volume claim"))
	}
	return append(errs, validateMade(c.Size, c.StorageClassName, at)...)
}

// validateMade checks what the claim of a disk that is a copy is made with.
func validateMade(size *resource.Quantity, class *string, at spot) field.ErrorList {
	var errs field.ErrorList
	if size != nil {
		errs = append(errs, validateBytes(*size, at.Child("size"))...)
	}
	if class != nil && *class != "" {
		errs = append(errs, invalid(at.Child("storageClassName"), *class, isSubdomain)...)
	}
	return errs
}

func validateClaim(c *VolumeClaimSpec, path spot) field.ErrorList {
	var errs field.ErrorList
	for i, m := range c.AccessModes {
		errs = append(errs, oneOf(path.Child("accessModes").Index(i), m,
			corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)...)
	}
	if len(c.AccessModes) > 1 && slices.Contains(c.AccessModes, corev1.ReadWriteOncePod) {
		errs = append(errs, forbiddenAt(path.Child("accessModes"), "ReadWriteOncePod goes with no other"))
	}
	errs = append(errs, validateDataSources(c, path)...)
	errs = append(errs, oneOf(path.Child("volumeMode"), *c.VolumeMode,
		corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	if s := c.StorageClassName; s != nil && *s != "" {
		errs = append(errs, invalid(path.Child("storageClassName"), *s, isSubdomain)...)
	}
	if c.VolumeName != "" {
		errs = append(errs, invalid(path.Child("volumeName"), c.VolumeName, isSubdomain)...)
	}
	if c.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(c.Selector,
			metav1validation.LabelSelectorValidationOptions{}, path.Child("selector").path)...)
	}
	at := path.Child("resources", "requests").Key(string(corev1.ResourceStorage))
	size, ok := c.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return append(errs, requiredAt(at, "the size of the disk, such as 40Gi"))
	}
	errs = append(errs, validateBytes(size, at)...)
	if limit, ok := c.Resources.Limits[corev1.ResourceStorage]; ok && CompareQuantities(size, limit) > 0 {
		errs = append(errs, invalidAt(at, size.String(), "must not be greater than the limit "+limit.String()))
	}
	return errs
}

// validateDataSources has the rules of Kubernetes for what a volume is filled from.
func validateDataSources(c *VolumeClaimSpec, path spot) field.ErrorList {
	var errs field.ErrorList
	check := func(group *string, kind, name string, at spot) {
		if name == "" {
			errs = append(errs, requiredAt(at.Child("name"), "what the volume is filled from"))
		}
		switch {
		case kind == "":
			errs = append(errs, requiredAt(at.Child("kind"), "such as VolumeSnapshot"))
		case group == nil || *group == "":
			if kind != "PersistentVolumeClaim" {
				errs = append(errs, invalidAt(at.Child("kind"), kind, "must be PersistentVolumeClaim where there is no apiGroup, such as snapshot.storage.k8s.io"))
			}
		default:
			errs = append(errs, invalid(at.Child("apiGroup"), *group, isSubdomain)...)
		}
	}
	source, ref := c.DataSource, c.DataSourceRef
	if source != nil {
		check(source.APIGroup, source.Kind, source.Name, path.Child("dataSource"))
	}
	if ref == nil {
		return errs
	}
	at := path.Child("dataSourceRef")
	check(ref.APIGroup, ref.Kind, ref.Name, at)
	elsewhere := ref.Namespace != nil && *ref.Namespace != ""
	if elsewhere {
		errs = append(errs, invalid(at.Child("namespace"), *ref.Namespace, isLabel)...)
	}
	switch {
	case source == nil:
	case elsewhere:
		errs = append(errs, forbiddenAt(path.Child("dataSource"), "must not be given where dataSourceRef is in another namespace"))
	case source.Kind != ref.Kind || source.Name != ref.Name || deref(source.APIGroup) != deref(ref.APIGroup):
		errs = append(errs, forbiddenAt(at, "must be the same as dataSource; give one of them"))
	}
	return errs
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
