package takeover_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	"github.com/vmop/sdk/vmop/takeover"
)

var update = flag.Bool("update", false, "write the golden file instead of comparing with it")

// read reads the objects of files.
func read(t *testing.T, pattern string) []unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	var out []unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, parse(t, string(data))...)
	}
	return out
}

func parse(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func describe(found []takeover.Finding) []byte {
	var b bytes.Buffer
	last := ""
	for _, f := range found {
		if o := f.Object(); o != last {
			fmt.Fprintln(&b, o)
			last = o
		}
		fmt.Fprintf(&b, "  %-7s %-9s %s: %s\n", f.Urgency, f.Topic, f.Field, f.What)
		if f.Do != "" {
			fmt.Fprintf(&b, "          -> %s\n", f.Do)
		}
	}
	return b.Bytes()
}

// A cluster of VM-Operator, and what there is to know about it.
func TestGolden(t *testing.T) {
	in := takeover.Input{
		Objects:  read(t, "testdata/cluster/*.yaml"),
		Operator: takeover.Configuration{Environment: []string{"VMOP_RUNNER_IMAGE=example.org/vmop-runner:1"}},
		Unseen:   map[string]string{"Node": "nodes is forbidden"},
	}
	got := describe(takeover.Check(in))
	const file = "testdata/cluster.txt"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, got) {
		t.Errorf("run with -update to accept (%v):\n%s", err, cmp.Diff(string(want), string(got)))
	}
}

// drawObjects draws a cluster: what testdata has, in part, with machines and
// pools of any kind.
func drawObjects(t *rapid.T, base []unstructured.Unstructured) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for i := range base {
		if rapid.Bool().Draw(t, "keep "+base[i].GetKind()+" "+base[i].GetName()) {
			out = append(out, base[i])
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "machines") {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.Name, vm.Namespace = fmt.Sprintf("drawn-%d", i), "qemu-vms"
		out = append(out, encode(t, vm, spec.KindVirtualMachine))
	}
	if rapid.Bool().Draw(t, "broken") {
		out = append(out, unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "vmoperator.jdrupes.org/v1", "kind": "VirtualMachine",
			"metadata": map[string]any{"name": "broken", "namespace": "qemu-vms"}, "spec": rapid.SampledFrom([]any{nil, "x", int64(1), map[string]any{}, map[string]any{"vm": []any{}}}).Draw(t, "spec"),
		}})
	}
	return out
}

func encode(t *rapid.T, object any, kind string) unstructured.Unstructured {
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var o unstructured.Unstructured
	if err := yaml.Unmarshal(data, &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetAPIVersion(spec.GroupVersion().String())
	o.SetKind(kind)
	return o
}

// What holds of every check: it changes nothing, does not depend on the order,
// has something about every machine, names only what is there, and says what to
// do where something must be done.
func TestCheck(t *testing.T) {
	base := read(t, "testdata/cluster/*.yaml")
	rapid.Check(t, func(t *rapid.T) {
		in := takeover.Input{Objects: drawObjects(t, base), Operator: takeover.Configuration{
			File:        rapid.SampledFrom([]string{"", "/Operator: {privileged: true}", "/Operator: {takeOverData: true}", "/Operator: {kvmResource: example.org/kvm}", "x: ["}).Draw(t, "config"),
			Environment: rapid.SampledFrom([][]string{nil, {"VMOP_RUNNER_IMAGE=a/b:c"}, {"VMOP_CPU_OVERCOMMIT=many"}}).Draw(t, "environment"),
		}}
		if rapid.Bool().Draw(t, "install") {
			in.Install = drawObjects(t, base)
		}
		before := make([]unstructured.Unstructured, len(in.Objects))
		for i := range in.Objects {
			before[i] = *in.Objects[i].DeepCopy()
		}
		found := takeover.Check(in)
		if !reflect.DeepEqual(before, in.Objects) {
			t.Fatal("the input has changed")
		}
		names := map[string]bool{"cluster": true}
		for _, o := range append(slices.Clone(in.Objects), in.Install...) {
			names[(&takeover.Finding{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}).Object()] = true
			if o.GetNamespace() != "" {
				names["Namespace "+o.GetNamespace()] = true
			}
		}
		about := map[string]bool{}
		for _, f := range found {
			about[f.Object()] = true
			if !names[f.Object()] {
				t.Errorf("%s is not there: %s", f.Object(), f.What)
			}
			if f.Urgency == takeover.Before && f.Do == "" || f.What == "" || f.Topic == "" || strings.ContainsAny(f.What+f.Do, "\n") {
				t.Errorf("%+v", f)
			}
		}
		for _, o := range in.Objects {
			if o.GetKind() == spec.KindVirtualMachine && !about[spec.KindVirtualMachine+" "+o.GetNamespace()+"/"+o.GetName()] {
				t.Errorf("nothing about machine %s", o.GetName())
			}
		}
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Shuffle(len(in.Objects), reflect.Swapper(in.Objects))
		if diff := cmp.Diff(found, takeover.Check(in)); diff != "" {
			t.Errorf("another order of the objects: %s", diff)
		}
	})
}
