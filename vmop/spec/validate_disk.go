package spec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

// maxDiskStem is what a DNS label leaves beside the suffix "-disk": the disk's
// name is also that of a volume of the pod.
const maxDiskStem = validation.DNS1123LabelMaxLength - len("-disk")

// RunnerDataClaim returns the name of the volume claim that keeps the runner's
// data of a machine. No disk may have it.
func RunnerDataClaim(vmName string) string { return vmName + "-runner-data" }

// DiskClaim returns the name of the volume claim that is made for a disk of a
// machine from the disk's name, see [DiskName].
func DiskClaim(vmName, diskName string) string { return vmName + "-" + diskName }

// DiskName returns the name of a disk that is made from a template: the
// template's name with "-disk", or "disk-" and the disk's position among the
// templates. It is empty if the disk at the index is not made from one.
func DiskName(disks []Disk, index int) string {
	if disks[index].VolumeClaimTemplate == nil {
		return ""
	}
	if stem := disks[index].VolumeClaimTemplate.Metadata.Name; stem != "" {
		return stem + "-disk"
	}
	n := 0
	for _, d := range disks[:index] {
		if d.VolumeClaimTemplate != nil {
			n++
		}
	}
	return fmt.Sprintf("disk-%d", n)
}

func validateDisks(disks []Disk, vmName string, path spot) field.ErrorList {
	var errs field.ErrorList
	var cds int
	if n := len(disks); n > limits.MaxDisks+limits.MaxCDs {
		errs = append(errs, tooManyAt(path, n, limits.MaxDisks+limits.MaxCDs))
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
			once(DiskClaim(vmName, DiskName(disks, i)), at.Child("metadata", "name"), t.Metadata.Name)
		}
		if c := d.PersistentVolumeClaim; c != nil {
			at := at.Child("persistentVolumeClaim", "claimName")
			switch {
			case c.ClaimName == "":
				errs = append(errs, requiredAt(at, "name an existing volume claim"))
			case c.ClaimName == RunnerDataClaim(vmName):
				errs = append(errs, invalidAt(at, c.ClaimName, "is reserved for the machine's own data"))
			default:
				errs = append(errs, invalid(at, c.ClaimName, validation.IsDNS1123Subdomain)...)
				once(c.ClaimName, at, c.ClaimName)
			}
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
	for _, given := range []bool{d.VolumeClaimTemplate != nil, d.PersistentVolumeClaim != nil, d.Cdrom != nil} {
		if given {
			n++
		}
	}
	const rule = "give exactly one of volumeClaimTemplate, persistentVolumeClaim and cdrom; there "
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
		switch {
		case name == RunnerDataClaim(vmName):
			errs = append(errs, invalidAt(at.Child("name"), name, "is reserved for the machine's own data"))
		case len(name) > maxDiskStem:
			errs = append(errs, tooLongAt(at.Child("name"), name, maxDiskStem))
		default:
			errs = append(errs, invalid(at.Child("name"), name, validation.IsDNS1123Label)...)
		}
	}
	errs = append(errs, validateLabels(t.Metadata.Labels, at.Child("labels"))...)
	errs = append(errs, validateKeys(t.Metadata.Annotations, at.Child("annotations"))...)
	return append(errs, validateClaim(&t.Spec, path.Child("spec"))...)
}

func validateClaim(c *VolumeClaimSpec, path spot) field.ErrorList {
	var errs field.ErrorList
	for i, m := range c.AccessModes {
		errs = append(errs, oneOf(path.Child("accessModes").Index(i), m,
			corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)...)
	}
	errs = append(errs, oneOf(path.Child("volumeMode"), *c.VolumeMode,
		corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	if s := c.StorageClassName; s != nil && *s != "" {
		errs = append(errs, invalid(path.Child("storageClassName"), *s, validation.IsDNS1123Subdomain)...)
	}
	if c.VolumeName != "" {
		errs = append(errs, invalid(path.Child("volumeName"), c.VolumeName, validation.IsDNS1123Subdomain)...)
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
