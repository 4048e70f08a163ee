package spec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

func TestGeneratedMachinesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		before := vm.DeepCopy()
		if errs := spec.Validate(vm); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if !cmp.Equal(before, vm) {
			t.Fatalf("Validate changed its argument: %s", cmp.Diff(before, vm))
		}
	})
}

func TestGeneratedPoolsAreValidAndRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := spectest.Pool().Draw(t, "pool")
		if errs := spec.ValidatePool(pool); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		got := loadOne(t, "pool.json", encode(t, pool)).VmPool
		if !apiequality.Semantic.DeepEqual(pool, got) {
			t.Fatalf("came back different: %s", cmp.Diff(pool, got))
		}
		for i, p := range pool.Spec.Permissions {
			if (p.May == nil) != (got.Spec.Permissions[i].May == nil) {
				t.Fatal("an empty list of actions, which grants nothing, must not become an absent one, which grants accessConsole")
			}
		}
		spec.DefaultPool(pool)
		once := pool.DeepCopy()
		if spec.DefaultPool(pool); !cmp.Equal(once, pool) {
			t.Fatalf("the second DefaultPool changed something: %s", cmp.Diff(once, pool))
		}
	})
}

func TestDecodeOfEncodeIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		data := encode(t, vm)
		compare := func(how string, want, got *spec.VirtualMachine) {
			if !apiequality.Semantic.DeepEqual(want, got) {
				t.Fatalf("%s: came back different: %s\n%s", how, cmp.Diff(want, got), data)
			}
		}
		compare("JSON", vm, loadOne(t, "vm.json", data).VirtualMachine)
		// The comment keeps Load from taking it for JSON.
		compare("JSON read as YAML", vm, loadOne(t, "vm.yaml", append([]byte("# YAML\n"), data...)).VirtualMachine)

		// The YAML encoder reorders raw JSON, so it goes without.
		plain := vm.DeepCopy()
		plain.Status.OSInfo = nil
		if c := plain.Spec.CloudInit; c != nil {
			c.UserData, c.NetworkConfig = nil, nil
			// It forgets to quote this one, which makes it a merge key.
			delete(c.MetaData, "<<")
		}
		data, err := yaml.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		compare("YAML", plain, loadOne(t, "vm.yaml", data).VirtualMachine)
	})
}

func TestDefaultIsIdempotentAndKeepsWhatIsSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		spec.Default(vm)
		once := vm.DeepCopy()
		spec.Default(vm)
		if !cmp.Equal(once, vm) {
			t.Fatalf("the second Default changed something: %s", cmp.Diff(once, vm))
		}
		if errs := spec.Validate(vm); len(errs) > 0 {
			t.Fatalf("defaults made a valid machine invalid: %v", errs.ToAggregate())
		}
	})
}

// encode gives the JSON of an object as an API server would send it.
func encode(t interface{ Fatal(...any) }, object any) []byte {
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func loadOne(t interface{ Fatalf(string, ...any) }, name string, data []byte) spec.Object {
	objects, err := spec.Load(name, data, spec.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if len(objects) != 1 {
		t.Fatalf("got %d objects, want 1\n%s", len(objects), data)
	}
	return objects[0]
}

func TestDefaultMatchesDefinition(t *testing.T) {
	check := spec.CheckDefaultsAgainstCRD(t)
	rapid.Check(t, func(t *rapid.T) {
		check(t, spectest.VirtualMachine().Draw(t, "vm"))
	})
}

// Whether something is wrong is found without paths first, and that much is found
// with them, however many mistakes there are.
func TestMistakesAreFoundWithoutPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := rapid.OneOf(spectest.VirtualMachine(), spectest.Foreign()).Draw(t, "vm")
		m := &vm.Spec.VM
		for _, spoil := range []func(){
			func() { vm.Name = rapid.SampledFrom([]string{"", "A", "1a", "a.b"}).Draw(t, "name") },
			func() { vm.Namespace = "No" },
			func() { m.Disks = append(m.Disks, m.Disks...) },
			func() { m.Networks = append(m.Networks, m.Networks...) },
			func() { m.Networks = append(m.Networks, spec.Network{}) },
			func() { m.MachineUUID, m.MachineType = "x", "a b" },
			func() { m.MaximumCPUs, m.CPUTopology = nil, nil },
			func() { m.CurrentCPUs = new(int32) },
			func() { m.State, m.RTCBase = "on", "noon" },
			func() { vm.Spec.Pools = []string{"", "b b"} },
			func() { vm.Spec.NodeSelector = map[string]string{"a b": "c d"} },
		} {
			if rapid.Bool().Draw(t, "spoil") {
				spoil()
			}
		}
		if with, without := spec.FoundWithPathsAndWithout(vm); with != without {
			t.Fatalf("%d found with paths, %d without", with, without)
		}
	})
}

// A required field that is missing is one problem, whatever stands beside it, and hides
// none: the problems of a file with a further fault are those of both.
func TestAMissingFieldIsOneProblem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree map[string]any
		if err := json.Unmarshal(encode(t, spectest.VirtualMachine().Draw(t, "vm")), &tree); err != nil {
			t.Fatal(err)
		}
		paths := fieldsIn(tree["spec"].(map[string]any), "spec")
		path := rapid.SampledFrom(slices.Sorted(maps.Keys(paths))).Draw(t, "path")
		in, key := paths[path], path[strings.LastIndex(path, ".")+1:]
		delete(in, key)
		_, err := spec.Load("vm.json", encode(t, tree), spec.Options{Validate: true})
		var problems *spec.LoadError
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), path+": is required but missing") {
			return // not required
		}
		for _, p := range problems.Problems {
			if p.Path != path {
				t.Fatalf("%s is missing, and %v", path, p)
			}
		}
	})
}

// fieldsIn are the fields below a mapping, by their paths, and what each is in.
func fieldsIn(in map[string]any, path string) map[string]map[string]any {
	out := map[string]map[string]any{}
	var walk func(value any, path string)
	walk = func(value any, path string) {
		switch value := value.(type) {
		case map[string]any:
			for key, below := range value {
				if !strings.ContainsAny(key, "./[") {
					out[path+"."+key] = value
					walk(below, path+"."+key)
				}
			}
		case []any:
			for i, below := range value {
				walk(below, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	walk(in, path)
	return out
}
