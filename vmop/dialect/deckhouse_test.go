package dialect_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// theirClass is a class in Deckhouse's terms, of either version: which has the names
// that ours has taken over.
func theirClass(t *rapid.T, c *spec.VirtualMachineClass) []byte {
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	version := rapid.SampledFrom([]string{"v1alpha2", "v1alpha3"}).Draw(t, "version")
	object["apiVersion"] = "virtualization.deckhouse.io/" + version
	meta := object["metadata"].(map[string]any)
	if annotations, has := meta["annotations"].(map[string]any); has {
		annotations["virtualmachineclass.virtualization.deckhouse.io/is-default-class"] = annotations[names.AnnotationDefaultClass]
		delete(annotations, names.AnnotationDefaultClass)
	}
	policies, _ := object["spec"].(map[string]any)["sizingPolicies"].([]any)
	for _, p := range policies {
		policy := p.(map[string]any)
		number := func(f any) any {
			n, err := strconv.Atoi(strings.TrimSuffix(f.(string), "%"))
			if version != "v1alpha2" || err != nil {
				return f
			}
			return n
		}
		fractions, _ := policy["coreFractions"].([]any)
		for i := range fractions {
			fractions[i] = number(fractions[i])
		}
		if f, has := policy["defaultCoreFraction"]; has {
			policy["defaultCoreFraction"] = number(f)
		}
	}
	if data, err = json.Marshal(object); err != nil {
		t.Fatal(err)
	}
	return data
}

// A class comes back from Deckhouse's terms as it was, and nothing of it is left out.
func TestClassesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := spectest.Class().Draw(t, "class")
		if n := c.Spec.NodeSelector; n != nil && len(n.MatchLabels)+len(n.MatchExpressions) == 0 {
			c.Spec.NodeSelector = nil // says nothing
		}
		translated, err := dialect.Translate(load(t, theirClass(t, c)))
		if err != nil || len(translated.Classes) != 1 || len(translated.LeftOut) > 0 {
			t.Fatalf("%+v, %v", translated, err)
		}
		got := translated.Classes[0]
		if !apiequality.Semantic.DeepEqual(c, got.VirtualMachineClass) {
			t.Fatalf("came back different: %s", cmp.Diff(c, got.VirtualMachineClass))
		}
		for _, n := range got.Notes {
			if c.Spec.CPU == nil || c.Spec.CPU.Type != spec.ClassCPUHost || n.Path != "spec.cpu.type" {
				t.Fatalf("note %v", n)
			}
		}
	})
}

// What Discovery found becomes a class that is valid, with all of what was found where
// that can be, and else with the highest level that it has.
func TestDiscoveredClasses(t *testing.T) {
	levels := []string{limits.CPULevel2, limits.CPULevel3, limits.CPULevel4}
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom(levels).Draw(t, "level")
		found := strings.Split(limits.QEMUCPUModel(level), ",+")[1:]
		for i := range rapid.IntRange(0, 90).Draw(t, "more") {
			found = append(found, fmt.Sprintf("feature-%d", i))
		}
		list, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"apiVersion": "virtualization.deckhouse.io/v1alpha3", "kind": "VirtualMachineClass", "metadata": {"name": "a"},
			"spec": {"cpu": {"type": "Discovery"}}, "status": {"cpuFeatures": {"enabled": %s}}}`, list)
		translated, err := dialect.Translate(load(t, []byte(text)))
		if err != nil || len(translated.Classes) != 1 || len(translated.Classes[0].Notes) != 1 {
			t.Fatalf("%+v, %v", translated, err)
		}
		c := translated.Classes[0].VirtualMachineClass
		if errs := spec.ValidateClass(c); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		switch cpu := c.Spec.CPU; cpu.Type {
		case spec.ClassCPUFeatures:
			for _, f := range found {
				if !slices.Contains(cpu.Features, f) && f != "cx16" && f != "pni" { // which the model has by itself
					t.Fatalf("%s is not among %q", f, cpu.Features)
				}
			}
		default:
			if cpu.Model != level || len(found) < 50 {
				t.Fatalf("%+v of %d features of %s", cpu, len(found), level)
			}
		}
	})
}

// A guest sees the sockets that it saw under Deckhouse, whose table this is from.
func TestSocketsOfMachines(t *testing.T) {
	table := []struct{ most, sockets int }{{16, 1}, {32, 2}, {64, 4}, {248, 8}}
	rapid.Check(t, func(t *rapid.T) {
		row := table[rapid.IntRange(0, len(table)-1).Draw(t, "row")]
		least := 1
		for _, r := range table {
			if r.most < row.most {
				least = r.most + 1
			}
		}
		cores := rapid.IntRange(least, row.most).Draw(t, "cores")
		text := fmt.Sprintf("apiVersion: virtualization.deckhouse.io/v1alpha2\nkind: VirtualMachine\nmetadata: {name: a, namespace: b}\nspec: {cpu: {cores: %d}, memory: {size: 1Gi}}\n", cores)
		translated, err := dialect.Translate(load(t, []byte(text)))
		if err != nil || len(translated.Machines) != 1 {
			t.Fatalf("%+v, %v", translated, err)
		}
		m := translated.Machines[0]
		possible := cores%row.sockets == 0
		if told := len(m.Notes) > 0; told == possible {
			t.Fatalf("%d CPUs: notes %v", cores, m.Notes)
		}
		spec.Default(m.VirtualMachine)
		if errs := spec.Validate(m.VirtualMachine); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if *m.VirtualMachine.Spec.VM.CurrentCPUs != int32(cores) || m.VirtualMachine.Spec.VM.MaxCPUs() != int64(cores) {
			t.Fatalf("%d CPUs: %+v", cores, m.VirtualMachine.Spec.VM)
		}
		if cores > 64 { // more than software emulation, for which this is rendered, has room for
			return
		}
		rendered, err := vmop.Render(m.VirtualMachine, vmop.RenderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sockets := 1
		if possible {
			sockets = row.sockets
		}
		want := fmt.Sprintf("maxcpus=%d,sockets=%d,dies=1,cores=%d,threads=1", cores, sockets, cores/sockets)
		if args := strings.Join(rendered.Command.Args(), " "); !strings.Contains(args, want) {
			t.Fatalf("%d CPUs: no %s in %s", cores, want, args)
		}
	})
}
