package spectest_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/internal/kindtest"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// draws is how many manifests of a kind are looked at: enough that one that is long in
// one list, which is rare, is among them. The examples are the same in every run.
const draws = 2500

// neverDrawn are what no manifest has, and why.
var neverDrawn = map[string]string{
	"VirtualMachine spec.resources.claims":           "Validate refuses it: a machine's pod has no claims of devices",
	"VirtualMachine spec.resources.claims[]":         "likewise",
	"VirtualMachine spec.resources.claims[].name":    "likewise",
	"VirtualMachine spec.resources.claims[].request": "likewise",

	"VirtualDisk spec.dataSource.containerImage.image minLength":  "the names of images have two letters, with registries",
	"VirtualDisk spec.dataSource.objectRef.kind maxLength":        "it is one of four words",
	"VirtualImage spec.dataSource.containerImage.image minLength": "likewise",
	"VirtualImage spec.dataSource.objectRef.kind maxLength":       "likewise",
	"VirtualImage spec.dataSource.objectRef.format":               "Validate refuses it: it is for snapshots, and no image is made of one",
	"VirtualImage spec.dataSource.objectRef.format enum":          "likewise",
	"VirtualImage spec.dataSource.objectRef.name maxLength":       "only the name of a snapshot may be as long",
	"VirtualImage status.sha256":                                  "only an image of the cluster has it",

	"ClusterVirtualImage spec.dataSource.containerImage.image minLength":   "likewise",
	"ClusterVirtualImage spec.dataSource.type enum = ObjectRef":            "Validate refuses it: it is a copy of nothing in a namespace",
	"ClusterVirtualImage spec.dataSource.type enum = Upload":               "Validate refuses it: nobody uploads it",
	"ClusterVirtualImage spec.dataSource.objectRef":                        "goes with the type",
	"ClusterVirtualImage spec.dataSource.objectRef.kind":                   "likewise",
	"ClusterVirtualImage spec.dataSource.objectRef.kind maxLength":         "likewise",
	"ClusterVirtualImage spec.dataSource.objectRef.name":                   "likewise",
	"ClusterVirtualImage spec.dataSource.objectRef.name maxLength":         "likewise",
	"ClusterVirtualImage spec.dataSource.objectRef.name minLength":         "likewise",
	"ClusterVirtualImage spec.dataSource.objectRef.format":                 "likewise",
	"ClusterVirtualImage spec.dataSource.objectRef.format enum":            "likewise",
	"ClusterVirtualImage spec.dataSource.upload":                           "likewise",
	"ClusterVirtualImage spec.dataSource.upload.checksum":                  "likewise",
	"ClusterVirtualImage spec.dataSource.upload.checksum.sha256":           "likewise",
	"ClusterVirtualImage spec.dataSource.upload.checksum.sha256 maxLength": "likewise",
	"ClusterVirtualImage spec.dataSource.upload.checksum.sha512":           "likewise",
	"ClusterVirtualImage spec.dataSource.upload.checksum.sha512 maxLength": "likewise",
	"ClusterVirtualImage status.download":                                  "it has none",
	"ClusterVirtualImage status.download.message":                          "likewise",
	"ClusterVirtualImage status.download.phase":                            "likewise",
	"ClusterVirtualImage status.download.phase enum":                       "likewise",
	"ClusterVirtualImage status.download.podUID":                           "likewise",
	"ClusterVirtualImage status.download.request":                          "likewise",
}

// What is in the types and the definitions is in the manifests that are drawn: each
// field with some value, each value of an enumeration, the longest lists, and the least
// and the greatest numbers. What is never drawn is in no property.
//
// Of machines, pools and classes that is the specification; of the others it is the
// status, too, and the longest and the shortest texts of the specification.
func TestGeneratorsAreAsWideAsTheDefinitions(t *testing.T) {
	machine := func(seed int) spec.TypedObject {
		if seed%2 == 0 {
			return spectest.OneHost().Example(seed)
		}
		return spectest.VirtualMachine().Example(seed)
	}
	numbers := []string{"maxItems", "maxProperties", "minimum", "maximum"}
	all := append([]string{"maxLength", "minLength"}, numbers...)
	for _, kind := range kindtest.Kinds(t) {
		draw, bounds, parts := kind.Draw.Example, all, []string{"spec", "status"}
		switch kind.Name {
		case spec.KindVirtualMachine:
			draw, bounds, parts = func(seed ...int) spec.TypedObject { return machine(seed[0]) }, numbers, parts[:1]
		case spec.KindVMPool, spec.KindClass:
			bounds, parts = numbers, parts[:1]
		}
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			seen, wanted := sightings{}, map[string]bool{}
			for seed := range draws {
				object := reflect.ValueOf(draw(seed)).Elem()
				for _, part := range parts {
					seen.look(partOf(object, part), part)
				}
			}
			schema := schemaOf(t, kind.Plural)
			for _, part := range parts {
				fieldsOf(partOf(reflect.ValueOf(kind.New()).Elem(), part).Type(), part, wanted)
				if part == "status" {
					bounds = numbers
				}
				boundsOf(schema[part], part, bounds, wanted)
			}
			for _, want := range slices.Sorted(maps.Keys(wanted)) {
				drawn, never := seen[want], neverDrawn[kind.Name+" "+key(want)] != "" || neverDrawn[kind.Name+" "+want] != ""
				switch {
				case !drawn && !never:
					t.Errorf("never drawn: %s", want)
				case drawn && never:
					t.Errorf("drawn, though it is said to be never: %s", want)
				}
			}
			for never := range neverDrawn {
				if of, what, _ := strings.Cut(never, " "); of == kind.Name && !wanted[what] && !slices.ContainsFunc(slices.Collect(maps.Keys(wanted)), func(w string) bool { return key(w) == what }) {
					t.Errorf("said to be never drawn, and nobody wants it: %s", what)
				}
			}
		})
	}
}

// partOf is the specification or the status of an object.
func partOf(object reflect.Value, part string) reflect.Value {
	return object.FieldByName(strings.ToUpper(part[:1]) + part[1:])
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
		for _, bound := range []string{"minLength", "maxLength"} {
			s[fmt.Sprintf("%s %s = %d", path, bound, utf8.RuneCountInString(v.String()))] = true
		}
	case reflect.Int32, reflect.Int64:
		for _, bound := range []string{"minimum", "maximum"} {
			s[fmt.Sprintf("%s %s = %d", path, bound, v.Int())] = true
		}
	}
}

// leaf reports whether what is in a type is no field of a manifest.
func leaf(t reflect.Type) bool {
	return t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[runtime.RawExtension]() || t == reflect.TypeFor[intstr.IntOrString]()
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

func boundsOf(schema map[string]any, path string, bounds []string, into map[string]bool) {
	if schema["x-kubernetes-int-or-string"] != nil {
		return // of its own form
	}
	for _, value := range listOf(schema["enum"]) {
		into[fmt.Sprintf("%s enum = %v", path, value)] = true
	}
	for _, bound := range bounds {
		n, has := schema[bound].(float64)
		if has && n != -1<<31 && n != 1<<31-1 || has && strings.HasSuffix(path, ".bootOrder") { // those of the type itself
			into[fmt.Sprintf("%s %s = %d", path, bound, int64(n))] = true
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		boundsOf(p.(map[string]any), path+"."+name, bounds, into)
	}
	for what, suffix := range map[string]string{"items": "[]", "additionalProperties": "{}"} {
		if below, ok := schema[what].(map[string]any); ok {
			boundsOf(below, path+suffix, bounds, into)
		}
	}
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// schemaOf are those of the fields spec and status, and others, in a definition.
func schemaOf(t *testing.T, plural string) map[string]map[string]any {
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
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
}

// What is of one host only is valid as well.
func TestGeneratedMachinesOfOneHostAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if errs := spec.Validate(spectest.OneHost().Draw(t, "vm")); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	})
}
