package reconcile_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/spec"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden compares a result with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to make it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

// load reads the one machine of a manifest among package spec's test data.
func load(t testing.TB, name string) *spec.VirtualMachine {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "spec", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, name, string(data))
}

func parse(t testing.TB, name, manifest string) *spec.VirtualMachine {
	t.Helper()
	objects, err := spec.Load(name, []byte(manifest), spec.Options{Validate: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.VirtualMachine != nil {
			return o.VirtualMachine
		}
	}
	t.Fatalf("%s: no virtual machine", name)
	return nil
}

func ptr[T any](v T) *T { return &v }
