package controller

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	diskkind "github.com/vmop/sdk/vmop/reconcile/disk"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snapshotReader has objects by their kinds, or errors.
type snapshotReader struct {
	client.Reader
	has map[string]any
}

func (r snapshotReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o, is := into.(*unstructured.Unstructured)
	if !is || o.GroupVersionKind().Group != names.SnapshotGroup {
		return errors.New("nobody asks for that")
	}
	switch has := r.has[o.GetKind()].(type) {
	case error:
		return has
	case map[string]any:
		if name, _, _ := unstructured.NestedString(has, "metadata", "name"); name == key.Name {
			o.Object = has
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: names.SnapshotGroup}, key.Name)
}

// What is known of a snapshot is what it and its content say of each other; a cluster
// without snapshots is no error.
func TestVolumeSnapshots(t *testing.T) {
	type object = map[string]any
	snapshot := func(status object) object {
		return object{"metadata": object{"namespace": "lab", "name": "nightly", "uid": "s1"}, "status": status}
	}
	content := func(uid string) object {
		return object{"metadata": object{"name": "snapcontent-s1"}, "spec": object{"driver": "csi.test", "sourceVolumeMode": "Block", "volumeSnapshotRef": object{"uid": uid}}}
	}
	ready := object{"readyToUse": true, "restoreSize": "1Gi", "boundVolumeSnapshotContentName": "snapcontent-s1"}
	known := diskkind.VolumeSnapshot{UID: "s1", Ready: true, Size: new(resource.MustParse("1Gi")), Driver: "csi.test", Mode: corev1.PersistentVolumeBlock}
	unbound := diskkind.VolumeSnapshot{UID: "s1", Ready: true, Size: known.Size}
	none := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: names.SnapshotGroup}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: names.SnapshotGroup}, "nightly", errors.New("no"))
	for name, c := range map[string]struct {
		snapshot, content any
		want              *diskkind.VolumeSnapshot
		access            diskkind.SnapshotAccess
		fails             bool
	}{
		"a cluster without them":   {snapshot: none, access: diskkind.SnapshotsUndefined},
		"no right to read them":    {snapshot: forbidden, access: diskkind.SnapshotsForbidden},
		"the server is away":       {snapshot: errors.New("connection refused"), fails: true},
		"none":                     {},
		"ready":                    {snapshot: snapshot(ready), content: content("s1"), want: &known},
		"no right to its content":  {snapshot: snapshot(ready), content: forbidden, want: &unbound, access: diskkind.SnapshotsForbidden},
		"no content":               {snapshot: snapshot(ready), want: &unbound},
		"the content of another":   {snapshot: snapshot(ready), content: content("s2"), want: &unbound},
		"no status":                {snapshot: snapshot(nil), want: &diskkind.VolumeSnapshot{UID: "s1"}},
		"a status of nonsense":     {snapshot: snapshot(object{"readyToUse": "yes", "restoreSize": int64(3), "error": "x"}), want: &diskkind.VolumeSnapshot{UID: "s1"}},
		"a size of nothing":        {snapshot: snapshot(object{"restoreSize": "0"}), want: &diskkind.VolumeSnapshot{UID: "s1"}},
		"what its driver says":     {snapshot: snapshot(object{"error": object{"message": "no room"}}), want: &diskkind.VolumeSnapshot{UID: "s1", Error: "no room"}},
		"its content is not found": {snapshot: snapshot(ready), content: apierrors.NewNotFound(schema.GroupResource{}, "a"), want: &unbound},
	} {
		t.Run(name, func(t *testing.T) {
			w := &look{reader: &reader{live: snapshotReader{has: map[string]any{names.KindVolumeSnapshot: c.snapshot, names.KindVolumeSnapshotContent: c.content}}}, ctx: t.Context(), namespace: "lab"}
			got, access := w.volumeSnapshot("nightly")
			if !reflect.DeepEqual(got, c.want) || access != c.access || (w.err != nil) != c.fails {
				t.Errorf("%+v, %q, %v", got, access, w.err)
			}
		})
	}
}

// client-go refuses names that are no segment of a path before it asks the API server: no object has
// them.
func TestNamesThatNoObjectHas(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: names.SnapshotGroup, Version: names.SnapshotVersion, Kind: names.KindVolumeSnapshot}, meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind(kindSecret), meta.RESTScopeNamespace)
	live, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b", "%", "a%2fb", ".", "..", "/", ""} {
		w := machineLook{&look{reader: &reader{live: live}, ctx: t.Context(), namespace: "lab"}}
		if s, access := w.volumeSnapshot(name); s != nil || access != "" || w.err != nil {
			t.Errorf("VolumeSnapshot %q: %+v, %q, %v", name, s, access, w.err)
		}
		w.err = nil
		if s := w.certificate(name); s != nil || w.err != nil {
			t.Errorf("Secret %q: %+v, %v", name, s, w.err)
		}
	}
	// Others are asked for.
	w := machineLook{&look{reader: &reader{live: live}, ctx: t.Context(), namespace: "lab"}}
	if w.certificate("a.b"); w.err == nil {
		t.Error("nobody was asked")
	}
}
