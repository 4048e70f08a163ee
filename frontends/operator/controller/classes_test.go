package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A change of a class wakes the machines that name it, in whatever namespace, and one
// of a default class those that name none; no others.
func TestMachinesOfAClass(t *testing.T) {
	w := newClusterWorld(t.Context(), func(string, int) int { return 0 }, nil)
	for _, k := range w.api.keys(spec.KindVirtualMachine) {
		w.api.put(k, nil)
	}
	for name, class := range map[string]string{"one": "large", "two": "large", "three": "small", "four": ""} {
		for _, namespace := range []string{"a", "b"} {
			o := ownKind(namespace, spec.KindVirtualMachine, name)
			o.Object["spec"] = map[string]any{"virtualMachineClassName": class}
			w.api.put(modelKey{spec.KindVirtualMachine, namespace, name}, o.Object)
		}
	}
	w.cache.seen[spec.KindVirtualMachine] = w.api.serial
	for _, c := range []struct {
		name      string
		isDefault string
		want      []string
	}{
		{"large", "false", []string{"a/one", "a/two", "b/one", "b/two"}},
		{"large", "true", []string{"a/four", "a/one", "a/two", "b/four", "b/one", "b/two"}},
		{"none", "", nil},
	} {
		class := &storedClass{}
		text := fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"vmoperator.jdrupes.org/is-default-class":%q}}}`, c.name, c.isDefault)
		if err := json.Unmarshal([]byte(text), class); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range w.find.machinesOfClass(t.Context(), client.Object(class)) {
			got = append(got, r.String())
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, default %q: %q, want %q", c.name, c.isDefault, got, c.want)
		}
	}
}
