package machineconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Disk is an entry of spec.vm.disks together with the names that everything
// else knows it by: the runner's configuration, the volume claim and the
// volume of the pod.
type Disk struct {
	// Index is the position in spec.vm.disks.
	Index int
	// Name identifies the disk within its machine; it is a DNS label. It is
	// empty for a CD drive. See [Disks].
	Name string
	// Claim is the name of the volume claim, empty for a CD drive. A plan that
	// finds a claim under a former name puts that here.
	Claim string
	// Entry is the entry itself. It is shared with the manifest.
	Entry *spec.Disk
}

// IsCD reports a CD drive.
func (d *Disk) IsCD() bool { return d.Entry.Cdrom != nil }

// Field is the JSON path of the entry.
func (d *Disk) Field() string { return fmt.Sprintf("spec.vm.disks[%d]", d.Index) }

// check refuses an entry that is nothing, or several things at once: guessing
// could connect the wrong disk.
func (d *Disk) check(p *problems) {
	kinds := 0
	for _, is := range []bool{d.Entry.VolumeClaimTemplate != nil, d.Entry.PersistentVolumeClaim != nil, d.Entry.Cdrom != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		p.add(d.Field(), "has %d of volumeClaimTemplate, persistentVolumeClaim and cdrom: want exactly one", kinds)
	}
}

// VolumeMode is how the disk's volume is used. What a referenced claim has is
// not in the manifest; modes tells it by the claim's name, and Block is what a
// disk would have been given here.
func (d *Disk) VolumeMode(modes map[string]corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	mode := corev1.PersistentVolumeBlock
	switch {
	case d.Entry.VolumeClaimTemplate != nil && d.Entry.VolumeClaimTemplate.Spec.VolumeMode != nil:
		mode = *d.Entry.VolumeClaimTemplate.Spec.VolumeMode
	case d.Entry.PersistentVolumeClaim != nil && modes[d.Claim] != "":
		mode = modes[d.Claim]
	}
	return mode
}

// Disks names the entries of the machine's disk list, in their order.
//
// A disk made from a template is called <metadata.name>-disk or, without a
// name, disk-<n>, where n is its position among the templates: VM-Operator's
// rule, which its claims and paths in the guest depend on. Named templates
// count, CD drives and references do not.
//
// A disk that refers to an existing claim is called <claimName>-claim. That
// never ends in -disk and never is disk-<n>, so no template can have the same
// name. A claim's name may be longer than a DNS label and contain dots; such a
// disk is called by the first 32 hexadecimal digits of the SHA-256 of the
// claim's name, with the suffix -pvc that no other rule produces.
func Disks(vm *spec.VirtualMachine) []Disk {
	out := make([]Disk, len(vm.Spec.VM.Disks))
	for i := range vm.Spec.VM.Disks {
		e := &vm.Spec.VM.Disks[i]
		d := Disk{Index: i, Entry: e}
		switch {
		case e.VolumeClaimTemplate != nil:
			d.Name = spec.DiskName(vm.Spec.VM.Disks, i)
			d.Claim = spec.DiskClaim(vm.Name, d.Name)
		case e.PersistentVolumeClaim != nil:
			d.Claim = e.PersistentVolumeClaim.ClaimName
			d.Name = claimDiskName(d.Claim)
		}
		out[i] = d
	}
	return out
}

// maxLabel is the length of a DNS label, which the name of a pod's volume is.
const maxLabel = 63

func claimDiskName(claim string) string {
	if name := claim + "-claim"; len(name) <= maxLabel && !strings.Contains(claim, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(claim))
	return hex.EncodeToString(sum[:16]) + "-pvc"
}
