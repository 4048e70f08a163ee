package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The table has what the definitions have, and no more; choices among a few words, sizes
// and what Kubernetes defines are bounded otherwise. Classes, operations and attachments
// check all by themselves.
func TestLengthsAreThoseOfTheDefinition(t *testing.T) {
	found := map[string]int{}
	var walk func(schema map[string]any, path string)
	walk = func(schema map[string]any, path string) {
		for _, key := range []string{"maxLength", "maxItems", "maxProperties"} {
			if n, ok := schema[key]; ok && schema["x-kubernetes-int-or-string"] == nil {
				if other, has := found[path]; has && other != int(n.(float64)) {
					t.Errorf("%q: %v in one definition, %d in another", path, n, other)
				}
				found[path] = int(n.(float64))
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			walk(p.(map[string]any), path+"."+name)
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(items, path+"[]")
		}
	}
	for _, k := range Kinds() {
		if k.Name != KindClass && k.Name != KindOperation && k.Name != KindAttachment {
			walk(schemaOf(t, k.Plural)["properties"].(map[string]any)["spec"].(map[string]any), "spec")
		}
	}
	elsewhere := []string{
		"spec.affinity", "spec.resources", ".volumeClaimTemplate.spec.selector", ".volumeClaimTemplate.spec.resources", // Kubernetes' own
		"secretRef.", ".hostForwards", "spec.persistentVolumeClaim.", ".checksum.", ".objectRef.", ".imagePullSecret.", // checked by themselves
	}
	maps.DeleteFunc(found, func(path string, _ int) bool {
		return lengths[path] == 0 && slices.ContainsFunc(elsewhere, func(s string) bool { return strings.Contains(path, s) })
	})
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if lengths[path] != found[path] {
			t.Errorf("%q: %d in the definition, %d in the table", path, found[path], lengths[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(lengths)) {
		if _, ok := found[path]; !ok {
			t.Errorf("%q has no bound in the definition", path)
		}
	}
}

// Whatever is too long is refused by name, and is not part of the message.
func TestLongTexts(t *testing.T) {
	vm := &VirtualMachine{}
	vm.Name = "web"
	n := int32(1)
	vm.Spec.VM.MaximumCPUs = &n
	vm.Spec.NodeSelector = map[string]string{}
	for i := range 257 {
		vm.Spec.NodeSelector[fmt.Sprint("l", i)] = "x"
	}
	vm.Spec.LoggingProperties = strings.Repeat("x", 700<<10)
	vm.Spec.VM.Disks = []Disk{{Cdrom: &Cdrom{Image: strings.Repeat("i/", 3000)}}}
	for range 1025 {
		vm.Spec.Permissions = append(vm.Spec.Permissions, Permission{User: "u"})
	}
	want := map[string]bool{"spec.nodeSelector": true, "spec.loggingProperties": true, "spec.vm.disks[0].cdrom.image": true, "spec.permissions": true}
	errs := Validate(vm)
	for _, e := range errs {
		delete(want, e.Field)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
	if text := errs.ToAggregate().Error(); len(text) > 20<<10 {
		t.Errorf("the message has %d bytes", len(text))
	}
}
