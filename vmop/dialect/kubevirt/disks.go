package kubevirt

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// disks translates disks and volumes, in the order of the disks. Volumes that no disk names follow,
// as KubeVirt attaches them, too.
func (m *machine) disks() {
	volumes := map[string]*tree.Node{}
	var order []string
	for _, v := range m.instance.Get("volumes").List() {
		name := v.Get("name").String()
		volumes[name] = v
		order = append(order, name)
	}
	used := map[string]bool{}
	for _, f := range m.instance.Get("domain", "devices", "filesystems").List() {
		name := f.Get("name").String()
		used[name] = true
		m.filesystem(f, volumes[name], name)
	}
	for _, d := range m.instance.Get("domain", "devices", "disks").List() {
		name := d.Get("name").String()
		if other := d.Get("volumeName").String(); other != "" { // v1alpha2
			name = other
		}
		v := volumes[name]
		used[name] = true
		if v == nil {
			d.Note("there is no volume %q; the disk is left out", name)
			continue
		}
		m.disk(d, v, name)
	}
	for _, name := range order {
		if !used[name] {
			m.disk(nil, volumes[name], name)
		}
	}
}

func (m *machine) filesystem(f, v *tree.Node, name string) {
	f.Get("virtiofs").Read()
	claim := v.Get("persistentVolumeClaim", "claimName")
	switch {
	case v == nil:
		f.Note("there is no volume %q; it is left out", name)
	case !claim.Is():
		f.Note("only a volume claim can be shared with a guest here; it is left out")
	case limits.ShareTag(name) != nil:
		f.Note("%q cannot be what the guest mounts it by here: %v; it is left out", name, limits.ShareTag(name))
	default:
		share := spec.Share{Tag: name, PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: claim.String()}}
		share.ReadOnly, _ = v.Get("persistentVolumeClaim", "readOnly").Bool()
		f.Remark("cloud-config has the guest mount it here, at %s", share.MountedAt())
		m.vm.Spec.VM.Shares = append(m.vm.Spec.VM.Shares, share)
	}
}

func (m *machine) disk(d, v *tree.Node, name string) {
	if floppy := d.Get("floppy"); floppy != nil { // v1 does not have it
		floppy.Note("no machine has a floppy drive here; the disk is left out")
		d.Get("bootOrder").Read()
		return
	}
	cd := d.Get("cdrom")
	for _, how := range []string{"disk", "cdrom", "lun"} {
		device := d.Get(how)
		if bus := device.Get("bus"); bus.Is() {
			if b := bus.String(); b != "" && b != "virtio" && how != "cdrom" {
				bus.Note("is %s; a disk is on virtio here, which the guest must know to boot from it", b)
			}
		}
		if readOnly, ok := device.Get("readonly").Bool(); ok && readOnly && how != "cdrom" {
			device.Get("readonly").Note("a disk is writable here; it is left out")
			return
		}
		if device != nil && how == "lun" {
			device.Remark("is a disk here: the guest's SCSI commands do not reach the volume")
		}
		device.Get("dev").Read() // the guest names its disks by itself
		if device != nil && len(device.Keys()) == 0 {
			device.Read()
		}
	}
	if m.cloudInit(v) || m.sysprep(v) {
		if d.Get("bootOrder").Is() {
			d.Get("bootOrder").Read() // nothing boots from it
		}
		return
	}
	disk, ok := m.volume(v, name, cd != nil)
	if !ok {
		return
	}
	if order, ok := d.Get("bootOrder").Int(); ok {
		disk.Bootindex = &order
	}
	if cd != nil && disk.Cdrom == nil {
		cd.Remark("is a disk here, not a CD, and writable")
	}
	m.vm.Spec.VM.Disks = append(m.vm.Spec.VM.Disks, disk)
}

func (m *machine) volume(v *tree.Node, name string, cd bool) (spec.Disk, bool) {
	switch {
	case v.Get("containerDisk").Is():
		return m.containerDisk(v.Get("containerDisk"), name, cd)
	case v.Get("registryDisk").Is(): // until v1alpha2
		v.Get("registryDisk").Remark("is containerDisk here, as it is in KubeVirt since v1alpha3")
		return m.containerDisk(v.Get("registryDisk"), name, cd)
	case v.Get("persistentVolumeClaim", "claimName").Is():
		return claim(v.Get("persistentVolumeClaim", "claimName").String()), true
	case v.Get("dataVolume").Is():
		return m.dataVolume(v.Get("dataVolume"), name), true
	case v.Get("emptyDisk").Is():
		size, ok := v.Get("emptyDisk", "capacity").Quantity()
		if !ok {
			return spec.Disk{}, false
		}
		v.Get("emptyDisk").Remark("the disk is kept here when the machine stops")
		return template(name, size, nil), true
	case v.Get("ephemeral").Is():
		v.Get("ephemeral").Note("what the guest writes would be written to the claim here; the disk is left out")
	case v.Get("hostDisk").Is():
		v.Get("hostDisk").Note("a file of the node has no counterpart in a cluster; on one host give it by --disk. The disk is left out")
	default:
		v.Note("has no counterpart; the disk is left out")
	}
	return spec.Disk{}, false
}

// containerDisk translates a disk in a container image, which in both systems is a new one at each
// start.
func (m *machine) containerDisk(image *tree.Node, name string, cd bool) (spec.Disk, bool) {
	source := image.Get("image").String()
	out := &spec.ContainerDisk{Name: tree.Label(name), Image: source, Path: image.Get("path").String()}
	if policy := image.Get("imagePullPolicy"); policy.Is() {
		out.PullPolicy = corev1.PullPolicy(policy.String())
	}
	if secret := image.Get("imagePullSecret"); secret.Is() {
		secret.Note("has no counterpart: on one host the credentials are those of docker login or podman login")
	}
	if limits.ContainerImage(source) != nil {
		image.Get("image").Note("%q is no name of a container image; the disk is left out", source)
		return spec.Disk{}, false
	}
	if cd {
		image.Note("a CD in a container image has no counterpart yet; the drive is empty instead of holding %s", source)
		return spec.Disk{Cdrom: &spec.Cdrom{}}, true
	}
	return spec.Disk{ContainerDisk: out}, true
}

func claim(name string) spec.Disk {
	return spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: name}}
}

// template returns a disk with a claim of its own. The disk's name is part of the claim's, which
// allows fewer characters than the names of volumes.
func template(name string, size resource.Quantity, fill func(*spec.VolumeClaimSpec)) spec.Disk {
	t := &spec.VolumeClaimTemplate{Metadata: spec.EmbeddedObjectMeta{Name: tree.Label(name)}}
	t.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	if fill != nil {
		fill(&t.Spec)
	}
	return spec.Disk{VolumeClaimTemplate: t}
}

// dataVolume translates a data volume whose template is in the machine or a file; without one, the
// claim of the same name is used.
func (m *machine) dataVolume(ref *tree.Node, name string) spec.Disk {
	wanted := ref.Get("name").String()
	for _, t := range m.root.Get("spec", "dataVolumeTemplates").List() {
		if t.Get("metadata", "name").String() == wanted {
			return m.filled(t, name)
		}
	}
	if o, err := m.companion(wanted, dataVolume); err == nil && o != nil {
		ref.Note("the disk is made by the machine, from what the DataVolume of that name says")
		return m.filled(o, name)
	}
	return claim(wanted)
}

func (m *machine) filled(t *tree.Node, name string) spec.Disk {
	for _, key := range []string{"apiVersion", "kind", "status"} {
		t.Get(key).ReadAll()
	}
	for _, key := range append([]string{"name", "namespace"}, tree.ServerMade...) {
		t.Get("metadata", key).ReadAll()
	}
	of := t.Get("spec", "storage")
	if pvc := t.Get("spec", "pvc"); pvc.Is() {
		of = pvc
	}
	size, ok := of.Get("resources", "requests", "storage").Quantity()
	if !ok {
		size = resource.MustParse("10Gi")
		t.Remark("does not say how large the disk is; it has 10Gi")
	}
	if d, ok := m.imported(t, of, name, size); ok {
		return d
	}
	return template(name, size, func(c *spec.VolumeClaimSpec) {
		for _, mode := range of.Get("accessModes").List() {
			c.AccessModes = append(c.AccessModes, corev1.PersistentVolumeAccessMode(mode.String()))
		}
		if class := of.Get("storageClassName"); class.Is() {
			c.StorageClassName = new(class.String())
		}
		if mode := of.Get("volumeMode"); mode.Is() {
			c.VolumeMode = new(corev1.PersistentVolumeMode(mode.String()))
		}
		m.source(t, c)
	})
}

func (m *machine) imported(t, of *tree.Node, name string, size resource.Quantity) (spec.Disk, bool) {
	source := t.Get("spec", "source")
	im := &spec.DiskImage{Name: tree.Label(name), Size: &size}
	from := source.Get("http")
	switch registry := source.Get("registry"); {
	case from.Get("url").Is():
		im.Source = from.Get("url").String()
		if sum := from.Get("checksum"); sum.Is() {
			im.Checksum = sum.String()
			if limits.ImageChecksum(im.Checksum, false) != nil {
				sum.Note("%q is neither SHA-256 nor SHA-512, and left out: the source is trusted", im.Checksum)
				im.Checksum = ""
			}
		}
	case registry.Get("url").Is():
		from = registry
		im.Source = strings.Replace(registry.Get("url").String(), "docker://", "oci://", 1)
		for _, key := range []string{"pullMethod", "platform"} {
			registry.Get(key).ReadAll()
		}
	default:
		return spec.Disk{}, false
	}
	if err := limits.ImageSource(im.Source); err != nil || limits.LocalImage(im.Source) {
		return spec.Disk{}, false
	}
	if secret := from.Get("secretRef"); secret.Is() {
		secret.Note("has no counterpart: on one host the credentials of registries are those of docker login or podman login")
	}
	if ca := from.Get("certConfigMap"); ca.Is() {
		ca.Note("write the certificates themselves as the image's caBundle")
	}
	if class := of.Get("storageClassName"); class.Is() {
		im.StorageClassName = new(class.String())
	}
	if mode := of.Get("volumeMode"); mode.Is() && mode.String() != string(corev1.PersistentVolumeFilesystem) {
		mode.Note("the disk is a file on a volume with a file system here")
	}
	of.Get("accessModes").ReadAll() // only one machine uses it
	return spec.Disk{Image: im}, true
}

// source translates the source of a disk's content: Kubernetes clones claims and snapshots of the
// same namespace.
func (m *machine) source(t *tree.Node, c *spec.VolumeClaimSpec) {
	source, ref := t.Get("spec", "source"), t.Get("spec", "sourceRef")
	here := func(n *tree.Node) bool {
		namespace := n.Get("namespace").String()
		return namespace == "" || namespace == m.vm.Namespace
	}
	switch {
	case source.Get("blank") != nil:
		source.Get("blank").Read()
	case source.Get("pvc").Is() && here(source.Get("pvc")):
		c.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source.Get("pvc", "name").String()}
	case source.Get("snapshot").Is() && here(source.Get("snapshot")):
		c.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: source.Get("snapshot", "name").String()}
	case source.Is() || ref.Is():
		if !source.Is() {
			source = ref
		}
		source.Note("has no counterpart: the disk is empty")
	}
}
