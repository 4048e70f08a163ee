package spectest

import (
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
)

// Objects generates objects of one of [spec.Kinds] by its name, for properties of all of
// them; nil of a kind that there is not.
func Objects(kind string) *rapid.Generator[spec.TypedObject] {
	switch kind {
	case spec.KindVirtualMachine:
		return typed(VirtualMachine())
	case spec.KindVMPool:
		return typed(Pool())
	case spec.KindOperation:
		return typed(Operation())
	case spec.KindClass:
		return typed(Class())
	case spec.KindDisk:
		return typed(Disk())
	case spec.KindImage:
		return typed(Image())
	case spec.KindClusterImage:
		return typed(ClusterImage())
	case spec.KindAttachment:
		return typed(Attachment())
	}
	return nil
}

func typed[P spec.TypedObject](g *rapid.Generator[P]) *rapid.Generator[spec.TypedObject] {
	return rapid.Map(g, func(p P) spec.TypedObject { return p })
}
