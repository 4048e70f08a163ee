package spec

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseCoreFraction(t *testing.T) {
	for n := range 102 {
		got, err := ParseCoreFraction(fmt.Sprintf("%d%%", n))
		if valid := n >= 1 && n <= 100; valid != (err == nil) || valid && got != n {
			t.Errorf("%d%%: %d, %v", n, got, err)
		}
	}
	for _, bad := range []string{"20", "%", "020%", "+20%", "20 %", "Auto", "-1%", "20%%"} {
		if n, err := ParseCoreFraction(bad); err == nil || !strings.Contains(err.Error(), "from 1% to 100%, such as 20%") {
			t.Errorf("%q: %d, %v", bad, n, err)
		}
	}
	if n, err := ParseCoreFraction(""); n != 0 || err != nil {
		t.Errorf("none: %d, %v", n, err)
	}
}

// Two answers to what the pod requests are one too many.
func TestCoreFractionBesideResources(t *testing.T) {
	for resources, want := range map[string]bool{
		"{requests: {cpu: 2}}": false, "{limits: {memory: 2Gi}}": false,
		"{}": true, "{limits: {example.org/device: 1}}": true, "{requests: {cpu: 0}}": true,
	} {
		_, err := Load("vm.yaml", []byte("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec: {resources: "+resources+", coreFraction: 20%, vm: {maximumCpus: 4}}\n"), Options{Validate: true})
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "vm.yaml:4: VirtualMachine a: spec.coreFraction: ") {
			t.Errorf("%s: %v", resources, err)
		}
	}
}
