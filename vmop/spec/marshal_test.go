package spec_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	goyaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// What a program made is a manifest that loads, with or without its kind.
func TestMarshalledMachinesLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		if rapid.Bool().Draw(t, "without kind") {
			vm.TypeMeta = metav1.TypeMeta{}
		}
		before := vm.DeepCopy()
		data, err := spec.Marshal(vm)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(before, vm) {
			t.Fatalf("Marshal changed its argument: %s", cmp.Diff(before, vm))
		}
		got := loadOne(t, "vm.yaml", data).VirtualMachine
		// Compared as values: the encoder sorts the keys of raw JSON.
		want := vm.DeepCopy()
		want.TypeMeta, want.Status = got.TypeMeta, spec.VirtualMachineStatus{}
		if diff := cmp.Diff(value(t, want), value(t, got)); diff != "" || got.Kind != spec.KindVirtualMachine {
			t.Fatalf("came back different: %s\n%s", diff, data)
		}
	})
}

// value is what a machine says in JSON.
func value(t *rapid.T, vm *spec.VirtualMachine) any {
	var v any
	if err := json.Unmarshal(encode(t, vm), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNewObjectsMarshal(t *testing.T) {
	for _, o := range []runtime.Object{spec.NewVirtualMachine("ns", "one"), spec.NewVmPool("", "all")} {
		data, err := spec.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Load("new.yaml", data, spec.Options{Default: true}); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	for _, o := range []runtime.Object{nil, (*spec.VirtualMachine)(nil), (*spec.VmPool)(nil), &spec.VmPoolList{}} {
		if data, err := spec.Marshal(o); err == nil {
			t.Errorf("%T: %s", o, data)
		}
	}
}

// User data is written as people know it, and is in the manifest as what it says.
func TestDocument(t *testing.T) {
	vm := spec.NewVirtualMachine("", "web")
	user, err := spec.Document("#cloud-config\npackages: [nginx]\nruncmd:\n- echo \"a: b\"\n")
	if err != nil {
		t.Fatal(err)
	}
	vm.Spec.CloudInit = &spec.CloudInit{UserData: user}
	text, err := spec.Marshal(vm)
	if err != nil || !strings.Contains(string(text), "- nginx") || !strings.Contains(string(text), "echo \"a: b\"") {
		t.Errorf("%s, %v", text, err)
	}
	for _, bad := range []string{"", "#!/bin/sh\necho", "- a", "a: [", "a: 1\na: 2"} {
		if got, err := spec.Document(bad); err == nil {
			t.Errorf("%q: %s", bad, got.Raw)
		}
	}
}

// A machine that is written as a literal has no kind, and what the encoders of YAML and
// JSON make of it loads again.
func TestLiteralMachinesLoadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.TypeMeta, vm.Status = metav1.TypeMeta{}, spec.VirtualMachineStatus{}
		before := vm.DeepCopy()
		for name, marshal := range map[string]func(any) ([]byte, error){
			"sigs.k8s.io/yaml": sigsyaml.Marshal, "go.yaml.in/yaml/v3": goyaml.Marshal, "encoding/json": json.Marshal,
		} {
			for form, v := range map[string]any{"pointer": vm, "value": *vm} {
				data, err := marshal(v)
				if err != nil {
					t.Fatalf("%s of a %s: %v", name, form, err)
				}
				if regexp.MustCompile(`(?m)^ *(- )*<<:`).Match(data) {
					continue // the encoders do not quote this key of a document; [spec.Marshal] looks after it
				}
				objects, err := spec.Load("vm.yaml", data, spec.Options{Kind: spec.KindVirtualMachine})
				if err != nil || len(objects) != 1 || objects[0].VirtualMachine == nil {
					t.Fatalf("%s of a %s: %v\n%s", name, form, err, data)
				}
				got := objects[0].VirtualMachine.DeepCopy()
				if got.Kind != spec.KindVirtualMachine {
					t.Fatalf("%s of a %s: kind %q", name, form, got.Kind)
				}
				got.TypeMeta = metav1.TypeMeta{}
				if diff := cmp.Diff(value(t, vm), value(t, got)); diff != "" {
					t.Fatalf("%s of a %s came back different: %s\n%s", name, form, diff, data)
				}
			}
		}
		if !cmp.Equal(before, vm) {
			t.Fatalf("it was changed: %s", cmp.Diff(before, vm))
		}
	})
}

// The kind is assumed only where the document has neither it nor an apiVersion, and
// where the caller has said so.
func TestTheKindIsAssumedOnlyIfTold(t *testing.T) {
	const literal = "metadata: {name: web}\nspec: {vm: {maximumRam: 1Gi}}\n"
	told := spec.Options{Kind: spec.KindVirtualMachine}
	for text, opts := range map[string]spec.Options{
		literal: {}, "kind: VirtualMachine\n" + literal: told, "apiVersion: vmoperator.jdrupes.org/v1\n" + literal: told,
		"kind: \"\"\n" + literal: told, "kind: null\n" + literal: told, "apiVersion: \"\"\n" + literal: told, "- 1\n": told,
	} {
		if objects, err := spec.Load("vm.yaml", []byte(text), opts); err == nil {
			t.Errorf("%q is read as %+v", text, objects)
		}
	}
	objects, err := spec.Load("all.yaml", []byte(literal+"---\napiVersion: v1\nkind: ConfigMap\n---\n---\n"+literal), told)
	if err != nil || len(objects) != 3 || objects[0].VirtualMachine == nil || objects[1].Kind != "ConfigMap" || objects[2].VirtualMachine == nil {
		t.Errorf("%+v, %v", objects, err)
	}
	if _, err := spec.Load("vm.yaml", []byte(literal), spec.Options{Kind: "VirtualMachin"}); err == nil || !strings.Contains(err.Error(), "VirtualMachine") {
		t.Errorf("a kind that there is not: %v", err)
	}
	// Nothing but the object's own names reaches JSON: what embeds a machine keeps its fields.
	data, err := json.Marshal(struct {
		spec.VirtualMachine `json:",inline"`
		Note                string `json:"note"`
	}{Note: "mine"})
	if err != nil || !strings.Contains(string(data), `"note":"mine"`) {
		t.Errorf("%s, %v", data, err)
	}
}

// Each kind has the method for YAML, with its own name.
func TestEveryKindMarshalsToYAML(t *testing.T) {
	for _, k := range spec.Kinds() {
		data, err := goyaml.Marshal(k.New())
		if err != nil || !strings.Contains(string(data), "kind: "+k.Name+"\n") || !strings.Contains(string(data), "apiVersion: "+spec.GroupVersion().String()+"\n") {
			t.Errorf("%s: %v\n%s", k.Name, err, data)
		}
	}
}
