package machineconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Disk is an entry of spec.vm.disks, or of spec.blockDeviceRefs, with its names in the runner's
// configuration, as a volume claim and as a volume of the pod.
type Disk struct {
	// Index is the position in spec.vm.disks, or in spec.blockDeviceRefs if Ref is not nil.
	Index int
	// Ref is the entry of spec.blockDeviceRefs, shared with the manifest; nil for one of
	// spec.vm.disks.
	Ref *spec.BlockDeviceRef
	// Name identifies the disk within its machine; it is a DNS label. It is empty for a CD drive.
	// See [Disks].
	Name string
	// Claim is the name of the volume claim, empty for a CD drive and for a disk that is made
	// anew at each start. A plan that finds a claim under a former name puts that here.
	Claim string
	// Format is an image's: raw, qcow2 or iso. It is not in the manifest: a plan takes it from
	// the image's claim.
	Format string
	// Entry is the entry itself, shared with the manifest; for a Ref, one that refers to its
	// claim.
	Entry *spec.Disk
}

// IsImage reports whether the disk is a VirtualImage or ClusterVirtualImage, which is only read.
func (d *Disk) IsImage() bool { return d.Ref != nil && d.Ref.IsImage() }

// IsCD reports whether the disk is a CD drive of spec.vm.disks.
func (d *Disk) IsCD() bool { return d.Entry != nil && d.Entry.Cdrom != nil }

// Field returns the JSON path of the entry.
func (d *Disk) Field() string {
	if d.Ref != nil {
		return fmt.Sprintf("spec.blockDeviceRefs[%d]", d.Index)
	}
	return fmt.Sprintf("spec.vm.disks[%d]", d.Index)
}

// check refuses an entry that is nothing, or several things at once: guessing could connect the
// wrong disk.
func (d *Disk) check(p *problems) {
	kinds := 0
	for _, is := range []bool{d.Entry.VolumeClaimTemplate != nil, d.Entry.PersistentVolumeClaim != nil, d.Entry.Cdrom != nil, d.Entry.Image != nil, d.Entry.ContainerDisk != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		p.add(d.Field(), "has %d of volumeClaimTemplate, persistentVolumeClaim, cdrom, image and containerDisk: want exactly one", kinds)
	}
}

// VolumeMode returns the volume mode of the disk. The mode of an existing claim is not in the
// manifest: a reference does not have it, and a template may have changed after the claim was
// created. modes has it by the claim's name; else it is the template's, or Block by default.
func (d *Disk) VolumeMode(modes map[string]corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	mode := corev1.PersistentVolumeBlock
	switch {
	case d.Entry == nil:
	case d.Entry.Image != nil, d.Entry.ContainerDisk != nil:
		mode = corev1.PersistentVolumeFilesystem
	case d.Claim != "" && modes[d.Claim] != "":
		mode = modes[d.Claim]
	case d.Entry.VolumeClaimTemplate != nil && d.Entry.VolumeClaimTemplate.Spec.VolumeMode != nil:
		mode = *d.Entry.VolumeClaimTemplate.Spec.VolumeMode
	}
	return mode
}

// Disks returns the named entries of the machine's disk list, in their order, and after them
// those of its spec.blockDeviceRefs.
//
// A disk made from a template is called <metadata.name>-disk or, without a name, disk-<n>, where
// n is its position among the templates: VM-Operator's rule, which its claims and paths in the
// guest depend on. Named templates count, CD drives and references do not.
//
// A disk that refers to an existing claim is called <claimName>-claim. That never ends in -disk
// and never is disk-<n>, so no template can have the same name. A claim's name may be longer than
// a DNS label and contain dots; such a disk is called by the first 32 hexadecimal digits of the
// SHA-256 of the claim's name, with the suffix -pvc that no other rule produces.
//
// One of spec.blockDeviceRefs is named as if its claim were referred to: a guest does not see in
// which of the two ways it has a disk.
func Disks(vm *spec.VirtualMachine) []Disk {
	if vm == nil {
		return nil
	}
	out := make([]Disk, len(vm.Spec.VM.Disks), len(vm.Spec.VM.Disks)+len(vm.Spec.BlockDeviceRefs))
	for i := range vm.Spec.VM.Disks {
		e := &vm.Spec.VM.Disks[i]
		d := Disk{Index: i, Entry: e}
		switch {
		case e.Template() != nil:
			d.Name = spec.DiskName(vm.Spec.VM.Disks, i)
			d.Claim = spec.DiskClaimName(vm.Name, d.Name)
		case e.Ephemeral():
			d.Name = spec.DiskName(vm.Spec.VM.Disks, i)
		case e.PersistentVolumeClaim != nil:
			d.Claim = e.PersistentVolumeClaim.ClaimName
			d.Name = ClaimDiskName(d.Claim)
		}
		out[i] = d
	}
	boot := spec.BlockDeviceBootIndexes(&vm.Spec)
	for i := range vm.Spec.BlockDeviceRefs {
		ref := &vm.Spec.BlockDeviceRefs[i]
		d := Disk{Index: i, Ref: ref, Claim: ref.Claim(), Name: ClaimDiskName(ref.Claim())}
		d.Entry = &spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: d.Claim}}
		if boot != nil {
			d.Entry.Bootindex = boot[i]
		}
		out = append(out, d)
	}
	return out
}

const maxLabel = 63

// image returns what a disk is a copy of, or nil. Files are relative to base, the manifest's
// folder; where here is false, as in a cluster, they are refused.
func (d *Disk) image(base string, here bool, p *problems) *runnerconfig.DriveImage {
	var out *runnerconfig.DriveImage
	var field string
	switch im, c := d.Entry.Image, d.Entry.ContainerDisk; {
	case im != nil:
		field = ".image.source"
		out = &runnerconfig.DriveImage{Source: im.Source, Path: im.Path, Checksum: im.Checksum, CABundle: im.CABundle}
	case c != nil:
		field = ".containerDisk.image"
		out = &runnerconfig.DriveImage{
			Source: limits.ContainerSource(c.Image), Path: c.Path, PullPolicy: string(c.PullPolicy), Ephemeral: !c.Persistent,
		}
	default:
		return nil
	}
	if !here {
		if out.PullPolicy == string(corev1.PullNever) {
			p.add(d.Field()+".containerDisk.pullPolicy", "Never is for machines of one host, which keeps images: want Always or IfNotPresent")
		}
		out.PullPolicy = "" // nothing can be present already
	}
	if !limits.LocalImage(out.Source) {
		return out
	}
	file, with := limits.LocalPath(out.Source)
	switch {
	case !here:
		p.add(d.Field()+field, "%q is a file of one host: in a cluster want a URL of http or https, or a registry's image", out.Source)
	case path.IsAbs(file):
	case base == "":
		p.add(d.Field()+field, "%q is relative, and it is not known to which folder: make it an absolute path", file)
	default:
		out.Source = with(path.Join(base, file))
	}
	return out
}

// ClaimDiskName returns the name, within its machine, of a disk that refers to a claim by name,
// see [Disks].
func ClaimDiskName(claim string) string {
	if name := claim + "-claim"; len(name) <= maxLabel && !strings.Contains(claim, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(claim))
	return hex.EncodeToString(sum[:16]) + "-pvc"
}
