package machineconfig_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

const cdURL = "https://images.example/setup.ISO?a=b"

// A machine for one host keeps every reference or has one disk or drive in its place, in
// the boot order that there was; what it was made of is not changed.
func TestOwnDisks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		spec.Default(vm)
		if !rapid.Bool().Draw(t, "orders are given") {
			for i := range vm.Spec.VM.Disks {
				vm.Spec.VM.Disks[i].Bootindex = nil
			}
			for i := range vm.Spec.BlockDeviceRefs {
				vm.Spec.BlockDeviceRefs[i].BootOrder = nil
			}
		}
		before := vm.DeepCopy()
		b := &machineconfig.Beside{}
		become := map[string]string{} // what a reference becomes
		cds := 0
		for i := range vm.Spec.VM.Disks {
			if vm.Spec.VM.Disks[i].Cdrom != nil {
				cds++
			}
		}
		if vm.Spec.HasAnswerCD() {
			cds++
		}
		for _, r := range vm.Spec.BlockDeviceRefs {
			if rapid.Bool().Draw(t, r.Name+" is elsewhere") {
				continue
			}
			source := drawSource(t, b, vm.Namespace, r.Name)
			switch r.Kind {
			case spec.KindDisk:
				d := spec.NewDisk(vm.Namespace, r.Name, resource.MustParse("1Gi"))
				d.Spec.DataSource = source
				b.Disks = append(b.Disks, d)
				if len(r.Name) <= 58 {
					become[r.Kind+" "+r.Name] = r.Name + "-disk"
				}
			case spec.KindImage:
				if source == nil {
					source = &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: cdURL}}
				}
				b.Images = append(b.Images, spec.NewImage(vm.Namespace, r.Name, resource.MustParse("1Gi"), *source))
				isCD := source.HTTP != nil && source.HTTP.URL == cdURL || source.ObjectRef != nil && source.ObjectRef.Kind == spec.KindImage
				if isCD && cds < limits.MaxCDs {
					cds++
					become[r.Kind+" "+r.Name] = cdURL
				}
			}
		}
		own, notes := b.Own(vm)
		if !apiequality.Semantic.DeepEqual(before, vm) {
			t.Fatal("the machine was changed")
		}
		if again, more := b.Own(own); again != own || len(more) > len(notes) {
			t.Fatalf("it becomes another one the second time: %v", more)
		}
		if errs := spec.Validate(own); len(errs) > len(spec.Validate(vm)) {
			t.Fatalf("%v", errs)
		}
		want, tried := bootOrder(vm)
		for i, d := range want {
			if as := become[d]; as != "" {
				want[i] = as
			}
		}
		slices.Sort(want[tried:])
		got, tried := bootOrder(own)
		slices.Sort(got[tried:])
		if !slices.Equal(got, want) {
			t.Fatalf("the boot order is %q, want %q\nfrom %+v\nto %+v", got, want, vm.Spec.BlockDeviceRefs, own.Spec)
		}
		for _, n := range notes {
			if !strings.HasPrefix(n.Field, "spec.blockDeviceRefs[") || n.Message == "" {
				t.Fatalf("%+v", n)
			}
		}
	})
}

// drawSource draws what something is a copy of, that a host can fetch, perhaps by an image.
func drawSource(t *rapid.T, b *machineconfig.Beside, namespace, name string) *spec.VirtualDiskSource {
	http := func(url string) *spec.VirtualDiskSource {
		return &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: url}}
	}
	switch rapid.SampledFrom([]string{"empty", "disk", "cd", "container", "image", "image of the cluster"}).Draw(t, name+" is made of") {
	case "disk":
		return http("https://images.example/debian.qcow2")
	case "cd":
		return http(cdURL)
	case "container":
		return &spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, ContainerImage: &spec.VirtualDiskContainerImage{Image: "quay.example/debian:13", Path: "/disk/a"}}
	case "image":
		b.Images = append(b.Images, spec.NewImage(namespace, "of-"+name, resource.MustParse("1Gi"), *http(cdURL)))
		return &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: "of-" + name}}
	case "image of the cluster":
		b.ClusterImages = append(b.ClusterImages, spec.NewClusterImage("of-"+name, resource.MustParse("1Gi"), *http("http://images.example/a.img")))
		return &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindClusterImage, Name: "of-" + name}}
	}
	return nil
}

// bootOrder lists what a machine's firmware tries, in that order, by the names of disks,
// the images of drives, and kinds and names of references. The first of them it tries; where
// the numbers have been used up there are others, whose order means nothing.
func bootOrder(vm *spec.VirtualMachine) (names []string, tried int) {
	type device struct {
		name  string
		index *int32
	}
	var all []device
	given := false
	for _, d := range machineconfig.Disks(vm) {
		name := d.Name
		switch {
		case d.Ref != nil:
			name = d.Ref.Kind + " " + d.Ref.Name
		case d.IsCD():
			name = d.Entry.Cdrom.Image
		}
		all, given = append(all, device{name, d.Entry.Bootindex}), given || d.Entry.Bootindex != nil
	}
	if given {
		slices.SortStableFunc(all, func(a, b device) int {
			switch {
			case a.index == nil || b.index == nil:
				return cmp.Compare(fmt.Sprint(a.index == nil), fmt.Sprint(b.index == nil))
			}
			return cmp.Compare(*a.index, *b.index)
		})
	}
	for _, d := range all {
		names = append(names, d.name)
		if !given || d.index != nil {
			tried++
		}
	}
	return names, tried
}

// What a host cannot make or has no name for is left as it is, and told.
func TestOwnDisksThatAreLeft(t *testing.T) {
	ref := func(kind, name string) *spec.VirtualDiskSource {
		return &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: kind, Name: name}}
	}
	http := &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: "https://images.example/a.qcow2"}}
	size := resource.MustParse("1Gi")
	long := strings.Repeat("a", 60)
	beside := func(name string, source *spec.VirtualDiskSource) *machineconfig.Beside {
		d := spec.NewDisk("lab", name, size)
		d.Spec.DataSource = source
		return &machineconfig.Beside{Disks: []*spec.VirtualDisk{d}}
	}
	image := beside("other", nil)
	image.Images = []*spec.VirtualImage{spec.NewImage("lab", "data", size, *http)}
	for _, c := range []struct {
		kind, name string
		beside     *machineconfig.Beside
		want       string
	}{
		{spec.KindDisk, "data", beside("other", nil), ""},
		{spec.KindDisk, "data", &machineconfig.Beside{Disks: []*spec.VirtualDisk{spec.NewDisk("", "data", size)}}, ""},
		{spec.KindDisk, "data", beside("data", ref(spec.KindImage, "gone")), "VirtualDisk data cannot be made here: VirtualImage gone is not among the files"},
		{spec.KindDisk, "data", beside("data", &spec.VirtualDiskSource{Type: "Upload"}), "VirtualDisk data cannot be made here: it is not of a server or a registry"},
		{spec.KindDisk, "system", beside("system", nil), "the machine has another disk system"},
		{spec.KindDisk, long, beside(long, nil), "the name of VirtualDisk " + long + " is too long for a disk of one host"},
		{spec.KindImage, "data", image, "VirtualImage data cannot be had here: only the image of a CD (….iso) that a server of http or https has is read from there. Get the file (vmop-cli image pull) and say where it is"},
	} {
		vm := spec.NewVirtualMachine("lab", "web")
		vm.Spec.VM.Disks = []spec.Disk{{VolumeClaimTemplate: &spec.VolumeClaimTemplate{Metadata: spec.EmbeddedObjectMeta{Name: "system"}}}}
		vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: c.kind, Name: c.name}}
		own, notes := c.beside.Own(vm)
		var got string
		for _, n := range notes {
			got += n.Message
		}
		if own != vm || got != c.want {
			t.Errorf("%s %s: %q, want %q; %+v", c.kind, c.name, got, c.want, own.Spec.VM.Disks)
		}
	}
}

// What is attached to a machine of a cluster is a disk of it from the start, once.
func TestOwnAttachments(t *testing.T) {
	vm := spec.NewVirtualMachine("", "web")
	vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: spec.KindDisk, Name: "system"}}
	size := resource.MustParse("1Gi")
	attachment := func(namespace, name, machine string, kind spec.AttachedBlockDeviceKind, of string) *spec.VirtualMachineBlockDeviceAttachment {
		return spec.NewAttachment(namespace, name, machine, spec.AttachedBlockDevice{Kind: kind, Name: of})
	}
	loop := spec.NewDisk("default", "loop", size)
	loop.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "loop"}}
	b := &machineconfig.Beside{
		Disks: []*spec.VirtualDisk{spec.NewDisk("default", "system", size), spec.NewDisk("default", "data.1", size), loop},
		Attachments: []*spec.VirtualMachineBlockDeviceAttachment{
			attachment("default", "a", "web", spec.AttachedDisk, "data.1"), attachment("", "twice", "web", spec.AttachedDisk, "system"),
			attachment("", "b", "web", spec.AttachedClaim, "claim"), attachment("", "c", "web", spec.AttachedDisk, "gone"),
			attachment("", "d", "other", spec.AttachedDisk, "system"), attachment("lab", "e", "web", spec.AttachedDisk, "system"),
			attachment("", "f", "web", spec.AttachedDisk, "loop"),
		},
	}
	own, notes := b.Own(vm)
	var names, told []string
	for i := range own.Spec.VM.Disks {
		names = append(names, spec.DiskName(own.Spec.VM.Disks, i))
	}
	for _, n := range notes {
		told = append(told, n.Message)
	}
	if want := []string{"system-disk", "data-1-disk"}; !slices.Equal(names, want) || own.Spec.BlockDeviceRefs != nil {
		t.Errorf("disks %q, want %q; %+v", names, want, own.Spec.BlockDeviceRefs)
	}
	want := []string{
		"VirtualMachineBlockDeviceAttachment a: the machine has the disk from its start on",
		"the machine has another disk system", "VirtualMachineBlockDeviceAttachment twice is left out",
		"VirtualMachineBlockDeviceAttachment b attaches a PersistentVolumeClaim, which exists in a cluster only, and is left out",
		"VirtualMachineBlockDeviceAttachment c is left out: VirtualDisk gone is not among the files",
	}
	if !slices.Equal(told[:min(len(told), len(want))], want) || !slices.Contains(told, "VirtualDisk loop cannot be made here: what it is a copy of is one of itself") {
		t.Errorf("told %q, want %q", told, want)
	}
	if same, _ := (*machineconfig.Beside)(nil).Own(vm); same != vm {
		t.Error("nothing beside it, and another machine")
	}
}
