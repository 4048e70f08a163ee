package deckhouse

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

const copySuffix = "-cvi"

// blockDevices translates references to disks and images, whose order is the boot order in both
// systems. A reference to an image of all namespaces becomes one to its copy, see
// [TranslateClusterImageCopies].
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

// TranslateClusterImageCopies returns, without duplicates, an image in the machine's namespace for
// each image of all namespaces that it refers to: here, a volume is only used in its own namespace.
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

// copyOfClusterImage returns an image of a namespace with the content of one of the cluster. Its
// size is from the status of that, if it is in all.
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

// companion returns the object that a machine refers to, if it is in all. It is translated on its
// own, with notes on what is not read of it.
func (m *machine) companion(kind, name string) (*tree.Node, error) {
	return lookUp(m.all, kind, m.vm.Namespace, name)
}
