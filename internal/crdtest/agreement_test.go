package crdtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// oddities are values that may stand anywhere. The empty text is not among them:
// where a field has a pattern the API server refuses it, and the library takes
// it for no value.
var oddities = []any{
	nil, true, int64(-1), int64(0), int64(1), int64(17), int64(65536), int64(1 << 31), 1.5,
	"a", "A b", "a.b", "../a", "1Gi", "-1", "0", []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": "b"},
}

// A machine with one odd value is seldom valid. If the library finds nothing
// wrong with it, neither does the API server: what the command line tools check
// offline can be applied. And what the API server takes can be read: one object
// that cannot would end a typed client's list of all of them.
func TestOddMachinesAreJudgedAlike(t *testing.T) {
	client := newClient(t)
	vms := client.Resource(machines).Namespace("default")
	dryRun := strict
	dryRun.DryRun = []string{metav1.DryRunAll}
	rapid.Check(t, func(rt *rapid.T) {
		vm := spectest.VirtualMachine().Draw(rt, "vm")
		vm.Namespace, vm.Status = "default", spec.VirtualMachineStatus{}
		object, err := toObject(vm)
		if err != nil {
			rt.Fatal(err)
		}
		content := object.Object["spec"].(map[string]any)
		delete(content, "cloudInit") // may have anything in it
		delete(content, "affinity")  // is not looked into by the library
		rt.Logf("changed: spec%s", replaceOne(rt, content))
		data, err := object.MarshalJSON()
		if err != nil {
			rt.Fatal(err)
		}
		_, findings := spec.Load("odd.json", data, spec.Options{Validate: true})
		stored, refusal := vms.Create(t.Context(), object, dryRun)
		if findings == nil && refusal != nil {
			rt.Fatalf("refused: %v\n%s", refusal, data)
		}
		if refusal == nil {
			if _, err := fromObject[spec.VirtualMachine](stored); err != nil {
				rt.Fatalf("cannot be read: %v\n%s", err, data)
			}
		}
	})
}

// replaceOne puts an oddity in the place of one value below tree and returns that
// place.
func replaceOne(rt *rapid.T, tree map[string]any) string {
	keys := slices.Sorted(maps.Keys(tree))
	key := rapid.SampledFrom(keys).Draw(rt, "key")
	deeper := rapid.IntRange(0, 3).Draw(rt, "deeper") > 0
	switch v := tree[key].(type) {
	case map[string]any:
		if deeper && len(v) > 0 {
			return "." + key + replaceOne(rt, v)
		}
	case []any:
		if deeper && len(v) > 0 {
			i := rapid.IntRange(0, len(v)-1).Draw(rt, "index")
			if child, ok := v[i].(map[string]any); ok && len(child) > 0 {
				return fmt.Sprintf(".%s[%d]%s", key, i, replaceOne(rt, child))
			}
			v[i] = rapid.SampledFrom(oddities).Draw(rt, "oddity")
			return fmt.Sprintf(".%s[%d]", key, i)
		}
	}
	tree[key] = rapid.SampledFrom(oddities).Draw(rt, "oddity")
	return "." + key
}
