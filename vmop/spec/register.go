package spec

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmop/sdk/vmop/names"
)

// Names of the API that appear in manifests, URLs and owner references.
const (
	// GroupName is the API group of all resources of this package.
	GroupName = names.Group
	// Version is the only version of the group.
	Version = names.Version
	// KindVirtualMachine is the kind of a [VirtualMachine].
	KindVirtualMachine = names.KindVirtualMachine
	// KindVMPool is the kind of a [VmPool].
	KindVMPool = names.KindVMPool
	// KindOperation is the kind of a [VirtualMachineOperation].
	KindOperation = names.KindOperation
	// KindClass is the kind of a [VirtualMachineClass].
	KindClass = names.KindClass
	// KindDisk is the kind of a [VirtualDisk].
	KindDisk = names.KindDisk
	// KindImage is the kind of a [VirtualImage].
	KindImage = names.KindImage
	// KindClusterImage is the kind of a [ClusterVirtualImage].
	KindClusterImage = names.KindClusterImage
	// KindVolumeSnapshot is the kind of a snapshot of a volume, which is none of this group.
	KindVolumeSnapshot = names.KindVolumeSnapshot
	// KindAttachment is the kind of a [VirtualMachineBlockDeviceAttachment].
	KindAttachment = names.KindAttachment
	// ResourceVirtualMachines is the plural name of [VirtualMachine] in URLs.
	ResourceVirtualMachines = names.ResourceVirtualMachines
	// ResourceVMPools is the plural name of [VmPool] in URLs.
	ResourceVMPools = names.ResourceVMPools
	// ResourceOperations is the plural name of [VirtualMachineOperation] in URLs.
	ResourceOperations = names.ResourceOperations
	// ResourceClasses is the plural name of [VirtualMachineClass] in URLs.
	ResourceClasses = names.ResourceClasses
	// ResourceDisks is the plural name of [VirtualDisk] in URLs.
	ResourceDisks = names.ResourceDisks
	// ResourceImages is the plural name of [VirtualImage] in URLs.
	ResourceImages = names.ResourceImages
	// ResourceClusterImages is the plural name of [ClusterVirtualImage] in URLs.
	ResourceClusterImages = names.ResourceClusterImages
	// ResourceAttachments is the plural name of [VirtualMachineBlockDeviceAttachment] in
	// URLs.
	ResourceAttachments = names.ResourceAttachments
)

// GroupVersion returns the group and version of the resources of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// Resource returns the group and the given plural name, for errors and
// dynamic clients.
func Resource(plural string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: plural}
}
