package crdtest

import (
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// What the library takes for a class the API server stores as it is.
func TestGeneratedClassesAreStored(t *testing.T) {
	client := newClient(t).Resource(resources[spec.KindClass])
	dryRun := strict
	dryRun.DryRun = []string{metav1.DryRunAll}
	rapid.Check(t, func(rt *rapid.T) {
		class := spectest.Class().Draw(rt, "class")
		object, err := toObject(class)
		if err != nil {
			rt.Fatal(err)
		}
		stored, err := client.Create(t.Context(), object, dryRun)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := fromObject[spec.VirtualMachineClass](stored)
		if err != nil || !apiequality.Semantic.DeepEqual(class.Spec, got.Spec) {
			rt.Fatalf("%v\n%s", err, cmp.Diff(class.Spec, got.Spec))
		}
	})
}

// The definition refuses what can be refused there.
func TestClassesThatAreRefused(t *testing.T) {
	client := newClient(t).Resource(resources[spec.KindClass])
	for body, want := range map[string]string{
		"{cpu: {type: Discovery}}":                                                 "Unsupported value",
		"{cpu: {type: Model}}":                                                     "model is for type Model, which needs it",
		"{cpu: {type: Host, model: a}}":                                            "model is for type Model, which needs it",
		"{cpu: {type: Features}}":                                                  "features are for type Features, which needs them",
		"{cpu: {type: Model, model: \"host,-avx\"}}":                               "should match",
		"{sizingPolicies: [{cores: {min: 3, max: 2}}]}":                            "cores.min must not be greater than cores.max",
		"{sizingPolicies: [{cores: {min: 1, max: 8}}, {cores: {min: 2, max: 3}}]}": "must not overlap",
		"{sizingPolicies: [{cores: {min: 2, max: 3}}, {cores: {min: 1, max: 8}}]}": "must not overlap",
		"{sizingPolicies: [{cores: {min: 1, max: 8}, coreFractions: [101%]}]}":     "should match",
	} {
		object, err := decodeObject([]byte("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachineClass\nmetadata: {name: refused}\nspec: " + body + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Create(t.Context(), object, strict); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
