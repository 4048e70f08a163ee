package spec

import (
	"slices"
	"strings"
	"testing"
)

// Every text, list and mapping of every definition has a bound of its own, or is named
// here. What is here is bounded by what an API server takes of an object, and by the
// rules of the objects that it gets into: pods, services and claims.
func TestEverythingHasABound(t *testing.T) {
	kubernetes := []string{ // types of Kubernetes, with Kubernetes' own schema
		"spec.affinity", "spec.tolerations", "spec.topologySpreadConstraints[].", "spec.resources", "spec.nodeSelector{}",
		"spec.nodeSelector.matchLabels{}", "spec.nodeSelector.matchExpressions[].",
		"spec.vm.disks[].volumeClaimTemplate.spec.", "spec.vm.disks[].volumeClaimTemplate.metadata.", "spec.loadBalancerService.",
	}
	others := []string{
		"apiVersion", "kind", // which the API server knows already
		// Documents of the author: a seed that is too large for an object is refused there.
		"spec.cloudInit.metaData{}",
		"spec.cloudInit.userData", "spec.cloudInit.networkConfig", "status.osinfo",
		// UIDs, which the API server has made, and only the operator notes.
		"status.claims[].uid", "status.virtualMachinePods[].uid", "status.lastEnd.podUID", "status.power.podUID", "status.podUID", "status.virtualMachineUID", "status.import.podUID", "status.download.podUID", "status.import.cloneRefused", "status.target.persistentVolumeClaimUID", "status.connection.podUID",
	}
	for _, k := range Kinds() {
		var walk func(schema map[string]any, path string)
		walk = func(schema map[string]any, path string) {
			has := func(key string) bool { _, is := schema[key]; return is }
			bounded := true
			switch schema["type"] {
			case "string":
				bounded = has("maxLength") || has("enum") || schema["format"] == "date-time"
			case "array":
				bounded = has("maxItems")
			case "object":
				bounded = !has("additionalProperties") && !has("x-kubernetes-preserve-unknown-fields") || has("maxProperties")
			}
			if !bounded && !slices.Contains(others, path) && !slices.ContainsFunc(kubernetes, func(p string) bool { return strings.HasPrefix(path+".", p+".") || strings.HasPrefix(path, p) }) {
				t.Errorf("%s: %s (%v) has no bound", k.Name, path, schema["type"])
			}
			properties, _ := schema["properties"].(map[string]any)
			for name, p := range properties {
				walk(p.(map[string]any), strings.TrimPrefix(path+"."+name, "."))
			}
			if items, is := schema["items"].(map[string]any); is {
				walk(items, path+"[]")
			}
			if values, is := schema["additionalProperties"].(map[string]any); is {
				walk(values, path+"{}")
			}
		}
		walk(schemaOf(t, k.Plural), "")
	}
}
