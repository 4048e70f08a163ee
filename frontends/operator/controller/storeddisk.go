package controller

import (
	diskkind "github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/spec"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	storedDisk      = kept[spec.VirtualDisk]
	storedDiskList  = keptList[spec.VirtualDisk]
	storedImage     = kept[spec.VirtualImage]
	storedImageList = keptList[spec.VirtualImage]

	storedClusterImage     = kept[spec.ClusterVirtualImage]
	storedClusterImageList = keptList[spec.ClusterVirtualImage]
)

func madeOf(o client.Object) []string {
	s := snapshotOf(o)
	name := ""
	switch {
	case s.Disk != nil:
		name = diskkind.ClusterImageOf(s.Disk.Spec.DataSource)
	case s.Image != nil:
		name = diskkind.ClusterImageOf(&s.Image.Spec.DataSource)
	}
	if name == "" {
		return nil
	}
	return []string{name}
}

// snapshotOf returns a snapshot with only a disk or image; empty if it cannot be decoded.
func snapshotOf(o client.Object) (s diskkind.Snapshot) {
	switch o := o.(type) {
	case *storedDisk:
		if d, err := o.decode(); err == nil {
			s.Disk = d
		}
	case *storedImage:
		if i, err := o.decode(); err == nil {
			s.Image = i
		}
	}
	return s
}
