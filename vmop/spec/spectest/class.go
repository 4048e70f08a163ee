package spectest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// Class generates classes that [spec.ValidateClass] finds nothing wrong with.
func Class() *rapid.Generator[*spec.VirtualMachineClass] {
	return rapid.Custom(func(t *rapid.T) *spec.VirtualMachineClass {
		c := &spec.VirtualMachineClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindClass},
			ObjectMeta: metav1.ObjectMeta{Name: Label().Draw(t, "name")},
		}
		if maybe(t, "default") {
			c.Annotations = map[string]string{names.AnnotationDefaultClass: rapid.SampledFrom([]string{"true", "false"}).Draw(t, "default")}
		}
		if maybe(t, "cpu") {
			c.Spec.CPU = drawClassCPU(t)
		}
		if maybe(t, "nodeSelector") {
			n := &spec.ClassNodeSelector{}
			if maybe(t, "matchLabels") {
				n.MatchLabels = drawLabels(t, "matchLabels", 64)
			}
			n.MatchExpressions = drawList(t, "matchExpressions", 3, 32, func(int) corev1.NodeSelectorRequirement { return NodeRequirement().Draw(t, "expression") })
			c.Spec.NodeSelector = n
		}
		c.Spec.Tolerations = drawTolerations(t)
		least := int32(1)
		for range count(t, "policies", 4, 16) {
			p := drawPolicy(t, least)
			least = p.Cores.Max + 1
			c.Spec.SizingPolicies = append(c.Spec.SizingPolicies, p)
		}
		if least > 1 && maybe(t, "the greatest") {
			last := &c.Spec.SizingPolicies[len(c.Spec.SizingPolicies)-1].Cores
			last.Max = limits.MaxCPUs
			if maybe(t, "the greatest alone") {
				last.Min = last.Max
			}
		}
		return c
	})
}

func drawClassCPU(t *rapid.T) *spec.ClassCPU {
	c := &spec.ClassCPU{Type: rapid.SampledFrom([]spec.ClassCPUType{
		spec.ClassCPUHost, spec.ClassCPUHostPassthrough, spec.ClassCPUModel, spec.ClassCPUFeatures,
	}).Draw(t, "type")}
	word := rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,12}`)
	switch c.Type {
	case spec.ClassCPUModel:
		c.Model = word.Draw(t, "model")
	case spec.ClassCPUFeatures:
		c.Features = rapid.SliceOfNDistinct(word, 1, 4, rapid.ID[string]).Draw(t, "features")
		if many(t, "features") {
			c.Features = nil
			for i := range 64 {
				c.Features = append(c.Features, fmt.Sprintf("_.%d", i))
			}
		}
	}
	return c
}

func drawPolicy(t *rapid.T, least int32) spec.SizingPolicy {
	var p spec.SizingPolicy
	p.Cores.Min = least + rapid.Int32Range(0, 3).Draw(t, "cores.min")
	p.Cores.Max = p.Cores.Min + rapid.Int32Range(0, 12).Draw(t, "cores.max")
	p.Cores.Step = rapid.OneOf(rapid.Int32Range(0, 4), rapid.Int32Range(0, limits.MaxCPUs)).Draw(t, "cores.step")
	if maybe(t, "memory") {
		m := &spec.MemoryRange{}
		m.Min, m.Max = drawMemory(t, "memory")
		if maybe(t, "memory.step") {
			m.Step = resource.NewQuantity(rapid.Int64Range(1, 1<<10).Draw(t, "memory.step")<<20, resource.BinarySI)
		}
		if maybe(t, "perCore") {
			m.PerCore = &spec.MemoryPerCore{}
			m.PerCore.Min, m.PerCore.Max = drawMemory(t, "perCore")
		}
		p.Memory = m
	}
	fraction := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("%d%%", rapid.IntRange(1, 100).Draw(t, "percent")) })
	p.CoreFractions = rapid.SliceOfNDistinct(fraction, 0, 4, rapid.ID[string]).Draw(t, "coreFractions")
	if many(t, "coreFractions") {
		p.CoreFractions = nil
		for i := range 100 { // all that there are
			p.CoreFractions = append(p.CoreFractions, fmt.Sprintf("%d%%", i+1))
		}
	}
	if maybe(t, "defaultCoreFraction") {
		if len(p.CoreFractions) > 0 {
			fraction = rapid.SampledFrom(p.CoreFractions)
		}
		p.DefaultCoreFraction = fraction.Draw(t, "defaultCoreFraction")
	}
	return p
}

func drawMemory(t *rapid.T, what string) (least, most *resource.Quantity) {
	low := rapid.Int64Range(1, 1<<12).Draw(t, what+".min") << 20
	if maybe(t, what+".min") {
		least = resource.NewQuantity(low, resource.BinarySI)
	}
	if maybe(t, what+".max") {
		most = resource.NewQuantity(low+rapid.Int64Range(0, 1<<40).Draw(t, what+".max"), resource.BinarySI)
	}
	return least, most
}
