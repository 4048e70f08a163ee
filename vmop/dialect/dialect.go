package dialect

import (
	"errors"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/dialect/deckhouse"
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/dialect/kubevirt"
	"github.com/vmop/sdk/vmop/spec"
)

// Machine is a machine translated from another system's manifest.
type Machine struct {
	// VirtualMachine is the translated machine, without defaults.
	VirtualMachine *spec.VirtualMachine
	// Object is the original object.
	Object spec.Object
	// Notes describe everything in the manifest that has another meaning here, or none, each with
	// its file, line and path.
	Notes []spec.Problem
}

// Class is a class of machines translated from another system's manifest.
type Class struct {
	// VirtualMachineClass is the translated class.
	VirtualMachineClass *spec.VirtualMachineClass
	// Object is the original object.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// Operation is an operation on a machine translated from another system's manifest.
type Operation struct {
	// VirtualMachineOperation is the translated operation.
	VirtualMachineOperation *spec.VirtualMachineOperation
	// Object is the original object.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// Disk is a disk translated from another system's manifest.
type Disk struct {
	// VirtualDisk is the translated disk.
	VirtualDisk *spec.VirtualDisk
	// Object is the original object.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// Image is an image translated from another system's manifest.
type Image struct {
	// VirtualImage is the translated image.
	VirtualImage *spec.VirtualImage
	// Object is the original object.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// ClusterImage is an image of the cluster translated from another system's manifest.
type ClusterImage struct {
	// ClusterVirtualImage is the translated image.
	ClusterVirtualImage *spec.ClusterVirtualImage
	// Object is the original object.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// Attachment is an attachment translated from another system's manifest.
type Attachment struct {
	// VirtualMachineBlockDeviceAttachment is the translated attachment.
	VirtualMachineBlockDeviceAttachment *spec.VirtualMachineBlockDeviceAttachment
	// Object is the original object.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// Translated is a translated object of any kind.
type Translated struct {
	// Typed is the translated object.
	Typed spec.TypedObject
	// Object is the original object.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// Translation is the translation of the objects of files. All lists are in the order of the
// objects.
type Translation struct {
	// Machines are the machines.
	Machines []Machine
	// Classes are the classes of machines.
	Classes []Class
	// Operations are the operations on machines.
	Operations []Operation
	// Disks, Images and ClusterImages are disks and images that exist on their own. An image of a
	// namespace may be a copy that a machine refers to in place of an image of the cluster; its
	// Object is that machine.
	Disks         []Disk
	Images        []Image
	ClusterImages []ClusterImage
	// Attachments are the attachments of disks to machines.
	Attachments []Attachment
	// LeftOut names the other objects of these systems: those that describe no machine and to which
	// no machine refers, and those without a counterpart.
	LeftOut []spec.Problem
}

// All returns all translated objects, kind by kind, machines first.
func (t *Translation) All() []Translated {
	var all []Translated
	for _, m := range t.Machines {
		all = append(all, Translated{m.VirtualMachine, m.Object, m.Notes})
	}
	for _, c := range t.Classes {
		all = append(all, Translated{c.VirtualMachineClass, c.Object, c.Notes})
	}
	for _, i := range t.ClusterImages {
		all = append(all, Translated{i.ClusterVirtualImage, i.Object, i.Notes})
	}
	for _, i := range t.Images {
		all = append(all, Translated{i.VirtualImage, i.Object, i.Notes})
	}
	for _, d := range t.Disks {
		all = append(all, Translated{d.VirtualDisk, d.Object, d.Notes})
	}
	for _, a := range t.Attachments {
		all = append(all, Translated{a.VirtualMachineBlockDeviceAttachment, a.Object, a.Notes})
	}
	for _, o := range t.Operations {
		all = append(all, Translated{o.VirtualMachineOperation, o.Object, o.Notes})
	}
	return all
}

// Translate translates every machine of another system, every class of machines, disk, image,
// attachment and operation among the objects of one or several files. Objects that machines refer
// to, such as instance types and data volumes, are looked up among the same objects. Machines of
// this system and objects of other groups are ignored.
//
// The error is a [*spec.LoadError] with every problem that prevents the translation of an object,
// such as a missing size; the others are returned.
func Translate(objects []spec.Object) (Translation, error) {
	var out Translation
	var problems []spec.Problem
	for i := range objects {
		o := &objects[i]
		add, known := translator(o)
		if !known {
			continue
		}
		if add == nil {
			out.LeftOut = append(out.LeftOut, o.Problem("", "describes no machine and is left out"))
			continue
		}
		if err := add(&out, o, objects); err != nil {
			problems = append(problems, problem(o, err))
		}
	}
	if len(problems) > 0 {
		return out, &spec.LoadError{Problems: problems}
	}
	return out, nil
}

// Kinds lists the kinds that [Translate] translates, each followed by its group, machines first.
func Kinds() []string {
	var all []string
	for _, r := range rows() {
		all = append(all, r.kind)
	}
	return all
}

// Companions lists the kinds, each followed by its group, that are only read where a machine refers
// to them.
func Companions() []string {
	return kubevirt.Companions()
}

type translation func(out *Translation, o *spec.Object, all []spec.Object) error

type row struct {
	kind string
	add  translation
}

func rows() []row {
	var all []row
	for _, kind := range kubevirt.Kinds() {
		all = append(all, row{kind, machines(kubevirt.Translate)})
	}
	for _, kind := range deckhouse.Kinds() {
		all = append(all, row{kind, withImages(machines(deckhouse.Translate))})
	}
	return append(all, row{deckhouse.ClassKind, class},
		single(deckhouse.DiskKind, deckhouse.TranslateDisk, func(out *Translation, d *spec.VirtualDisk, o spec.Object, notes []spec.Problem) {
			out.Disks = append(out.Disks, Disk{d, o, notes})
		}),
		single(deckhouse.ImageKind, deckhouse.TranslateImage, func(out *Translation, i *spec.VirtualImage, o spec.Object, notes []spec.Problem) {
			out.Images = append(out.Images, Image{i, o, notes})
		}),
		single(deckhouse.ClusterImageKind, deckhouse.TranslateClusterImage, func(out *Translation, i *spec.ClusterVirtualImage, o spec.Object, notes []spec.Problem) {
			out.ClusterImages = append(out.ClusterImages, ClusterImage{i, o, notes})
		}),
		single(deckhouse.AttachmentKind, deckhouse.TranslateAttachment, func(out *Translation, a *spec.VirtualMachineBlockDeviceAttachment, o spec.Object, notes []spec.Problem) {
			out.Attachments = append(out.Attachments, Attachment{a, o, notes})
		}),
		single(deckhouse.OperationKind, operation, func(out *Translation, op *spec.VirtualMachineOperation, o spec.Object, notes []spec.Problem) {
			out.Operations = append(out.Operations, Operation{op, o, notes})
		}),
	)
}

// translator returns the translation of an object's kind; nil if a kind of these systems has none.
// Companions of machines are not known here.
func translator(o *spec.Object) (add translation, known bool) {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	kind := o.Kind + "." + group
	for _, r := range rows() {
		if r.kind == kind {
			return r.add, true
		}
	}
	theirs := strings.HasSuffix("."+group, "."+kubevirt.Group) || group == deckhouse.Group
	return nil, theirs && !slices.Contains(Companions(), kind)
}

func machines(translate func(*spec.Object, []spec.Object) (*spec.VirtualMachine, []spec.Problem, error)) translation {
	return func(out *Translation, o *spec.Object, all []spec.Object) error {
		vm, notes, err := translate(o, all)
		if err == nil {
			out.Machines = append(out.Machines, Machine{VirtualMachine: vm, Object: *o, Notes: notes})
		}
		return err
	}
}

// withImages adds the images that are copied for a machine of Deckhouse, to which other machines of
// its namespace may refer as well.
func withImages(add translation) translation {
	return func(out *Translation, o *spec.Object, all []spec.Object) error {
		images, err := deckhouse.TranslateClusterImageCopies(o, all)
		if err != nil {
			return err
		}
		if err := add(out, o, all); err != nil {
			return err
		}
		for _, i := range images {
			if !slices.ContainsFunc(out.Images, func(other Image) bool {
				return other.VirtualImage.Namespace == i.Namespace && other.VirtualImage.Name == i.Name
			}) {
				out.Images = append(out.Images, Image{VirtualImage: i, Object: *o})
			}
		}
		return nil
	}
}

func class(out *Translation, o *spec.Object, _ []spec.Object) error {
	c, notes, err := deckhouse.TranslateClass(o)
	if err == nil {
		out.Classes = append(out.Classes, Class{VirtualMachineClass: c, Object: *o, Notes: notes})
	}
	return err
}

// single returns the row of a kind of which some objects have no counterpart; the notes then
// contain the reason.
func single[T any](kind string, translate func(*spec.Object, []spec.Object) (*T, []spec.Problem, error), add func(*Translation, *T, spec.Object, []spec.Problem)) row {
	return row{kind, func(out *Translation, o *spec.Object, all []spec.Object) error {
		made, notes, err := translate(o, all)
		switch {
		case err != nil:
			return err
		case made == nil:
			out.LeftOut = append(out.LeftOut, notes...)
		default:
			add(out, made, *o, notes)
		}
		return nil
	}}
}

func operation(o *spec.Object, _ []spec.Object) (*spec.VirtualMachineOperation, []spec.Problem, error) {
	return deckhouse.TranslateOperation(o)
}

func problem(o *spec.Object, err error) spec.Problem {
	var field *tree.FieldError
	if errors.As(err, &field) {
		return o.Problem(field.Path, field.Message)
	}
	return o.Problem("", err.Error())
}
