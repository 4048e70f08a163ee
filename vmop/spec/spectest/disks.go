package spectest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// drawDisks draws disks and CD drives. Where they are many, they are all that there
// may be.
func drawDisks(t *rapid.T, m *spec.Machine, oneHost bool) {
	n := rapid.IntRange(0, 5).Draw(t, "disks")
	all := many(t, "disks")
	if all {
		n = maxDisks(m) + limits.MaxCDs
	}
	// A prefix of its own keeps names apart without discarding draws.
	name := func(i int, what string) string { return fmt.Sprintf("%s%d-%s", what, i, Label().Draw(t, what)) }
	boot := map[int32]bool{}
	for i := range n {
		var d spec.Disk
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		if all && i < limits.MaxCDs {
			kind = 2
		} else if all && kind == 2 {
			kind = 1
		}
		switch kind {
		case 0:
			d.VolumeClaimTemplate = drawTemplate(t, i, name)
		case 1:
			d.PersistentVolumeClaim = &spec.VolumeClaimReference{ClaimName: name(i, "claim")}
			if maybe(t, "dot") {
				d.PersistentVolumeClaim.ClaimName = fmt.Sprintf("claim%d.%s", i, subdomain().Draw(t, "claim"))
			}
		case 2:
			d.Cdrom = &spec.Cdrom{Image: ImageName().Draw(t, "image")}
		case 3:
			d.Image = drawImage(t, name(i, "image"), oneHost)
		case 4:
			d.ContainerDisk = drawContainerDisk(t, name(i, "container"), oneHost)
		}
		if maybe(t, "bootindex") {
			index := rapid.OneOf(rapid.Int32Range(0, 99), rapid.Int32Range(0, limits.MaxBootIndex)).Draw(t, "bootindex")
			d.Bootindex = new(free(boot, index, 0, limits.MaxBootIndex))
		}
		m.Disks = append(m.Disks, d)
	}
}

// maxDisks is how many disks a machine may have besides its CDs.
func maxDisks(m *spec.Machine) int {
	if len(m.Shares) > 0 {
		return limits.MaxDisksBesideShares
	}
	return limits.MaxDisks
}

// free is a number that is not taken, the one that is wanted or one behind it, and takes
// it.
func free(taken map[int32]bool, wanted, least, most int32) int32 {
	for taken[wanted] {
		if wanted++; wanted > most || wanted < least {
			wanted = least
		}
	}
	taken[wanted] = true
	return wanted
}

// leaveRoom removes the last CD drive of a machine that has as many as there may be,
// where another one is to come.
func leaveRoom(s *spec.VirtualMachineSpec) {
	if !s.HasAnswerCD() {
		return
	}
	cds, last := 0, 0
	for i := range s.VM.Disks {
		if s.VM.Disks[i].Cdrom != nil {
			cds, last = cds+1, i
		}
	}
	if cds == limits.MaxCDs {
		s.VM.Disks = slices.Delete(s.VM.Disks, last, last+1)
	}
}

// drawBlockDevices draws disks that exist by themselves.
func drawBlockDevices(t *rapid.T, s *spec.VirtualMachineSpec) {
	if rapid.IntRange(0, 2).Draw(t, "has references") > 0 {
		return
	}
	room, boot := maxDisks(&s.VM), map[int32]bool{}
	for i := range s.VM.Disks {
		if s.VM.Disks[i].Cdrom == nil {
			room--
		}
		if b := s.VM.Disks[i].Bootindex; b != nil {
			boot[*b+1] = true
		}
	}
	for i := range min(max(count(t, "references", 3, spec.MaxBlockDevices), 1), room) {
		r := spec.BlockDeviceRef{Kind: rapid.SampledFrom([]string{spec.KindDisk, spec.KindImage}).Draw(t, "kind"), Name: fmt.Sprintf("ref%d-%s", i, Label().Draw(t, "reference"))}
		r.Name = strings.TrimRight(r.Name[:min(len(r.Name), spec.MaxDiskName)], "-")
		if maybe(t, "bootOrder") {
			order := rapid.OneOf(rapid.Int32Range(1, 99), rapid.Int32Range(1, limits.MaxBootIndex+1)).Draw(t, "bootOrder")
			r.BootOrder = new(free(boot, order, 1, limits.MaxBootIndex+1))
		}
		s.BlockDeviceRefs = append(s.BlockDeviceRefs, r)
	}
}

func drawImage(t *rapid.T, name string, oneHost bool) *spec.DiskImage {
	im := &spec.DiskImage{Name: name, Size: new(Bytes(1, 1<<44).Draw(t, "size"))}
	sources := []string{"https://example.org/debian.qcow2", "http://images.example:8080/a.raw.xz?a=b,c", "oci://quay.io/disks/debian:13"}
	if oneHost {
		sources = append(sources, "/srv/images/a, b=c.img", "images/debian.qcow2", "oci-archive:disk.tar", "oci-layout:/srv/layout")
	}
	im.Source = rapid.SampledFrom(sources).Draw(t, "source")
	container := limits.IsContainerImage(im.Source)
	if container {
		im.Path = drawImagePath(t)
	}
	if maybe(t, "checksum") {
		im.Checksum = "sha256:" + strings.Repeat("0f", 32)
		if !container && maybe(t, "sha512") {
			im.Checksum = "sha512:" + strings.Repeat("A5", 64)
		}
	}
	if maybe(t, "caBundle") {
		im.CABundle = drawCABundle(t)
	}
	im.StorageClassName = drawStorageClass(t)
	return im
}

func drawImagePath(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "/disk/debian.img", "disk/a, b=c.img", "/ü.raw"}).Draw(t, "path")
}

// drawCABundle draws what has the form of certificates: nobody reads them before there
// is a server.
func drawCABundle(t *rapid.T) string {
	text := rapid.SampledFrom([]string{"", "# of the office\n", "Bag Attributes: \"a\": b\r\n"}).Draw(t, "comment")
	for range rapid.IntRange(1, 2).Draw(t, "certificates") {
		der := rapid.SliceOfN(rapid.Byte(), 1, 48).Draw(t, "certificate")
		text += "-----BEGIN CERTIFICATE-----\n" + base64.StdEncoding.EncodeToString(der) + "\n-----END CERTIFICATE-----\n"
	}
	return text
}

func drawStorageClass(t *rapid.T) *string {
	if !maybe(t, "storageClassName") {
		return nil
	}
	return new(rapid.OneOf(rapid.SampledFrom([]string{"", "local-path", "rook-ceph-block"}), subdomain()).Draw(t, "storageClassName"))
}

func drawContainerDisk(t *rapid.T, name string, oneHost bool) *spec.ContainerDisk {
	c := &spec.ContainerDisk{Name: name, Persistent: maybe(t, "persistent"), Path: drawImagePath(t)}
	images := []string{"debian", "quay.io/disks/debian:13", "registry.example:5000/a/b@sha256:" + strings.Repeat("0f", 32)}
	policies := []corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent}
	if oneHost {
		images, policies = append(images, "oci-archive:/srv/disk.tar", "oci-layout:layout"), append(policies, corev1.PullNever)
	}
	c.Image = rapid.SampledFrom(images).Draw(t, "image")
	c.PullPolicy = rapid.SampledFrom(policies).Draw(t, "pullPolicy")
	if c.Persistent || maybe(t, "size") {
		c.Size = new(Bytes(1, 1<<44).Draw(t, "size"))
	}
	if c.Persistent {
		c.StorageClassName = drawStorageClass(t)
	}
	return c
}

func drawTemplate(t *rapid.T, i int, name func(int, string) string) *spec.VolumeClaimTemplate {
	v := &spec.VolumeClaimTemplate{}
	if maybe(t, "metadata") {
		// Mappings that are empty are left out of a manifest, with the metadata.
		if labels := drawLabels(t, "labels", 256); len(labels) > 0 {
			v.Metadata.Labels = labels
		}
		if annotations := drawLabels(t, "annotations", 256); len(annotations) > 0 {
			v.Metadata.Annotations = annotations
		}
		if maybe(t, "name") {
			v.Metadata.Name = name(i, "disk")
		}
	}
	v.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: Bytes(1, 1<<44).Draw(t, "storage")}
	if maybe(t, "limit") {
		v.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: Bytes(1<<44, 1<<50).Draw(t, "limit")}
	}
	if maybe(t, "accessModes") {
		v.Spec.AccessModes = drawAccessModes(t)
	}
	v.Spec.StorageClassName = drawStorageClass(t)
	if maybe(t, "volumeMode") {
		mode := rapid.SampledFrom([]corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}).Draw(t, "volumeMode")
		v.Spec.VolumeMode = &mode
	}
	v.Spec.Selector = drawSelector(t, "selector")
	if maybe(t, "volumeName") {
		v.Spec.VolumeName = subdomain().Draw(t, "volumeName")
	}
	drawDataSource(t, &v.Spec)
	return v
}

func drawAccessModes(t *rapid.T) []corev1.PersistentVolumeAccessMode {
	if maybe(t, "one pod") { // which goes with no other
		return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	return drawList(t, "accessModes", 2, 16, func(int) corev1.PersistentVolumeAccessMode {
		return rapid.SampledFrom([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany}).Draw(t, "mode")
	})
}

// drawDataSource draws what a volume is filled from: with both fields, which say the
// same then, or with that of another namespace.
func drawDataSource(t *rapid.T, c *spec.VolumeClaimSpec) {
	if !maybe(t, "dataSource") {
		return
	}
	source := &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: subdomain().Draw(t, "source")}
	if maybe(t, "snapshot") {
		source.APIGroup, source.Kind = new("snapshot.storage.k8s.io"), "VolumeSnapshot"
	}
	ref := &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	switch rapid.IntRange(0, 3).Draw(t, "which") {
	case 0:
		c.DataSource = source
	case 1:
		c.DataSourceRef = ref
	case 2:
		c.DataSource, c.DataSourceRef = source, ref
	case 3:
		ref.Namespace = new(Label().Draw(t, "namespace"))
		c.DataSourceRef = ref
	}
}
