package controller

import (
	"cmp"
	"fmt"

	"github.com/vmop/sdk/vmop/names"
	diskkind "github.com/vmop/sdk/vmop/reconcile/disk"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// volumeSnapshot reads the volume snapshot that a disk is to be created from. It is read from the
// API server, while its disk has no claim yet: a cache would wait forever for definitions that a
// cluster may lack.
func (w *look) volumeSnapshot(name string) (*diskkind.VolumeSnapshot, diskkind.SnapshotAccess) {
	stored, access := w.uncached(names.KindVolumeSnapshot, types.NamespacedName{Namespace: w.namespace, Name: name})
	if stored == nil {
		return nil, access
	}
	text := func(of *unstructured.Unstructured, path ...string) string {
		s, _, _ := unstructured.NestedString(of.Object, path...)
		return s
	}
	s := &diskkind.VolumeSnapshot{UID: stored.GetUID(), Deleted: stored.GetDeletionTimestamp() != nil, Error: text(stored, "status", "error", "message")}
	s.Ready, _, _ = unstructured.NestedBool(stored.Object, "status", "readyToUse")
	if q, err := resource.ParseQuantity(cmp.Or(text(stored, "status", "restoreSize"), "0")); err == nil && q.Sign() > 0 {
		s.Size = &q
	}
	bound := text(stored, "status", "boundVolumeSnapshotContentName")
	if bound == "" {
		return s, ""
	}
	content, access := w.uncached(names.KindVolumeSnapshotContent, types.NamespacedName{Name: bound})
	// Each must refer to the other, or else a user could name any content.
	if content == nil || text(content, "spec", "volumeSnapshotRef", "uid") != string(s.UID) {
		return s, access
	}
	s.Driver, s.Mode = text(content, "spec", "driver"), corev1.PersistentVolumeMode(text(content, "spec", "sourceVolumeMode"))
	return s, ""
}

// uncached reads an object of the snapshot API group from the API server; nil if there is none, or
// it cannot be known.
func (w *look) uncached(kind string, key types.NamespacedName) (*unstructured.Unstructured, diskkind.SnapshotAccess) {
	if w.err != nil || !mayExist(key.Name) {
		return nil, ""
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: names.SnapshotGroup, Version: names.SnapshotVersion, Kind: kind})
	switch err := w.live.Get(w.ctx, key, o); {
	case err == nil:
		return o, ""
	case meta.IsNoMatchError(err):
		return nil, diskkind.SnapshotsUndefined
	case apierrors.IsForbidden(err):
		return nil, diskkind.SnapshotsForbidden
	case !apierrors.IsNotFound(err):
		w.err = fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	return nil, ""
}
