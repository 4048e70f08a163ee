package deckhouse

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// refer has the machine refer to a disk or image of its cluster.
func (m *machine) refer(ref *tree.Node, kind, name string) {
	r := spec.BlockDeviceRef{Kind: kind, Name: name}
	if order, ok := ref.Get("bootOrder").Int(); ok {
		r.BootOrder = &order
	}
	m.vm.Spec.BlockDeviceRefs = append(m.vm.Spec.BlockDeviceRefs, r)
}

// blockDevices translates disks and images, whose order is the boot order here
// and there. A disk or image that is not among the objects is its cluster's, and the
// machine refers to it.
func (m *machine) blockDevices() error {
	var disks []*spec.Disk // in the order of the list; nil for a reference
	for _, ref := range m.root.Get("spec", "blockDeviceRefs").List() {
		kind, name := ref.Get("kind").String(), ref.Get("name").String()
		of, err := m.companion(kind, name)
		if err != nil {
			return err
		}
		var disk spec.Disk
		switch kind {
		case kindDisk:
			if of == nil {
				m.refer(ref, spec.KindDisk, name)
				disks = append(disks, nil)
				continue
			}
			disk = m.disk(ref, of, name)
		case kindImage, kindClusterImage:
			if of == nil && kind == kindImage {
				m.refer(ref, spec.KindImage, name)
				disks = append(disks, nil)
				continue
			}
			disk = m.image(ref, of, kind, name)
		default:
			ref.Note("a %s has no counterpart; the disk is left out", kind)
			continue
		}
		if order, ok := ref.Get("bootOrder").Int(); ok {
			disk.Bootindex = &order
		}
		disks = append(disks, &disk)
	}
	m.placeBlockDevices(disks)
	return nil
}

// placeBlockDevices adds the disks to those of the machine. References come behind them,
// so that where a list has them otherwise, each says its place in the boot order. What
// is nil is a reference.
func (m *machine) placeBlockDevices(disks []*spec.Disk) {
	refs := m.vm.Spec.BlockDeviceRefs
	given := slices.ContainsFunc(disks, func(d *spec.Disk) bool { return d != nil && d.Bootindex != nil }) ||
		slices.ContainsFunc(refs, func(r spec.BlockDeviceRef) bool { return r.BootOrder != nil })
	first := slices.Index(disks, nil)
	place := !given && first >= 0 && slices.ContainsFunc(disks[first:], func(d *spec.Disk) bool { return d != nil })
	n := 0
	for i, d := range disks {
		switch {
		case d == nil && place:
			refs[n].BootOrder = new(int32(i + 1))
		case d != nil && place:
			d.Bootindex = new(int32(i))
		case d != nil && d.Bootindex != nil && len(refs) > 0:
			d.Bootindex = new(*d.Bootindex - 1) // counted from 0, beside a bootOrder
		}
		if d == nil {
			n++
			continue
		}
		m.vm.Spec.VM.Disks = append(m.vm.Spec.VM.Disks, *d)
	}
}

// disk translates a virtual disk that is among the objects: the machine makes it.
func (m *machine) disk(ref, of *tree.Node, name string) spec.Disk {
	claim := of.Get("spec", "persistentVolumeClaim")
	size, ok := claim.Get("size").Quantity()
	if !ok {
		const usual = 10 << 30
		size.Set(usual)
		ref.Note("VirtualDisk %s does not say how large it is; it has 10Gi", name)
	}
	var class *string
	if n := claim.Get("storageClassName"); n.Is() {
		class = new(n.String())
	}
	if source := of.Get("spec", "dataSource"); source.Is() {
		source.Get("type").Read()
		im, why := m.imported(ref, source)
		if im != nil {
			im.Name, im.Size, im.StorageClassName = tree.Label(name), &size, class
			return spec.Disk{Image: im}
		}
		ref.Note("the disk %s is empty instead of a copy of %s: %s", name, describe(source), why)
		source.ReadAll()
	}
	t := &spec.VolumeClaimTemplate{Metadata: spec.EmbeddedObjectMeta{Name: tree.Label(name)}}
	t.Spec.Resources.Requests, t.Spec.StorageClassName = corev1.ResourceList{corev1.ResourceStorage: size}, class
	return spec.Disk{VolumeClaimTemplate: t}
}

// imported translates what a disk is a copy of: what a server or a registry has, be it
// that an image or another disk among the objects is a copy of that. Without an image
// it says why there is none.
func (m *machine) imported(ref, source *tree.Node) (*spec.DiskImage, string) {
	const deepest = 8 // images of images, which may be such of each other
	for range deepest {
		other := source.Get("objectRef")
		if !other.Is() {
			break
		}
		kind, name := other.Get("kind").String(), other.Get("name").String()
		of, err := m.companion(kind, name)
		if err != nil || of == nil {
			return nil, fmt.Sprintf("%s %s is not among the files", kind, name)
		}
		of.Get("spec", "storage").ReadAll() // of what is only a step on the way
		of.Get("spec", "persistentVolumeClaim").ReadAll()
		source = of.Get("spec", "dataSource")
		source.Get("type").Read()
	}
	var im *spec.DiskImage
	from, image := source.Get("http"), source.Get("containerImage")
	switch {
	case from.Get("url").Is():
		im = &spec.DiskImage{Source: from.Get("url").String()}
		if sum := from.Get("checksum", "sha256").String(); sum != "" {
			im.Checksum = "sha256:" + strings.ToLower(sum)
		} else if md5 := from.Get("checksum", "md5"); md5.Is() {
			md5.Read()
			ref.Note("the checksum of %s is one of MD5, which is left out: the source is trusted", im.Source)
		}
	case image.Get("image").Is():
		from, im = image, &spec.DiskImage{Source: "oci://" + image.Get("image").String()}
		if secret := image.Get("imagePullSecret"); secret.Is() {
			secret.ReadAll()
			ref.Note("the Secret for %s has no counterpart: on one host the credentials are those of docker login or podman login", im.Source)
		}
	default:
		return nil, "only what servers and registries have is copied"
	}
	if err := limits.ImageSource(im.Source); err != nil || limits.LocalImage(im.Source) {
		return nil, "this is no address of a server or a registry"
	}
	if im.Checksum != "" && limits.ImageChecksum(im.Checksum, false) != nil {
		ref.Note("%q is no checksum of SHA-256, and left out: the source is trusted", im.Checksum)
		im.Checksum = ""
	}
	if bundle := from.Get("caBundle"); bundle.Is() {
		pem, err := base64.StdEncoding.DecodeString(bundle.String())
		if err != nil || !strings.Contains(string(pem), "-----BEGIN CERTIFICATE-----") {
			ref.Note("the caBundle of %s has no certificates in base64, and is left out", im.Source)
		} else {
			im.CABundle = string(pem)
		}
	}
	return im, ""
}

// image translates an image, which is read only: a CD.
func (m *machine) image(ref, of *tree.Node, kind, name string) spec.Disk {
	url := of.Get("spec", "dataSource", "http", "url").String()
	of.Get("spec", "dataSource", "type").Read()
	of.Get("spec", "storage").ReadAll() // it is read where it comes from
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

// companion returns the object that a machine refers to, if it was given. What is not read
// of it is told as what is not read of the machine, but for a class, which is translated by
// itself.
func (m *machine) companion(kind, name string) (*tree.Node, error) {
	for i := range m.all {
		o := &m.all[i]
		if o.Kind != kind || o.Name != name || kind != kindClusterImage && kind != kindClass && o.Namespace != m.vm.Namespace {
			continue
		}
		for _, n := range m.companions {
			if n.Object() == o {
				return n, nil
			}
		}
		n, err := tree.Companion(o)
		if err == nil && kind != kindClass {
			m.companions = append(m.companions, n)
		}
		return n, err
	}
	return nil, nil
}
