package crdtest

import (
	"math"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmop/sdk/vmop/spec"
)

// plurals are the names of all kinds in URLs.
func plurals() []string {
	var out []string
	for _, k := range spec.Kinds() {
		out = append(out, k.Plural)
	}
	return out
}

func TestDefinitionsAreTakenWithoutWarnings(t *testing.T) {
	var want []string
	for _, resource := range plurals() {
		want = append(want, resource+"."+spec.GroupName)
	}
	slices.Sort(want)
	if !slices.Equal(slices.Sorted(slices.Values(installed.names)), want) {
		t.Errorf("deploy/crds defines %v, want %v", installed.names, want)
	}
	if texts := installed.warnings.all(); len(texts) > 0 {
		t.Errorf("the API server warns: %q", texts)
	}
}

func TestDefinitionsAreEstablishedAndStructural(t *testing.T) {
	client := newClient(t)
	for _, name := range installed.names {
		definition, err := client.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		status := map[string]any{}
		for _, c := range conditions {
			condition := c.(map[string]any)
			status[condition["type"].(string)] = condition["status"]
			if condition["type"] == "NonStructuralSchema" {
				t.Errorf("%s: %v", name, condition["message"])
			}
		}
		if status["Established"] != "True" || status["NamesAccepted"] != "True" {
			t.Errorf("%s: conditions %v", name, conditions)
		}
	}
}

// The API server takes a number of format int32 that no int32 can hold, and one
// such object would end a typed client's list of all of them. So the numbers
// that users write have bounds; those of the status are our own.
func TestWholeNumbersThatUsersWriteHaveBounds(t *testing.T) {
	var visit func(schema map[string]any, path string)
	visit = func(schema map[string]any, path string) {
		if path == ".status" {
			return
		}
		if schema["format"] == "int32" {
			if most, ok := schema["maximum"].(int64); !ok || most > math.MaxInt32 {
				t.Errorf("%s: maximum %v", path, schema["maximum"])
			}
			if least, ok := schema["minimum"].(int64); !ok || least < math.MinInt32 {
				t.Errorf("%s: minimum %v", path, schema["minimum"])
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			visit(property.(map[string]any), path+"."+name)
		}
		for _, below := range []string{"items", "additionalProperties"} {
			if child, ok := schema[below].(map[string]any); ok {
				visit(child, path+"[]")
			}
		}
	}
	for _, resource := range plurals() {
		objects, err := readObjects("../../deploy/crds/" + spec.GroupName + "_" + resource + ".yaml")
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: %d objects, %v", resource, len(objects), err)
		}
		versions, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "versions")
		if err != nil || len(versions) != 1 {
			t.Fatalf("%s: %d versions, %v", resource, len(versions), err)
		}
		schema, found, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
		if err != nil || !found {
			t.Fatalf("%s: no schema, %v", resource, err)
		}
		visit(schema, "")
	}
}

// A definition that is applied again must not differ from what is stored, or
// every apply of deploy/ would be a change.
func TestApplyingDefinitionsAgainChangesNothing(t *testing.T) {
	client := newClient(t)
	for _, file := range plurals() {
		objects, err := readObjects("../../deploy/crds/" + spec.GroupName + "_" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			apply := metav1.ApplyOptions{FieldManager: "kustomize", Force: true}
			first, err := client.Resource(definitions).Apply(t.Context(), object.GetName(), object, apply)
			if err != nil {
				t.Fatal(err)
			}
			second, err := client.Resource(definitions).Apply(t.Context(), object.GetName(), object, apply)
			if err != nil {
				t.Fatal(err)
			}
			if first.GetGeneration() != 1 || first.GetResourceVersion() != second.GetResourceVersion() {
				t.Errorf("%s: generation %d, versions %s and %s", object.GetName(), first.GetGeneration(), first.GetResourceVersion(), second.GetResourceVersion())
			}
		}
	}
}
