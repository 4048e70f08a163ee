package output

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// APIVersion is the API version of the kinds that no API has.
const APIVersion = "cli." + names.Group + "/v1"

// Kind is a kind of object that vmop-cli prints.
type Kind struct {
	APIVersion, Kind string
	// Type is the Go type of its objects.
	Type reflect.Type
}

// Kinds returns all kinds but List, sorted by their names.
func Kinds() []Kind {
	machines := spec.GroupVersion().String()
	return []Kind{
		{APIVersion, "CachedImage", reflect.TypeFor[CachedImage]()},
		{APIVersion, "Changes", reflect.TypeFor[Changes]()},
		{APIVersion, "Disk", reflect.TypeFor[Disk]()},
		{APIVersion, "DiskImage", reflect.TypeFor[DiskImage]()},
		{APIVersion, "DiskResult", reflect.TypeFor[DiskResult]()},
		{APIVersion, "DisplayConnection", reflect.TypeFor[DisplayConnection]()},
		{APIVersion, "DisplayProxy", reflect.TypeFor[DisplayProxy]()},
		{"v1", "Event", reflect.TypeFor[corev1.Event]()},
		{APIVersion, "GuestInfo", reflect.TypeFor[GuestInfo]()},
		{APIVersion, "HostFinding", reflect.TypeFor[HostFinding]()},
		{APIVersion, "Leftover", reflect.TypeFor[Leftover]()},
		{APIVersion, "ManifestFinding", reflect.TypeFor[ManifestFinding]()},
		{APIVersion, "Metrics", reflect.TypeFor[Metrics]()},
		{APIVersion, "Snapshot", reflect.TypeFor[Snapshot]()},
		{APIVersion, "TakeoverFinding", reflect.TypeFor[TakeoverFinding]()},
		{APIVersion, "Version", reflect.TypeFor[Version]()},
		{machines, names.KindDisk, reflect.TypeFor[VirtualDisk]()},
		{machines, names.KindVirtualMachine, reflect.TypeFor[Machine]()},
		{machines, names.KindOperation, reflect.TypeFor[Operation]()},
	}
}
