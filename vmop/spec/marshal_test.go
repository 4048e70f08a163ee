package spec_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

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
