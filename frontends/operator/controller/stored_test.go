package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
)

// What is kept of a machine is the machine, but for what nobody looks at; also
// one that the types cannot hold says the same of what is wrong with it.
func TestStoredMachineIsTheMachine(t *testing.T) {
	g := grow(t, 7, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	sample := g.objects(t, spec.KindVirtualMachine)[0]
	rapid.Check(t, func(t *rapid.T) {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(sample); err != nil {
			t.Fatal(err)
		}
		u.SetAnnotations(rapid.MapOf(rapid.SampledFrom([]string{"mine", corev1.LastAppliedConfigAnnotation, names.AnnotationResetRequest}),
			rapid.StringMatching(`[a-z<&"ü]{0,8}`)).Draw(t, "annotations"))
		u.SetLabels(map[string]string{"a": rapid.StringMatching(`[a-z]{0,3}`).Draw(t, "label")})
		wrong := rapid.SampledFrom([][]string{
			nil, {"spec", "vm", "maximumCpus"}, {"spec", "vm", "disks"}, {"spec", "cloudInit", "metaData"}, {"spec", "unheardOf"},
			{"status", "cpus"}, {"status", "conditions"}, {"status", "phase"}, {"status", "assignment"}, {"status"}, {"spec"},
		}).Draw(t, "field")
		if wrong != nil {
			value := rapid.SampledFrom([]any{"text", int64(1 << 40), true, []any{"x"}, map[string]any{"x": int64(1)}, nil}).Draw(t, "value")
			if err := unstructured.SetNestedField(u.Object, value, wrong...); err != nil {
				t.Fatal(err)
			}
		}
		data, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var m, again machine
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		want := &spec.VirtualMachine{}
		wantErr := json.Unmarshal(data, want)
		got, err := m.decode()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err != nil {
			if text := fmt.Sprintf("VirtualMachine apps/machine-00007 cannot be understood: %v", wantErr); err.Error() != text {
				t.Errorf("%q, want %q", err, text)
			}
		} else {
			want.ManagedFields = nil
			delete(want.Annotations, corev1.LastAppliedConfigAnnotation)
			if len(want.Annotations) == 0 && len(got.Annotations) == 0 {
				want.Annotations, got.Annotations = nil, nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v\nwant %+v", got, want)
			}
		}
		if m.Name != u.GetName() || m.UID != u.GetUID() || m.ResourceVersion != u.GetResourceVersion() || m.Generation != u.GetGeneration() {
			t.Errorf("metadata %+v", m.ObjectMeta)
		}
		if status, _ := u.Object["status"].(map[string]any); !reflect.DeepEqual(m.status(), status) {
			t.Errorf("status %v, want %v", m.status(), status)
		}
		if bytes.Contains(m.data.text(), []byte("managedFields")) || bytes.Contains(m.data.text(), []byte(corev1.LastAppliedConfigAnnotation)) {
			t.Errorf("kept: %s", m.data.text())
		}
		err = json.Unmarshal(m.data.text(), &again)
		again.authors = m.authors // what is kept does not say who wrote it
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%v: kept once %+v, twice %+v", err, m, again)
		}
	})
}

// assign lets the machines of an API server be assigned from pools.
func assign(t *testing.T, api *fakeAPI, pools ...string) {
	t.Helper()
	for i, pool := range pools {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(api.objects[spec.KindVirtualMachine][i]); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedStringMap(u.Object, map[string]string{"pool": pool, "user": "ann", "lastUsed": "2020-01-01T00:00:00Z"}, "status", "assignment"); err != nil {
			t.Fatal(err)
		}
		u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: "desks", Operation: metav1.ManagedFieldsOperationApply, APIVersion: u.GetAPIVersion(), Subresource: "status",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:assignment":{"f:pool":{},"f:user":{},"f:lastUsed":{}}}}`),
		}))
		data, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		api.objects[spec.KindVirtualMachine][i] = data
	}
}

// An assignment that cannot be changed does not hold up the others.
func TestARefusedAssignmentHoldsUpNoOther(t *testing.T) {
	api := newFakeAPI(t, 3)
	assign(t, api, "gone", "gone", "gone")
	look := runAgainst(t, api)
	look("the API server is asked for all of them", func(written func(parts ...string) bool) bool {
		return written("machine-00000/status", `"assignment":null`) && written("machine-00001/status", `"assignment":null`) &&
			written("machine-00002/status", `"assignment":null`)
	})
}

// runAgainst runs an operator. What it returns waits until its writes are as they
// should be.
func runAgainst(t *testing.T, api *fakeAPI) (until func(what string, is func(written func(parts ...string) bool) bool)) {
	t.Helper()
	m, err := New(&rest.Config{Host: api.URL, QPS: -1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return func(what string, is func(written func(parts ...string) bool) bool) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		late := time.NewTimer(time.Minute)
		defer late.Stop()
		for !is(api.wrote) {
			select {
			case <-tick.C:
			case <-late.C:
				t.Fatalf("%s: %q", what, api.written())
			}
		}
	}
}

// wrote reports whether one of the writes has all the parts.
func (f *fakeAPI) wrote(parts ...string) bool {
	return slices.ContainsFunc(f.written(), func(w string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(w, p) })
	})
}

// A pool that cannot be understood is told of and keeps its assignments, and does
// not hold up the others of its namespace.
func TestUnreadablePool(t *testing.T) {
	api := newFakeAPI(t, 3)
	assign(t, api, "gone", "broken", "well")
	for name, retention := range map[string]string{"broken": "5", "well": `"PT1h"`} {
		api.objects[spec.KindVMPool] = append(api.objects[spec.KindVMPool], fmt.Appendf(nil,
			`{"apiVersion":"vmoperator.jdrupes.org/v1","kind":"VmPool","metadata":{"name":%q,"namespace":"apps","uid":"uid-%s","resourceVersion":"7"},"spec":{"retention":%s,"permissions":[]}}`,
			name, name, retention))
	}
	runAgainst(t, api)("the broken pool is told of", func(written func(parts ...string) bool) bool {
		return written("machine-00000/status", `"assignment":null`) &&
			written("events", "VmPool", "uid-broken", "retention", spec.ReasonInvalidSpecification)
	})
	for _, other := range []string{"machine-00001", "machine-00002"} {
		if api.wrote(other+"/status", "assignment") {
			t.Errorf("the assignment of %s is changed: %q", other, api.written())
		}
	}
	if api.wrote("events", "uid-well", spec.ReasonInvalidSpecification) {
		t.Errorf("written: %q", api.written())
	}
}

// grownMachine is a machine as an API server sends it.
func grownMachine(t testing.TB) []byte {
	t.Helper()
	return grow(t, 7, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)).objects(t, spec.KindVirtualMachine)[0]
}

// BenchmarkReadMachine is what each machine costs that is listed or watched. An operator
// that starts reads them all.
func BenchmarkReadMachine(b *testing.B) {
	data := grownMachine(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := json.Unmarshal(data, &machine{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Most of what an API server sends is who wrote what, of which hardly anything is looked
// at.
func TestToReadAMachineTakesLittle(t *testing.T) {
	data := grownMachine(t)
	if n := testing.AllocsPerRun(10, func() { _ = json.Unmarshal(data, &machine{}) }); n > 560 { // 517 without the race detector
		t.Errorf("%v allocations", n)
	}
}
