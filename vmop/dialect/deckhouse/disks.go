package deckhouse

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// blockDevices translates disks and images, whose order is the boot order here
// and there.
func (m *machine) blockDevices() error {
	for _, ref := range m.root.Get("spec", "blockDeviceRefs").List() {
		kind, name := ref.Get("kind").String(), ref.Get("name").String()
		of, err := m.companion(kind, name)
		if err != nil {
			return err
		}
		var disk spec.Disk
		switch kind {
		case "VirtualDisk":
			disk = m.disk(ref, of, name)
		case "VirtualImage", "ClusterVirtualImage":
			disk = m.image(ref, of, kind, name)
		default:
			ref.Note("a %s has no counterpart; the disk is left out", kind)
			continue
		}
		if order, ok := ref.Get("bootOrder").Int(); ok {
			disk.Bootindex = &order
		}
		m.vm.Spec.VM.Disks = append(m.vm.Spec.VM.Disks, disk)
	}
	return nil
}

// disk translates a virtual disk. One that is among the objects is made by the
// machine; another has a claim whose name only its cluster knows.
func (m *machine) disk(ref, of *tree.Node, name string) spec.Disk {
	if of == nil {
		ref.Note("the claim of VirtualDisk %s has another name in its cluster: see its status.target.persistentVolumeClaimName", name)
		return spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: name}}
	}
	claim := of.Get("spec", "persistentVolumeClaim")
	t := &spec.VolumeClaimTemplate{Metadata: spec.EmbeddedObjectMeta{Name: tree.Label(name)}}
	size, ok := claim.Get("size").Quantity()
	if !ok {
		const usual = 10 << 30
		size.Set(usual)
		ref.Note("VirtualDisk %s does not say how large it is; it has 10Gi", name)
	}
	t.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	if class := claim.Get("storageClassName"); class.Is() {
		t.Spec.StorageClassName = new(class.String())
	}
	if source := of.Get("spec", "dataSource"); source.Is() {
		ref.Note("images are not imported yet: the disk %s is empty instead of a copy of %s", name, describe(source))
	}
	return spec.Disk{VolumeClaimTemplate: t}
}

// image translates an image, which is read only: a CD.
func (m *machine) image(ref, of *tree.Node, kind, name string) spec.Disk {
	url := of.Get("spec", "dataSource", "http", "url").String()
	switch {
	case of == nil:
		ref.Note("%s %s is not among the files; the drive is empty", kind, name)
	case url == "":
		ref.Note("%s %s is not from a web server; the drive is empty", kind, name)
	default:
		ref.Note("%s %s is a CD that is read from its web server while the machine runs", kind, name)
	}
	return spec.Disk{Cdrom: &spec.Cdrom{Image: url}}
}

func describe(source *tree.Node) string {
	if url := source.Get("http", "url"); url.Is() {
		return url.String()
	}
	if image := source.Get("containerImage", "image"); image.Is() {
		return image.String()
	}
	if ref := source.Get("objectRef"); ref.Is() {
		return fmt.Sprintf("%s %s", ref.Get("kind").String(), ref.Get("name").String())
	}
	return "what is uploaded"
}

// companion returns the object that a machine refers to, if it was given.
func (m *machine) companion(kind, name string) (*tree.Node, error) {
	for i := range m.all {
		o := &m.all[i]
		if o.Kind == kind && o.Name == name && (kind == "ClusterVirtualImage" || kind == kindClass || o.Namespace == m.vm.Namespace) {
			return tree.New(o)
		}
	}
	return nil, nil
}
