package machineconfig

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Beside are the objects beside machines in their files that only a cluster has: disks and images
// of their own, and attachments. [Beside.Own] replaces them for a machine of one host.
type Beside struct {
	Disks         []*spec.VirtualDisk
	Images        []*spec.VirtualImage
	ClusterImages []*spec.ClusterVirtualImage
	Attachments   []*spec.VirtualMachineBlockDeviceAttachment
}

// Note is something that the user should know of a field of a machine.
type Note struct {
	// Field is its JSON path, such as spec.blockDeviceRefs[0].
	Field string
	// Message is how the field is treated.
	Message string
}

// Own returns a machine for one host that has its own disks in place of the objects that it
// refers to: the entries of spec.blockDeviceRefs become entries of spec.vm.disks, after the
// others and with their places in the boot order. A VirtualDisk becomes a disk of its size that
// is a copy of its source, or empty; an image of a CD becomes a drive. Attachments to it become
// disks, too.
//
// A reference to an object that is missing, or that a host cannot use, stays as it is: a file is
// given for it, or it is refused. A note says why. The machine itself is not changed.
func (b *Beside) Own(vm *spec.VirtualMachine) (*spec.VirtualMachine, []Note) {
	if b == nil || vm == nil {
		return vm, nil
	}
	w := &owning{Beside: b, vm: vm.DeepCopy()}
	w.references()
	w.attachments()
	if w.changed {
		spec.Default(w.vm)
		return w.vm, w.notes
	}
	return vm, w.notes
}

type owning struct {
	*Beside
	vm      *spec.VirtualMachine
	notes   []Note
	changed bool
}

func (w *owning) note(field, format string, args ...any) {
	w.notes = append(w.notes, Note{field, fmt.Sprintf(format, args...)})
}

func (w *owning) references() {
	s := &w.vm.Spec
	boot := spec.BlockDeviceBootIndexes(s)
	made := make([]*spec.Disk, len(s.BlockDeviceRefs))
	kept, mixed := false, false // a reference stays; one after it does not
	for i := range s.BlockDeviceRefs {
		ref := &s.BlockDeviceRefs[i]
		field := fmt.Sprintf("spec.blockDeviceRefs[%d]", i)
		if made[i] = w.disk(field, ref); made[i] == nil {
			kept = true
			continue
		}
		if boot != nil {
			made[i].Bootindex = boot[i]
		}
		s.VM.Disks = append(s.VM.Disks, *made[i])
		w.changed = true
		mixed = mixed || kept
	}
	if !w.changed {
		return
	}
	switch {
	case boot == nil && mixed: // a disk that was after a reference is now before it
		w.order(made)
	case boot != nil:
		for i := range s.BlockDeviceRefs {
			if boot[i] != nil {
				s.BlockDeviceRefs[i].BootOrder = new(*boot[i] + 1)
			}
		}
	}
	i := -1
	s.BlockDeviceRefs = slices.DeleteFunc(s.BlockDeviceRefs, func(spec.BlockDeviceRef) bool { i++; return made[i] != nil })
	if len(s.BlockDeviceRefs) == 0 {
		s.BlockDeviceRefs = nil
	}
}

// order gives each disk and reference an explicit boot index by its place in the list, which was
// the boot order.
func (w *owning) order(made []*spec.Disk) {
	s := &w.vm.Spec
	before, n := len(s.VM.Disks), 0
	for _, d := range made {
		if d != nil {
			before--
		}
	}
	for i := range before {
		s.VM.Disks[i].Bootindex = new(int32(i))
	}
	for i, d := range made {
		if d == nil {
			s.BlockDeviceRefs[i].BootOrder = new(int32(before + i + 1))
			continue
		}
		s.VM.Disks[before+n].Bootindex = new(int32(before + i))
		n++
	}
}

func (w *owning) attachments() {
	for _, a := range w.Attachments {
		if a.Spec.VirtualMachineName != w.vm.Name || !sameNamespace(a.Namespace, w.vm.Namespace) {
			continue
		}
		r, what := a.Spec.BlockDeviceRef, "VirtualMachineBlockDeviceAttachment "+a.Name
		if r.Kind != spec.AttachedDisk {
			w.note("spec.vm.disks", "%s attaches a %s, which exists in a cluster only, and is left out", what, r.Kind)
			continue
		}
		if w.virtualDisk(r.Name) == nil {
			w.note("spec.vm.disks", "%s is left out: VirtualDisk %s is not among the files", what, r.Name)
			continue
		}
		d := w.disk("spec.vm.disks", &spec.BlockDeviceRef{Kind: spec.KindDisk, Name: r.Name})
		if d == nil {
			w.note("spec.vm.disks", "%s is left out", what)
			continue
		}
		w.note("spec.vm.disks", "%s: the machine has the disk from its start on", what)
		w.vm.Spec.VM.Disks = append(w.vm.Spec.VM.Disks, *d)
		w.changed = true
	}
}

func (w *owning) disk(field string, ref *spec.BlockDeviceRef) *spec.Disk {
	if ref.Kind != spec.KindDisk {
		return w.drive(field, ref)
	}
	of := w.virtualDisk(ref.Name)
	if of == nil {
		return nil // reported where it is needed
	}
	name := strings.ReplaceAll(of.Name, ".", "-")
	switch {
	case len(validation.IsDNS1123Label(name+"-disk")) > 0:
		w.note(field, "the name of VirtualDisk %s is too long for a disk of one host", of.Name)
		return nil
	case w.has(name + "-disk"):
		w.note(field, "the machine has another disk %s", name)
		return nil
	}
	c := &of.Spec.PersistentVolumeClaim
	size := c.Size.DeepCopy()
	source, why := w.source(field, of.Spec.DataSource)
	switch {
	case why != "":
		w.note(field, "VirtualDisk %s cannot be made here: %s", of.Name, why)
		return nil
	case source == nil:
		t := &spec.VolumeClaimTemplate{Metadata: spec.EmbeddedObjectMeta{Name: name}}
		t.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
		t.Spec.StorageClassName, t.Spec.VolumeMode = c.StorageClassName, c.VolumeMode
		return &spec.Disk{VolumeClaimTemplate: t}
	}
	im := &spec.DiskImage{Name: name, Source: source.Location(), Checksum: source.Sum(), Size: &size, StorageClassName: c.StorageClassName}
	switch from := source.ContainerImage; {
	case source.HTTP != nil:
		im.CABundle = source.HTTP.CABundle
	case from != nil:
		im.CABundle, im.Path = from.CABundle, from.Path
		if from.ImagePullSecret != nil {
			w.note(field, "the Secret %s is not read here: the credentials for %s are those of docker login or podman login", from.ImagePullSecret.Name, from.Image)
		}
	}
	return &spec.Disk{Image: im}
}

func (w *owning) has(name string) bool {
	for i := range w.vm.Spec.VM.Disks {
		if spec.DiskName(w.vm.Spec.VM.Disks, i) == name {
			return true
		}
	}
	return false
}

func (w *owning) drive(field string, ref *spec.BlockDeviceRef) *spec.Disk {
	of := w.dataSource(ref.Kind, ref.Name)
	if of == nil {
		return nil
	}
	source, why := w.source(field, of)
	if why == "" && (source == nil || source.HTTP == nil || !isCD(source.HTTP.URL) || source.HTTP.CABundle != "") {
		why = "only the image of a CD (….iso) that a server of http or https has is read from there. Get the file (vmop-cli image pull) and say where it is"
	}
	if why == "" && w.freeCDs() <= 0 {
		why = fmt.Sprintf("a machine has at most %d CDs", limits.MaxCDs)
	}
	if why != "" {
		w.note(field, "%s %s cannot be had here: %s", ref.Kind, ref.Name, why)
		return nil
	}
	message := "%s %s is a CD that is read from its server while the machine runs"
	if source.Sum() != "" {
		message += ", without a look at its checksum"
	}
	w.note(field, message, ref.Kind, ref.Name)
	return &spec.Disk{Cdrom: &spec.Cdrom{Image: source.HTTP.URL}}
}

func (w *owning) freeCDs() int {
	s := &w.vm.Spec
	free := limits.MaxCDs
	for i := range s.VM.Disks {
		if s.VM.Disks[i].Cdrom != nil {
			free--
		}
	}
	if s.HasAnswerCD() {
		free--
	}
	return free
}

// source resolves the source of a copy through images and disks that refer to each other; nil for
// an empty disk. If nothing is found, why is the reason.
func (w *owning) source(field string, s *spec.VirtualDiskSource) (found *spec.VirtualDiskSource, why string) {
	const deepest = 16 // images may refer to each other in a cycle
	for range deepest {
		if s == nil || s.ObjectRef == nil {
			if s != nil && s.Location() == "" {
				return nil, "it is not of a server or a registry"
			}
			return s, ""
		}
		kind, name := s.ObjectRef.Kind, s.ObjectRef.Name
		if kind == spec.KindDisk {
			of := w.virtualDisk(name)
			if of == nil {
				return nil, fmt.Sprintf("%s %s is not among the files", kind, name)
			}
			w.note(field, "is made of what VirtualDisk %s is made of, and has nothing that was written to that", name)
			s = of.Spec.DataSource
			continue
		}
		if kind == spec.KindVolumeSnapshot {
			return nil, fmt.Sprintf("%s %s is one of a cluster", kind, name)
		}
		if s = w.dataSource(kind, name); s == nil {
			return nil, fmt.Sprintf("%s %s is not among the files", kind, name)
		}
	}
	return nil, "what it is a copy of is one of itself"
}

func (w *owning) virtualDisk(name string) *spec.VirtualDisk {
	i := slices.IndexFunc(w.Disks, func(d *spec.VirtualDisk) bool {
		return d.Name == name && sameNamespace(d.Namespace, w.vm.Namespace)
	})
	if i < 0 {
		return nil
	}
	return w.Disks[i]
}

func (w *owning) dataSource(kind, name string) *spec.VirtualDiskSource {
	switch kind {
	case spec.KindImage:
		for _, i := range w.Images {
			if i.Name == name && sameNamespace(i.Namespace, w.vm.Namespace) {
				return &i.Spec.DataSource
			}
		}
	case spec.KindClusterImage:
		for _, i := range w.ClusterImages {
			if i.Name == name {
				return &i.Spec.DataSource
			}
		}
	}
	return nil
}

// isCD reports whether a file is a CD image, by its name: the content is known only when the
// machine reads it.
func isCD(location string) bool {
	u, err := url.Parse(location)
	return err == nil && strings.EqualFold(path.Ext(u.Path), ".iso")
}

// sameNamespace compares namespaces of manifests, which may omit the default one.
func sameNamespace(a, b string) bool {
	return cmp.Or(a, corev1.NamespaceDefault) == cmp.Or(b, corev1.NamespaceDefault)
}
