package spec_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

func TestGeneratedClassesAreValidAndRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := spectest.Class().Draw(t, "class")
		if errs := spec.ValidateClass(c); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		got := loadOne(t, "class.json", encode(t, c)).Typed
		if !apiequality.Semantic.DeepEqual(c, got) {
			t.Fatalf("came back different: %s", cmp.Diff(c, got))
		}
	})
}

// drawClassed generates a machine with its defaults, and sometimes with affinities.
func drawClassed(t *rapid.T) *spec.VirtualMachine {
	vm := spectest.VirtualMachine().Draw(t, "vm")
	if rapid.Bool().Draw(t, "affinity") {
		terms := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorTerm {
			return corev1.NodeSelectorTerm{MatchExpressions: rapid.SliceOfN(spectest.NodeRequirement(), 0, 2).Draw(t, "term")}
		}), 1, 3).Draw(t, "terms")
		vm.Spec.Affinity = &spec.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	spec.Default(vm)
	return vm
}

// A class is applied once, however often it is; it shares nothing with the machine
// and loses nothing of it; and the machine is as valid as before.
func TestApplyingAClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, c := drawClassed(t), spectest.Class().Draw(t, "class")
		before, class := vm.DeepCopy(), c.DeepCopy()
		valid := len(spec.Validate(vm)) == 0
		c.Spec.Apply(&vm.Spec)
		if !cmp.Equal(class, c) {
			t.Fatalf("the class is changed: %s", cmp.Diff(class, c))
		}
		once := vm.DeepCopy()
		if overruled := c.Spec.Apply(&vm.Spec); len(overruled) > 0 || !cmp.Equal(once, vm) {
			t.Fatalf("twice is not once: %q %s", overruled, cmp.Diff(once, vm))
		}
		full := len(vm.Spec.Tolerations) > 64 || len(vm.Spec.NodeSelector) > 256 // with what the class adds
		if valid && len(spec.Validate(vm)) > 0 && !full {
			t.Fatalf("not valid any more: %v", spec.Validate(vm))
		}
		if m := c.Spec.CPUModel(); m != "" && vm.Spec.VM.CPUModel != m || m == "" && vm.Spec.VM.CPUModel != before.Spec.VM.CPUModel {
			t.Fatalf("the model is %s, that of the class %q", vm.Spec.VM.CPUModel, m)
		}
		for key, value := range before.Spec.NodeSelector {
			if vm.Spec.NodeSelector[key] != value && (c.Spec.NodeSelector == nil || c.Spec.NodeSelector.MatchLabels[key] != vm.Spec.NodeSelector[key]) {
				t.Fatalf("%s is %q", key, vm.Spec.NodeSelector[key])
			}
		}
		if n := c.Spec.NodeSelector; n != nil {
			for key, value := range n.MatchLabels {
				if vm.Spec.NodeSelector[key] != value {
					t.Fatalf("%s is %q", key, vm.Spec.NodeSelector[key])
				}
			}
			if len(n.MatchExpressions) > 0 {
				checkTerms(t, before, vm, n.MatchExpressions)
			}
		}
		if n := len(before.Spec.Tolerations); len(vm.Spec.Tolerations) < n || n > 0 && !cmp.Equal(vm.Spec.Tolerations[:n], before.Spec.Tolerations) {
			t.Fatalf("tolerations are %v, were %v", vm.Spec.Tolerations, before.Spec.Tolerations)
		}
		if vm.Spec.CoreFraction != before.Spec.CoreFraction && (before.Spec.CoreFraction != "" || vm.Spec.NamesCompute()) {
			t.Fatalf("the fraction becomes %s", vm.Spec.CoreFraction)
		}
		// A class with nothing in it changes nothing.
		if empty := before.DeepCopy(); len((&spec.VirtualMachineClassSpec{}).Apply(&empty.Spec)) > 0 || !cmp.Equal(empty, before) {
			t.Fatal(cmp.Diff(empty, before))
		}
	})
}

// checkTerms wants conditions in each term that is for any node.
func checkTerms(t *rapid.T, before, vm *spec.VirtualMachine, all []corev1.NodeSelectorRequirement) {
	were, terms := termsOf(before), termsOf(vm)
	if len(were) > 0 && len(terms) != len(were) || len(terms) == 0 {
		t.Fatalf("%d terms, were %d", len(terms), len(were))
	}
	for i, term := range terms {
		if len(were) > 0 && len(were[i].MatchExpressions)+len(were[i].MatchFields) == 0 {
			if len(term.MatchExpressions) > 0 {
				t.Fatalf("a term for no node is one for %v", term.MatchExpressions)
			}
			continue
		}
		for _, r := range all {
			if !slices.ContainsFunc(term.MatchExpressions, func(o corev1.NodeSelectorRequirement) bool { return reflect.DeepEqual(o, r) }) {
				t.Fatalf("%v lacks %v", term, r)
			}
		}
	}
}

func termsOf(vm *spec.VirtualMachine) []corev1.NodeSelectorTerm {
	a := vm.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// A machine whose size a class allows is within its ranges, counted another way.
func TestSizesThatAClassAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := spectest.Class().Draw(t, "class")
		vm := spec.NewVirtualMachine("default", "a")
		cpus := rapid.Int32Range(1, 20).Draw(t, "CPUs")
		vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CurrentCPUs = &cpus, &cpus
		ram := int64(rapid.IntRange(4, 8192).Draw(t, "RAM")) << 20
		vm.Spec.VM.MaximumRAM = resource.NewQuantity(ram, resource.BinarySI)
		if rapid.Bool().Draw(t, "fraction") {
			vm.Spec.CoreFraction = fmt.Sprintf("%d%%", rapid.IntRange(1, 100).Draw(t, "percent"))
		}
		spec.Default(vm)
		c.Spec.Apply(&vm.Spec)
		errs := c.Spec.CheckSize(&vm.Spec)
		allowed := len(c.Spec.SizingPolicies) == 0
		for _, p := range c.Spec.SizingPolicies {
			in := false
			for n := p.Cores.Min; n <= p.Cores.Max; n += max(p.Cores.Step, 1) {
				in = in || n == cpus
			}
			if m := p.Memory; m != nil {
				least := int64(0)
				if m.Min != nil {
					least = m.Min.Value()
				}
				in = in && ram >= least && (m.Max == nil || ram <= m.Max.Value()) && (m.Step == nil || (ram-least)%m.Step.Value() == 0)
				if m.PerCore != nil {
					in = in && (m.PerCore.Min == nil || ram/int64(cpus) >= m.PerCore.Min.Value()) &&
						(m.PerCore.Max == nil || ram <= int64(cpus)*m.PerCore.Max.Value())
				}
			}
			in = in && (len(p.CoreFractions) == 0 || slices.Contains(p.CoreFractions, vm.Spec.CoreFraction))
			allowed = allowed || in
		}
		if allowed != (len(errs) == 0) {
			t.Fatalf("allowed: %v, but: %v", allowed, errs)
		}
	})
}

// Whether ranges overlap does not depend on their order, and one that is within
// another does.
func TestRangesThatOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) spec.SizingPolicy {
			least := rapid.Int32Range(1, 12).Draw(t, name+".min")
			return spec.SizingPolicy{Cores: spec.CoreRange{Min: least, Max: least + rapid.Int32Range(0, 12).Draw(t, name+".max")}}
		}
		a, b := draw("a"), draw("b")
		common := false
		for n := int32(1); n <= 24; n++ {
			common = common || a.Cores.Min <= n && n <= a.Cores.Max && b.Cores.Min <= n && n <= b.Cores.Max
		}
		for _, both := range [][]spec.SizingPolicy{{a, b}, {b, a}} {
			c := spec.NewClass("a")
			c.Spec.SizingPolicies = both
			errs := spec.ValidateClass(c)
			if common != (len(errs) == 1) || common && errs[0].Field != "spec.sizingPolicies[1].cores" {
				t.Fatalf("common: %v, found: %v", common, errs)
			}
		}
	})
}

// All that is wrong with a class is told at once, each with its place.
func TestMistakesInAClass(t *testing.T) {
	text := `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachineClass
metadata:
  name: large
  namespace: apps
  annotations:
    vmoperator.jdrupes.org/is-default-class: "yes"
spec:
  cpu: {type: Model, features: [avx2]}
  nodeSelector:
    matchExpressions: [{key: "a b", operator: In}]
  tolerations: [{operator: Equal}]
  sizingPolicies:
  - cores: {min: 1, max: 8}
    memory: {min: 8Gi, max: 4Gi, step: 0}
    coreFractions: [10%, 20]
    defaultCoreFraction: 30%
  - cores: {min: 2, max: 3}
  - cores: {min: 9, max: 7}
`
	_, err := spec.Load("class.yaml", []byte(text), spec.Options{Validate: true})
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		`class.yaml:5: VirtualMachineClass apps/large: metadata.namespace: `,
		`class.yaml:7: VirtualMachineClass apps/large: metadata.annotations[vmoperator.jdrupes.org/is-default-class]: `,
		`class.yaml:9: VirtualMachineClass apps/large: spec.cpu.model: `,
		`class.yaml:9: VirtualMachineClass apps/large: spec.cpu.features: `,
		`spec.nodeSelector.matchExpressions[0].key: `, `spec.nodeSelector.matchExpressions[0].values: `,
		`spec.tolerations[0].operator: `,
		`class.yaml:15: VirtualMachineClass apps/large: spec.sizingPolicies[0].memory.min: `,
		`spec.sizingPolicies[0].memory.step: `, `spec.sizingPolicies[0].coreFractions[1]: `, `spec.sizingPolicies[0].defaultCoreFraction: `,
		`class.yaml:18: VirtualMachineClass apps/large: spec.sizingPolicies[1].cores: Invalid value: "2 to 3": overlaps spec.sizingPolicies[0].cores, which is from 1 to 8`,
		`spec.sizingPolicies[2].cores.min: `,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %s in\n%v", want, err)
		}
	}
}

// Of several defaults the newest counts, whatever their order.
func TestDefaultClass(t *testing.T) {
	class := func(name string, age int, marked string) spec.VirtualMachineClass {
		c := spec.NewClass(name)
		c.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000-age), 0))
		c.Annotations = map[string]string{names.AnnotationDefaultClass: marked}
		return *c
	}
	all := []spec.VirtualMachineClass{class("old", 9, "true"), class("b", 1, "true"), class("a", 1, "true"), class("new", 0, "false")}
	for range 2 {
		slices.Reverse(all)
		if c, others := spec.ClassOf("", all); c == nil || c.Name != "a" || !slices.Equal(others, []string{"b", "old"}) {
			t.Errorf("%v beside %v", c, others)
		}
		if c, others := spec.ClassOf("new", all); c == nil || c.Name != "new" || len(others) > 0 {
			t.Errorf("%v beside %v", c, others)
		}
	}
	if c, _ := spec.ClassOf("", all[:0]); c != nil {
		t.Errorf("%v of none", c)
	}
	if c, _ := spec.ClassOf("none", all); c != nil {
		t.Errorf("%v instead of none", c)
	}
}

// What a class overrules is told.
func TestWhatAClassOverrules(t *testing.T) {
	vm := spec.NewVirtualMachine("default", "a")
	vm.Spec.VM.CPUModel, vm.Spec.NodeSelector = "max", map[string]string{"zone": "a", "disk": "fast"}
	c := spec.NewClass("large")
	c.Spec.CPU = &spec.ClassCPU{Type: spec.ClassCPUFeatures, Features: []string{"avx2", "aes"}}
	c.Spec.NodeSelector = &spec.ClassNodeSelector{MatchLabels: map[string]string{"zone": "b"}}
	want := []string{"spec.vm.cpuModel is max, and that of the class counts, kvm64,+avx2,+aes", "spec.nodeSelector[zone] is a, and that of the class counts, b"}
	if got := c.Spec.Apply(&vm.Spec); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if vm.Spec.NodeSelector["zone"] != "b" || vm.Spec.NodeSelector["disk"] != "fast" {
		t.Errorf("%v", vm.Spec.NodeSelector)
	}
}
