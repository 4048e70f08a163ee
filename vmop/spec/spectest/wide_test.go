package spectest_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// draws is how many manifests of a kind are looked at: enough that one that is long in
// one list, which is rare, is among them. The examples are the same in every run.
const draws = 2500

// neverDrawn are what no manifest has, and why.
var neverDrawn = map[string]string{
	"VirtualMachine spec.resources.claims":             "Validate refuses it: a machine's pod has no claims of devices",
	"VirtualMachine spec.resources.claims[]":           "likewise",
	"VirtualMachine spec.resources.claims[].name":      "likewise",
	"VirtualMachine spec.resources.claims[].request":   "likewise",
	"VirtualMachine spec.vm.disks[].bootindex maximum": "Validate refuses it: the largest of QEMU is one less",
}

// What is in the types and the definitions is in the manifests that are drawn: each
// field with some value, each value of an enumeration, the longest lists, and the least
// and the greatest numbers. What is never drawn is in no property.
func TestGeneratorsAreAsWideAsTheDefinitions(t *testing.T) {
	for _, k := range []struct {
		kind   string
		plural string
		spec   func(seed int) reflect.Value
		typ    reflect.Type
	}{
		{spec.KindVirtualMachine, spec.ResourceVirtualMachines, func(seed int) reflect.Value {
			if seed%2 == 0 {
				return reflect.ValueOf(spectest.OneHost().Example(seed).Spec)
			}
			return reflect.ValueOf(spectest.VirtualMachine().Example(seed).Spec)
		}, reflect.TypeFor[spec.VirtualMachineSpec]()},
		{spec.KindVMPool, spec.ResourceVMPools, func(seed int) reflect.Value {
			return reflect.ValueOf(spectest.Pool().Example(seed).Spec)
		}, reflect.TypeFor[spec.VmPoolSpec]()},
		{spec.KindClass, spec.ResourceClasses, func(seed int) reflect.Value {
			return reflect.ValueOf(spectest.Class().Example(seed).Spec)
		}, reflect.TypeFor[spec.VirtualMachineClassSpec]()},
	} {
		t.Run(k.kind, func(t *testing.T) {
			t.Parallel()
			seen := sightings{}
			for seed := range draws {
				seen.look(k.spec(seed), "spec")
			}
			wanted := map[string]bool{}
			fieldsOf(k.typ, "spec", wanted)
			boundsOf(schemaOf(t, k.plural), "spec", wanted)
			for _, want := range slices.Sorted(maps.Keys(wanted)) {
				drawn, never := seen[want], neverDrawn[k.kind+" "+key(want)] != ""
				switch {
				case !drawn && !never:
					t.Errorf("never drawn: %s", want)
				case drawn && never:
					t.Errorf("drawn, though it is said to be never: %s", want)
				}
			}
		})
	}
}

// key is what is wanted without its value.
func key(want string) string {
	what, _, _ := strings.Cut(want, " = ")
	return what
}

// sightings are the fields that had a value, and what bounds are compared with.
type sightings map[string]bool

func (s sightings) look(v reflect.Value, path string) {
	if v.IsZero() && v.Kind() != reflect.Int32 && v.Kind() != reflect.Int64 {
		return
	}
	if !v.IsZero() {
		s[path] = true
	}
	if leaf(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		s[path] = true
		s.look(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			if at, ok := fieldPath(v.Type(), i, path); ok {
				s.look(v.Field(i), at)
			}
		}
	case reflect.Slice:
		s[fmt.Sprintf("%s maxItems = %d", path, v.Len())] = true
		for i := range v.Len() {
			s.look(v.Index(i), path+"[]")
		}
	case reflect.Map:
		s[fmt.Sprintf("%s maxProperties = %d", path, v.Len())] = true
		for _, key := range v.MapKeys() {
			s.look(v.MapIndex(key), path+"{}")
		}
	case reflect.String:
		s[path+" enum = "+v.String()] = true
	case reflect.Int32, reflect.Int64:
		for _, bound := range []string{"minimum", "maximum"} {
			s[fmt.Sprintf("%s %s = %d", path, bound, v.Int())] = true
		}
	}
}

// leaf reports whether what is in a type is no field of a manifest.
func leaf(t reflect.Type) bool {
	return t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[runtime.RawExtension]() || t == reflect.TypeFor[intstr.IntOrString]()
}

func fieldPath(t reflect.Type, i int, path string) (string, bool) {
	name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
	if name == "-" {
		return "", false
	}
	if name == "" && strings.Contains(options, "inline") || name == "" && t.Field(i).Anonymous {
		return path, true
	}
	return path + "." + name, true
}

func fieldsOf(t reflect.Type, path string, into map[string]bool) {
	into[path] = true
	if leaf(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		fieldsOf(t.Elem(), path, into)
	case reflect.Slice:
		fieldsOf(t.Elem(), path+"[]", into)
	case reflect.Map:
		fieldsOf(t.Elem(), path+"{}", into)
	case reflect.Struct:
		for i := range t.NumField() {
			if at, ok := fieldPath(t, i, path); ok {
				fieldsOf(t.Field(i).Type, at, into)
			}
		}
	}
}

func boundsOf(schema map[string]any, path string, into map[string]bool) {
	for _, value := range listOf(schema["enum"]) {
		into[fmt.Sprintf("%s enum = %v", path, value)] = true
	}
	for _, bound := range []string{"maxItems", "maxProperties", "minimum", "maximum"} {
		n, has := schema[bound].(float64)
		if has && n != -1<<31 && n != 1<<31-1 || has && strings.HasSuffix(path, ".bootOrder") { // those of the type itself
			into[fmt.Sprintf("%s %s = %d", path, bound, int64(n))] = true
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		boundsOf(p.(map[string]any), path+"."+name, into)
	}
	for what, suffix := range map[string]string{"items": "[]", "additionalProperties": "{}"} {
		if below, ok := schema[what].(map[string]any); ok {
			boundsOf(below, path+suffix, into)
		}
	}
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// schemaOf is that of the field spec in a definition.
func schemaOf(t *testing.T, plural string) map[string]any {
	file := "../../../deploy/crds/" + spec.GroupName + "_" + plural + ".yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties map[string]map[string]any
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// What is of one host only is valid as well.
func TestGeneratedMachinesOfOneHostAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if errs := spec.Validate(spectest.OneHost().Draw(t, "vm")); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	})
}
