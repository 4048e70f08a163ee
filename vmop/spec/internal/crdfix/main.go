// Command crdfix completes a generated resource definition with what
// controller-gen has no marker for: map values that may be null, the size of
// quantities, and the bounds of whole numbers in Kubernetes' own types.
//
// Kubernetes' quantities take any exponent, and an arithmetic operation on
// 1e200000000, in a controller or in a rule of the definition itself, takes
// minutes. Two digits of exponent and 32 characters are more than any has.
//
// The labels and annotations of a load balancer service delete a key by the
// value null. Without a schema for the values the API server would store
// anything, and a single number among them would keep typed clients from
// decoding the whole list of machines.
package main

import (
	"errors"
	"fmt"
	"math"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdfix FILE")
		os.Exit(2)
	}
	if err := fix(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "crdfix: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func fix(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	versions, ok := at(crd, "spec")["versions"].([]any)
	if !ok {
		return errors.New("has no versions")
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		service := at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "loadBalancerService", "properties")
		for _, name := range []string{"labels", "annotations"} {
			schema := at(service, name)
			if schema == nil {
				return fmt.Errorf("has no loadBalancerService.%s", name)
			}
			delete(schema, "x-kubernetes-preserve-unknown-fields")
			schema["additionalProperties"] = map[string]any{"type": "string", "nullable": true}
		}
		boundNumbers(at(version, "schema", "openAPIV3Schema", "properties", "spec"))
	}
	if boundQuantities(crd) == 0 {
		return errors.New("has no quantities")
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

// quantity is controller-gen's pattern of a quantity, bounded the same with at
// most two digits of exponent that count.
const (
	quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	bounded  = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?0*[0-9]{1,2}))?$`
)

// boundQuantities limits all quantities of a schema. It returns how many there are.
func boundQuantities(value any) int {
	n := 0
	switch value := value.(type) {
	case map[string]any:
		if value["x-kubernetes-int-or-string"] == true && value["pattern"] == quantity {
			value["pattern"], value["maxLength"] = bounded, 32
			n++
		}
		for _, v := range value {
			n += boundQuantities(v)
		}
	case []any:
		for _, v := range value {
			n += boundQuantities(v)
		}
	}
	return n
}

// boundNumbers gives whole numbers of 32 bits that have no bound the one of their type:
// those of Kubernetes' own types, such as the weights of affinities.
func boundNumbers(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, has := value["maximum"]; value["format"] == "int32" && !has {
			value["maximum"] = math.MaxInt32
			if _, has := value["minimum"]; !has {
				value["minimum"] = math.MinInt32
			}
		}
		for _, v := range value {
			boundNumbers(v)
		}
	case []any:
		for _, v := range value {
			boundNumbers(v)
		}
	}
}

// at follows keys through nested mappings; it returns nil if one is missing.
func at(m map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		m, _ = m[k].(map[string]any)
	}
	return m
}
