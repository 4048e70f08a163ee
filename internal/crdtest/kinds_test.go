package crdtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/kindtest"
	"github.com/vmop/sdk/vmop/spec"
)

// place is where the objects of a kind are, in a namespace of the test or in none.
func place(client dynamic.Interface, k spec.Kind, namespace string) dynamic.ResourceInterface {
	if k.ClusterScoped {
		return client.Resource(resources[k.Name])
	}
	return client.Resource(resources[k.Name]).Namespace(namespace)
}

// Whatever the library finds nothing wrong with the API server takes, and hands it out as
// it was written, with its defaults; its status is stored as it is.
func TestWhatIsDrawnIsStored(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	for _, k := range kindtest.Kinds(t) {
		if k.Name == spec.KindVirtualMachine || k.Name == spec.KindVMPool || k.Name == spec.KindClass {
			continue // which have tests of their own
		}
		where := place(client, k.Kind, namespace)
		t.Run(k.Name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				written := k.Draw.Draw(rt, k.Name)
				if !k.ClusterScoped {
					written.SetNamespace(namespace)
				}
				object, err := toObject(written)
				if err != nil {
					rt.Fatal(err)
				}
				stored, err := where.Create(t.Context(), object, strict)
				if err != nil {
					rt.Fatal(err)
				}
				if status, has := object.Object["status"]; has {
					stored.Object["status"] = status
					if stored, err = where.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
						rt.Fatal(err)
					}
				}
				if err := where.Delete(t.Context(), stored.GetName(), metav1.DeleteOptions{}); err != nil {
					rt.Fatal(err)
				}
				k.Default(written)
				compareObjects(rt, k.Kind, written, stored)
			})
		})
	}
}

// compareObjects compares all but what the API server adds to the metadata.
func compareObjects(rt *rapid.T, k spec.Kind, written spec.TypedObject, stored *unstructured.Unstructured) {
	data, err := stored.MarshalJSON()
	if err != nil {
		rt.Fatal(err)
	}
	got := k.New()
	if err := json.Unmarshal(data, got); err != nil {
		rt.Fatal(err)
	}
	if name := written.GetName(); name != "" && got.GetName() != name || !strings.HasPrefix(got.GetName(), name) {
		rt.Fatalf("the name is %s", got.GetName())
	}
	written.SetName(got.GetName())
	got.SetUID("")
	got.SetResourceVersion("")
	got.SetGeneration(0)
	got.SetCreationTimestamp(metav1.Time{})
	got.SetManagedFields(nil)
	if !equality.Semantic.DeepEqual(written, got) {
		rt.Fatalf("-written +stored:\n%s", cmp.Diff(written, got))
	}
}

// One mistake in what is drawn is refused by the API server, too, or it is said why not.
func TestOneMistakeInWhatIsDrawnIsRefused(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	dryRun := strict
	dryRun.DryRun = []string{metav1.DryRunAll}
	for _, k := range kindtest.Kinds(t) {
		where := place(client, k.Kind, namespace)
		for _, m := range k.Mistakes {
			t.Run(k.Name+"/"+m.What, func(t *testing.T) {
				for seed := range 5 {
					mistaken := k.Draw.Example(seed)
					if !k.ClusterScoped {
						mistaken.SetNamespace(namespace)
					}
					path := m.Make(mistaken)
					object, err := toObject(mistaken)
					if err != nil {
						t.Fatal(err)
					}
					delete(object.Object, "status")
					_, err = where.Create(t.Context(), object, dryRun)
					switch {
					case m.Stored != "" && err != nil:
						t.Fatalf("is said to be taken, since %s: %v", m.Stored, err)
					case m.Stored == "" && err == nil:
						t.Fatalf("nothing is said of %s", path)
					case err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
						t.Fatal(err)
					}
				}
			})
		}
	}
}
