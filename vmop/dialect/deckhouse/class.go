package deckhouse

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// ClassKind is the kind that [TranslateClass] accepts, with its group.
const ClassKind = kindClass + "." + Group

const (
	kindClass = "VirtualMachineClass"
	// defaultClass is the annotation of the class of machines that name none.
	defaultClass = "virtualmachineclass." + Group + "/is-default-class"
	// baseline stands in for what Deckhouse's Discovery would find on the nodes of an unknown
	// cluster.
	baseline  = limits.CPULevel2
	mostCores = 1024
)

// TranslateClass translates a class, and returns notes on what of it has no counterpart or another
// meaning. Where the specification leaves the CPU to Discovery, the features in the status are
// used.
func TranslateClass(o *spec.Object) (*spec.VirtualMachineClass, []spec.Problem, error) {
	root, err := tree.New(o)
	if err != nil {
		return nil, nil, err
	}
	meta := root.Get("metadata")
	c := spec.NewClass(meta.Get("name").String())
	c.Labels = meta.Get("labels").Strings()
	c.Annotations = classAnnotations(meta.Get("annotations"))
	for _, name := range []string{"apiVersion", "kind", "status"} {
		root.Get(name).ReadAll()
	}
	for _, name := range tree.ServerMade {
		meta.Get(name).ReadAll()
	}
	s := root.Get("spec")
	s.Read()
	c.Spec.CPU = classCPU(s.Get("cpu"), root.Get("status", "cpuFeatures", "enabled"))
	if n := s.Get("nodeSelector"); n.Is() {
		n.Read()
		nodes := &spec.ClassNodeSelector{MatchLabels: n.Get("matchLabels").Strings()}
		var expressions []corev1.NodeSelectorRequirement
		if n.Get("matchExpressions").Decode(&expressions) {
			nodes.MatchExpressions = expressions
		}
		if len(nodes.MatchLabels)+len(nodes.MatchExpressions) > 0 {
			c.Spec.NodeSelector = nodes
		}
	}
	var tolerations []corev1.Toleration
	if s.Get("tolerations").Decode(&tolerations) {
		c.Spec.Tolerations = tolerations
	}
	for _, p := range s.Get("sizingPolicies").List() {
		c.Spec.SizingPolicies = append(c.Spec.SizingPolicies, sizingPolicy(p))
	}
	return c, root.Notes(unread), nil
}

func classAnnotations(n *tree.Node) map[string]string {
	mark := n.Get(defaultClass)
	value := mark.String()
	all := n.Strings()
	if mark.Is() {
		delete(all, defaultClass)
		switch value {
		case "true", "false":
			all[names.AnnotationDefaultClass] = value
		default:
			mark.Note("is %q, and is left out: only \"true\" makes a class the default", value)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func classCPU(n, discovered *tree.Node) *spec.ClassCPU {
	if !n.Is() {
		return nil
	}
	cpu := &spec.ClassCPU{Type: spec.ClassCPUType(n.Get("type").String())}
	switch cpu.Type {
	case spec.ClassCPUHost:
		n.Get("type").Note("is the processor of the node as it is: machines move between nodes with the same processor only. Model with a baseline such as %s is for others", baseline)
	case spec.ClassCPUHostPassthrough:
	case spec.ClassCPUModel:
		cpu.Model = n.Get("model").String()
	case spec.ClassCPUFeatures:
		cpu.Features = features(n.Get("features"))
	case "Discovery":
		return discovery(n, features(discovered))
	default:
		n.Note("has the type %q, which has no counterpart, and is left out: vm.cpuModel of the machines counts", string(cpu.Type))
		return nil
	}
	return cpu
}

// discovery translates a model of the features that nodes have in common. Nodes are not inspected
// here: the features that Deckhouse found are used, or the baseline.
func discovery(n *tree.Node, found []string) *spec.ClassCPU {
	const unseen = "what nodes have in common is not found out here"
	if len(found) == 0 {
		n.Note(unseen+", and no status says what was found; the class has the baseline %s. Newer nodes have %s or %s; and with its status (kubectl get vmclass NAME -o yaml) the class gets the features that were found",
			baseline, limits.CPULevel3, limits.CPULevel4)
		return &spec.ClassCPU{Type: spec.ClassCPUModel, Model: baseline}
	}
	beyond := slices.DeleteFunc(slices.Clone(found), func(f string) bool { return slices.Contains(everyones, f) })
	cpu := &spec.ClassCPU{Type: spec.ClassCPUFeatures, Features: beyond}
	tried := spec.NewClass("tried")
	tried.Spec.CPU = cpu
	if len(spec.ValidateClass(tried)) == 0 {
		n.Note(unseen+"; the class has the %d features that its status says were found", len(found))
		return cpu
	}
	level := limits.CPULevelOf(found)
	if level == "" {
		level = baseline
	}
	n.Note(unseen+"; the %d features that its status says were found are not a list that a class can have, and it has the baseline %s", len(found), level)
	return &spec.ClassCPU{Type: spec.ClassCPUModel, Model: level}
}

var everyones = []string{
	"fpu", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic", "sep", "mtrr", "pge", "mca", "cmov", "pat", "pse36",
	"clflush", "mmx", "fxsr", "sse", "sse2", "pni", "cx16", "syscall", "nx", "lm",
}

func features(n *tree.Node) []string {
	var all []string
	for _, f := range n.List() {
		if name := f.String(); name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func sizingPolicy(n *tree.Node) spec.SizingPolicy {
	var p spec.SizingPolicy
	cores := n.Get("cores")
	if cores.Is() {
		p.Cores.Min, _ = cores.Get("min").Int()
		p.Cores.Max, _ = cores.Get("max").Int()
		p.Cores.Step, _ = cores.Get("step").Int()
	} else {
		p.Cores = spec.CoreRange{Min: 1, Max: mostCores}
		n.Note("does not say which numbers of CPUs it is about; it is about all up to %d", mostCores)
	}
	if m := n.Get("memory"); m.Is() {
		m.Read()
		p.Memory = &spec.MemoryRange{Min: amount(m.Get("min")), Max: amount(m.Get("max")), Step: amount(m.Get("step"))}
		if each := m.Get("perCore"); each.Is() {
			each.Read()
			p.Memory.PerCore = &spec.MemoryPerCore{Min: amount(each.Get("min")), Max: amount(each.Get("max"))}
		}
	}
	for _, f := range n.Get("coreFractions").List() {
		if percent := percentage(f); percent != "" && !slices.Contains(p.CoreFractions, percent) {
			p.CoreFractions = append(p.CoreFractions, percent)
		}
	}
	p.DefaultCoreFraction = percentage(n.Get("defaultCoreFraction"))
	for _, d := range n.Get("dedicatedCores").List() {
		if dedicated, ok := d.Bool(); ok && dedicated {
			d.Note("no machine has CPUs for itself here")
		}
	}
	return p
}

func defaultCoreFraction(class *tree.Node, cores int32) string {
	for _, n := range class.Get("spec", "sizingPolicies").List() {
		if p := sizingPolicy(n); p.Cores.Min <= cores && cores <= p.Cores.Max {
			return p.DefaultCoreFraction
		}
	}
	return ""
}

// amount returns a bound; nil for 0, which means unbounded there.
func amount(n *tree.Node) *resource.Quantity {
	q, ok := n.Quantity()
	if !ok || q.IsZero() {
		return nil
	}
	return &q
}

// percentage returns a part of a CPU in our form; v1alpha2 has numbers.
func percentage(n *tree.Node) string {
	text := n.String()
	if text == "" {
		return ""
	}
	percent := strings.TrimSuffix(text, "%") + "%"
	if part, err := spec.ParseCoreFraction(percent); err != nil || part == 0 {
		n.Note("is %q, expected a percentage from 1%% to 100%%; it is left out", text)
		return ""
	}
	return percent
}
