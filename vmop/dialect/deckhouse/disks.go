package deckhouse

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// copySuffix ends the name of an image of a namespace that is made of one of the cluster.
const copySuffix = "-cvi"

// blockDevices translates references to disks and images of the cluster, whose order is
// the boot order here and there. In place of an image of all namespaces a machine refers
// to the one that [TranslateClusterImageCopies] makes of it.
func (m *machine) blockDevices() error {
	for _, ref := range m.root.Get("spec", "blockDeviceRefs").List() {
		r := spec.BlockDeviceRef{Kind: ref.Get("kind").String(), Name: ref.Get("name").String()}
		switch r.Kind {
		case kindDisk, kindImage:
		case kindClusterImage:
			image, err := copyOfClusterImage(m.all, m.vm.Namespace, r.Name)
			if err != nil {
				return err
			}
			ref.Remark("refers to the VirtualImage %s, which is made of the ClusterVirtualImage %s, and has %s", image.Name, r.Name, image.Spec.PersistentVolumeClaim.Size.String())
			r.Kind, r.Name = kindImage, image.Name
		default:
			ref.Note("a %s has no counterpart; the disk is left out", r.Kind)
			continue
		}
		if order, ok := ref.Get("bootOrder").Int(); ok {
			r.BootOrder = &order
		}
		m.vm.Spec.BlockDeviceRefs = append(m.vm.Spec.BlockDeviceRefs, r)
	}
	return nil
}

// TranslateClusterImageCopies returns the images of its namespace that a machine refers to
// in our terms where it refers to images of all namespaces in Deckhouse's: a volume is used
// in its own namespace only. Each is once among them.
func TranslateClusterImageCopies(o *spec.Object, all []spec.Object) ([]*spec.VirtualImage, error) {
	root, err := tree.New(o)
	if err != nil {
		return nil, err
	}
	namespace := root.Get("metadata", "namespace").String()
	var images []*spec.VirtualImage
	for i, ref := range root.Get("spec", "blockDeviceRefs").List() {
		if ref.Get("kind").String() != kindClusterImage {
			continue
		}
		image, err := copyOfClusterImage(all, namespace, ref.Get("name").String())
		if err != nil {
			return nil, err
		}
		at := fmt.Sprintf("spec.blockDeviceRefs[%d].name", i)
		if wrong := spec.ValidateImage(image); len(wrong) > 0 {
			return nil, &tree.FieldError{Path: at, Message: fmt.Sprintf("no VirtualImage %s can be made of it: %s: %s", image.Name, wrong[0].Field, wrong[0].ErrorBody())}
		}
		if other, err := lookUp(all, kindImage, namespace, image.Name); err != nil || other != nil {
			return nil, &tree.FieldError{Path: at, Message: fmt.Sprintf("becomes the VirtualImage %s, and another one has that name; rename that", image.Name)}
		}
		if !slices.ContainsFunc(images, func(i *spec.VirtualImage) bool { return i.Name == image.Name }) {
			images = append(images, image)
		}
	}
	return images, nil
}

// copyOfClusterImage is an image of a namespace that is made of one of the cluster. It has
// the room that the status of that says, where it is among all.
func copyOfClusterImage(all []spec.Object, namespace, name string) (*spec.VirtualImage, error) {
	of, err := lookUp(all, kindClusterImage, "", name)
	if err != nil {
		return nil, err
	}
	size := *resource.NewQuantity(usualSize, resource.BinarySI)
	if stored, ok := of.Get("status", "size", "unpackedBytes").Quantity(); ok && stored.Sign() > 0 {
		size = roomFor(stored)
	}
	return spec.NewImage(namespace, name+copySuffix, size, spec.VirtualDiskSource{
		Type:      spec.DiskSourceObjectRef,
		ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindClusterImage, Name: name},
	}), nil
}

// companion returns the object that a machine refers to, if it was given. It is translated
// by itself, which tells what is not read of it.
func (m *machine) companion(kind, name string) (*tree.Node, error) {
	return lookUp(m.all, kind, m.vm.Namespace, name)
}
