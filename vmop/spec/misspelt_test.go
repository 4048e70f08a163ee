package spec_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// A machine with one misspelt field has that problem, and no other: what follows from the
// field's absence is not told beside it.
func TestAMisspeltFieldIsOneProblem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.Status = spec.VirtualMachineStatus{}
		vm.Spec.CloudInit = nil // whose documents may have any field
		var object map[string]any
		if err := json.Unmarshal(encode(t, vm), &object); err != nil {
			t.Fatal(err)
		}
		// Fields are drawn on the way down, so that those of a list of disks are not all
		// that is met.
		at := object["spec"].(map[string]any)
		path := []string{"spec"}
		for {
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(at))).Draw(t, "key")
			path = append(path, key)
			value := at[key]
			if list, ok := value.([]any); ok && len(list) > 0 {
				value = rapid.SampledFrom(list).Draw(t, "item")
			}
			if inner, ok := value.(map[string]any); ok && len(inner) > 0 && rapid.IntRange(0, 5).Draw(t, "deeper") > 0 {
				at = inner
				continue
			}
			wrong := key + strings.ToUpper(key[len(key)-1:])
			at[wrong] = at[key]
			delete(at, key)
			break
		}
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		_, err = spec.Load("vm.json", data, spec.Options{Validate: true})
		var found *spec.LoadError
		if errors.As(err, &found) && len(found.Problems) > 1 {
			t.Fatalf("%s: %v\n%s", strings.Join(path, "."), err, data)
		}
	})
}
