package crdtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// Manifests that the documentation or other parts of the repository rely on.
func TestManifestsAreAcceptedAsTheyAre(t *testing.T) {
	var files []string
	for _, pattern := range []string{examples, "../../vmop/spec/testdata/*.yaml", "../../vmop/testdata/vm-operator/manifests/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(filepath.ToSlash(file), func(t *testing.T) {
			client := newClient(t)
			namespace := newNamespace(t, client)
			objects, err := readObjects(file)
			if err != nil || len(objects) == 0 {
				t.Fatalf("%d objects, %v", len(objects), err)
			}
			for _, object := range objects {
				resource, ok := resources[object.GetKind()]
				if !ok {
					t.Fatalf("unknown kind %q", object.GetKind())
				}
				where := dynamic.ResourceInterface(client.Resource(resource))
				if object.GetKind() != spec.KindClass { // which is the cluster's
					object.SetNamespace(namespace)
					where = client.Resource(resource).Namespace(namespace)
				}
				stored, err := where.Create(t.Context(), object, strict)
				if err != nil {
					t.Error(err)
					continue
				}
				switch object.GetKind() {
				case spec.KindVirtualMachine:
					written, err := fromObject[spec.VirtualMachine](object)
					if err != nil {
						t.Fatal(err)
					}
					got, err := fromObject[spec.VirtualMachine](stored)
					if err != nil {
						t.Fatal(err)
					}
					compareMachines(t, written, got)
				case spec.KindVMPool:
					written, err := fromObject[spec.VmPool](object)
					if err != nil {
						t.Fatal(err)
					}
					got, err := fromObject[spec.VmPool](stored)
					if err != nil {
						t.Fatal(err)
					}
					spec.DefaultPool(written)
					if diff := cmp.Diff(written.Spec, got.Spec); diff != "" {
						t.Errorf("-DefaultPool +stored:\n%s", diff)
					}
				}
			}
		})
	}
}

// failer is what *testing.T and *rapid.T have in common here.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// compareMachines checks that what is stored is what was written, completed by
// [spec.Default]. The status of a new object is not taken.
func compareMachines(t failer, written, stored *spec.VirtualMachine) {
	t.Helper()
	want := written.DeepCopy()
	want.Status = spec.VirtualMachineStatus{}
	spec.Default(want)
	compare(t, "labels", want.Labels, stored.Labels)
	compare(t, "annotations", want.Annotations, stored.Annotations)
	gotSpec := stored.Spec.DeepCopy()
	if v := gotSpec.VM.Display.VNC; v != nil && v.Port == nil && !v.UnixSocket {
		v.Port = want.Spec.VM.Display.VNC.Port // the default that the definition does not have
	}
	canonicalCloudInit(t, want.Spec.CloudInit)
	canonicalCloudInit(t, gotSpec.CloudInit)
	compare(t, "spec", want.Spec, *gotSpec)
	compare(t, "status", want.Status, stored.Status)
}

func compare[T any](t failer, what string, want, got T) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		t.Fatalf("%s: -wanted +stored:\n%s", what, cmp.Diff(want, got))
	}
}

func canonicalCloudInit(t failer, c *spec.CloudInit) {
	t.Helper()
	if c != nil {
		canonicalRaw(t, c.UserData)
		canonicalRaw(t, c.NetworkConfig)
	}
}

// canonicalRaw gives equal JSON equal bytes: the API server sorts keys and has
// its own form of numbers.
func canonicalRaw(t failer, raw *runtime.RawExtension) {
	t.Helper()
	if raw == nil {
		return
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw.Raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(canonicalNumbers(tree))
	if err != nil {
		t.Fatal(err)
	}
	raw.Raw = data
}

func canonicalNumbers(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key := range v {
			v[key] = canonicalNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = canonicalNumbers(v[i])
		}
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return "number " + r.RatString()
		}
	}
	return tree
}

// Whatever spec.Validate finds nothing wrong with, the API server takes; it
// stores what spec.Default gives, and hands it out as it was written.
func TestValidMachinesAreAcceptedAndRoundTrip(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	vms := client.Resource(machines).Namespace(namespace)
	made := 0
	rapid.Check(t, func(rt *rapid.T) {
		vm := spectest.VirtualMachine().Draw(rt, "vm")
		vm.Namespace = namespace
		made++
		vm.Name = fmt.Sprintf("%.20s-%d", "m"+vm.Name, made) // shrinking draws one name twice
		object, err := toObject(vm)
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := vms.Create(t.Context(), object, strict); err != nil {
			rt.Fatal(err)
		}
		stored, err := vms.Get(t.Context(), vm.Name, metav1.GetOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		got, err := fromObject[spec.VirtualMachine](stored)
		if err != nil {
			rt.Fatal(err)
		}
		compareMachines(rt, vm, got)

		// The status goes its own way.
		got.Status = *vm.Status.DeepCopy()
		if object, err = toObject(got); err != nil {
			rt.Fatal(err)
		}
		if stored, err = vms.UpdateStatus(t.Context(), object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			rt.Fatal(err)
		}
		if got, err = fromObject[spec.VirtualMachine](stored); err != nil {
			rt.Fatal(err)
		}
		spec.Default(vm)
		canonicalStatus(rt, &vm.Status)
		canonicalStatus(rt, &got.Status)
		compare(rt, "status", vm.Status, got.Status)
		if got.Generation != 1 {
			rt.Fatalf("a status made generation %d", got.Generation)
		}
		if err := vms.Delete(t.Context(), vm.Name, metav1.DeleteOptions{}); err != nil {
			rt.Fatal(err)
		}
	})
}

// Of a machine whose manifest names no image nothing is said, as the operator's settings
// give it one: VM-Operator's definition had its own project's image there.
func TestNoImageIsTheDefault(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	stored, err := client.Resource(machines).Namespace(namespace).Create(t.Context(), machine(namespace, "plain", map[string]any{
		"spec": map[string]any{"vm": map[string]any{"maximumCpus": int64(1)}},
	}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if image, found, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", "image"); found {
		t.Errorf("the definition gives a machine the image %v", image)
	}
}

func canonicalStatus(t failer, s *spec.VirtualMachineStatus) {
	t.Helper()
	canonicalRaw(t, s.OSInfo)
	for i := range s.RestartAwaitingChanges {
		canonicalRaw(t, s.RestartAwaitingChanges[i].CurrentValue)
		canonicalRaw(t, s.RestartAwaitingChanges[i].DesiredValue)
	}
}

func TestValidPoolsAreAcceptedAndRoundTrip(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	pools := client.Resource(resources[spec.KindVMPool]).Namespace(namespace)
	made := 0
	rapid.Check(t, func(rt *rapid.T) {
		pool := spectest.Pool().Draw(rt, "pool")
		pool.Namespace = namespace
		made++
		pool.Name = fmt.Sprintf("%.20s-%d", "p"+pool.Name, made)
		object, err := toObject(pool)
		if err != nil {
			rt.Fatal(err)
		}
		stored, err := pools.Create(t.Context(), object, strict)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := fromObject[spec.VmPool](stored)
		if err != nil {
			rt.Fatal(err)
		}
		spec.DefaultPool(pool)
		compare(rt, "spec", pool.Spec, got.Spec)
	})
}
