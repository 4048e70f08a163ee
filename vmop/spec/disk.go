package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Template is what the disk's own volume claim is made from: its
// volumeClaimTemplate, or what image or a persistent containerDisk come to. It is nil
// for a disk that has no claim of its own. It must not be changed.
func (d *Disk) Template() *VolumeClaimTemplate {
	switch {
	case d.VolumeClaimTemplate != nil:
		return d.VolumeClaimTemplate
	case d.Image != nil:
		return imageTemplate(d.Image.Name, d.Image.Size, d.Image.StorageClassName)
	case d.ContainerDisk != nil && d.ContainerDisk.Persistent:
		return imageTemplate(d.ContainerDisk.Name, d.ContainerDisk.Size, d.ContainerDisk.StorageClassName)
	}
	return nil
}

// imageTemplate is a claim with a file system: a file gets its name when it is whole.
func imageTemplate(name string, size *resource.Quantity, class *string) *VolumeClaimTemplate {
	t := &VolumeClaimTemplate{Metadata: EmbeddedObjectMeta{Name: name}}
	if size != nil {
		t.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *size}
	}
	t.Spec.StorageClassName = class
	t.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	defaultClaim(&t.Spec)
	return t
}

// Ephemeral reports whether the disk is a new one at each start.
func (d *Disk) Ephemeral() bool { return d.ContainerDisk != nil && !d.ContainerDisk.Persistent }
