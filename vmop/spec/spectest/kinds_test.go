package spectest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/kindtest"
	"github.com/vmop/sdk/vmop/spec"
)

// ofEachKind checks a property of the objects of each kind.
func ofEachKind(t *testing.T, property func(*rapid.T, spec.Kind, spec.TypedObject)) {
	for _, k := range kindtest.Kinds(t) {
		t.Run(k.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { property(t, k.Kind, k.Draw.Draw(t, k.Name)) })
		})
	}
}

// What is drawn is valid, as it is and with its defaults, and nobody changes it by
// looking.
func TestWhatIsDrawnIsValid(t *testing.T) {
	ofEachKind(t, func(t *rapid.T, k spec.Kind, object spec.TypedObject) {
		before := object.DeepCopyObject()
		if errs := k.Validate(object); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if !cmp.Equal(before, any(object)) {
			t.Fatalf("Validate changed its argument: %s", cmp.Diff(before, any(object)))
		}
		k.Default(object)
		if errs := k.Validate(object); len(errs) > 0 {
			t.Fatalf("with its defaults: %v", errs.ToAggregate())
		}
		once := object.DeepCopyObject()
		if k.Default(object); !cmp.Equal(once, any(object)) {
			t.Fatalf("the second Default changed something: %s", cmp.Diff(once, any(object)))
		}
	})
}

// What is drawn comes back from a file as it was written, and from the API server's JSON
// with its status. Load is strict: an unknown field would be an error.
func TestWhatIsDrawnComesBack(t *testing.T) {
	ofEachKind(t, func(t *rapid.T, k spec.Kind, object spec.TypedObject) {
		stored, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := loadOne(t, "stored.json", stored); !apiequality.Semantic.DeepEqual(object, got) {
			t.Fatalf("JSON came back different: %s\n%s", cmp.Diff(object, got), stored)
		}
		if k.Name == spec.KindVirtualMachine {
			return // the order of what is in documents of cloud-init is another one
		}
		before := object.DeepCopyObject()
		manifest, err := spec.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(before, any(object)) {
			t.Fatalf("Marshal changed its argument: %s", cmp.Diff(before, any(object)))
		}
		// A manifest has no status: what the JSON of the object has without it comes back.
		var tree map[string]json.RawMessage
		if err := json.Unmarshal(stored, &tree); err != nil {
			t.Fatal(err)
		}
		delete(tree, "status")
		if stored, err = json.Marshal(tree); err != nil {
			t.Fatal(err)
		}
		want, got := loadOne(t, "stored.json", stored), loadOne(t, "manifest.yaml", manifest)
		if !apiequality.Semantic.DeepEqual(want, got) {
			t.Fatalf("the manifest came back different: %s\n%s", cmp.Diff(want, got), manifest)
		}
	})
}

func loadOne(t *rapid.T, name string, data []byte) spec.TypedObject {
	objects, err := spec.Load(name, data, spec.Options{Validate: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	// Of user data whose first line is awkward there is a warning, in machines.
	if len(objects) != 1 || len(objects[0].Warnings) > 0 && objects[0].VirtualMachine == nil {
		t.Fatalf("%d objects, warnings of the first %v\n%s", len(objects), objects[0].Warnings, data)
	}
	return objects[0].Typed
}
