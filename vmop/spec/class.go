package spec

import (
	"cmp"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
)

func classKind() Kind {
	return typed(Kind{
		Name: KindClass, Plural: ResourceClasses, noun: "class",
		NewList:   func() runtime.Object { return &VirtualMachineClassList{} },
		defaulted: func(reflect.Type) []string { return nil },
	}, functions[*VirtualMachineClass]{
		setDefaults: func(*VirtualMachineClass) {}, // it has none
		validate:    ValidateClass,
	})
}

// NewClass is [NewVirtualMachine] for a class.
func NewClass(name string) *VirtualMachineClass {
	c := &VirtualMachineClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.SetGroupVersionKind(GroupVersion().WithKind(KindClass))
	return c
}

// IsDefault reports whether the class is marked as that of machines that name none.
func (c *VirtualMachineClass) IsDefault() bool {
	return c.Annotations[names.AnnotationDefaultClass] == "true"
}

// ClassOf is the class of a machine among some: that of the name, or if that is empty
// the default. Of several that are marked as the default it is the newest, and of
// those that are equally old the first by name, as with Kubernetes' storage classes;
// the names of the others are returned beside it. It is nil if there is none.
func ClassOf(name string, classes []VirtualMachineClass) (class *VirtualMachineClass, others []string) {
	var fits []*VirtualMachineClass
	for i := range classes {
		if c := &classes[i]; name != "" && c.Name == name || name == "" && c.IsDefault() {
			fits = append(fits, c)
		}
	}
	if len(fits) == 0 {
		return nil, nil
	}
	slices.SortFunc(fits, func(a, b *VirtualMachineClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range fits[1:] {
		others = append(others, c.Name)
	}
	slices.Sort(others)
	return fits[0], others
}

// featuresModel is the CPU model that features are added to.
const featuresModel = "kvm64"

// CPUModel is what the class makes of vm.cpuModel; empty if it leaves it as it is.
func (s *VirtualMachineClassSpec) CPUModel() string {
	switch c := s.CPU; {
	case c == nil:
	case c.Type == ClassCPUHost, c.Type == ClassCPUHostPassthrough:
		return "host"
	case c.Type == ClassCPUModel:
		return c.Model
	case c.Type == ClassCPUFeatures:
		return featuresModel + ",+" + strings.Join(c.Features, ",+")
	}
	return ""
}

// Apply makes a specification, which has its defaults, that of a machine of the class,
// and returns what the class has overruled, each in a sentence. Done twice it is done
// once. The class shares nothing with the specification afterwards.
func (s *VirtualMachineClassSpec) Apply(to *VirtualMachineSpec) (overruled []string) {
	if to == nil {
		return nil
	}
	if model := s.CPUModel(); model != "" {
		// The definition's default cannot be told from an author's choice.
		if was := to.VM.CPUModel; was != model && was != "" && was != "host" {
			overruled = append(overruled, fmt.Sprintf("spec.vm.cpuModel is %s, and that of the class counts, %s", was, model))
		}
		to.VM.CPUModel = model
	}
	if n := s.NodeSelector; n != nil {
		for _, key := range sortedKeys(n.MatchLabels) {
			value := n.MatchLabels[key]
			if was, has := to.NodeSelector[key]; has && was != value {
				overruled = append(overruled, fmt.Sprintf("spec.nodeSelector[%s] is %s, and that of the class counts, %s", key, was, value))
			}
			if to.NodeSelector == nil {
				to.NodeSelector = map[string]string{}
			}
			to.NodeSelector[key] = value
		}
		requireNodes(to, n.MatchExpressions)
	}
	for i := range s.Tolerations {
		t := s.Tolerations[i].DeepCopy()
		if !slices.ContainsFunc(to.Tolerations, func(o corev1.Toleration) bool { return reflect.DeepEqual(o, *t) }) {
			to.Tolerations = append(to.Tolerations, *t)
		}
	}
	if p := s.policy(currentCPUs(to)); p != nil && to.CoreFraction == "" && !to.NamesCompute() {
		to.CoreFraction = p.DefaultCoreFraction
	}
	return overruled
}

// requireNodes adds conditions to each of the terms of which one must hold for a node.
// A term without any condition holds for none, and stays so.
func requireNodes(to *VirtualMachineSpec, all []corev1.NodeSelectorRequirement) {
	if len(all) == 0 {
		return
	}
	if to.Affinity == nil {
		to.Affinity = &Affinity{}
	}
	if to.Affinity.NodeAffinity == nil {
		to.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := to.Affinity.NodeAffinity
	if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{*all[0].DeepCopy()},
		}}}
	}
	terms := node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		t := &terms[i]
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
			continue
		}
		for j := range all {
			r := all[j].DeepCopy()
			if !slices.ContainsFunc(t.MatchExpressions, func(o corev1.NodeSelectorRequirement) bool { return reflect.DeepEqual(o, *r) }) {
				t.MatchExpressions = append(t.MatchExpressions, *r)
			}
		}
	}
}

func currentCPUs(s *VirtualMachineSpec) int32 {
	if s.VM.CurrentCPUs == nil {
		return 1
	}
	return *s.VM.CurrentCPUs
}

// policy is the one for a number of CPUs, nil if there is none.
func (s *VirtualMachineClassSpec) policy(cores int32) *SizingPolicy {
	for i := range s.SizingPolicies {
		if p := &s.SizingPolicies[i]; p.Cores.Min <= cores && cores <= p.Cores.Max {
			return p
		}
	}
	return nil
}

// CheckSize returns how the size of a machine, to which the class was applied, differs from the
// sizes that the class allows; nothing if it is one of them.
func (s *VirtualMachineClassSpec) CheckSize(vm *VirtualMachineSpec) field.ErrorList {
	if len(s.SizingPolicies) == 0 {
		return nil
	}
	path, cores := paths(true).at("spec"), currentCPUs(vm)
	at := path.Child("vm", "currentCpus")
	p := s.policy(cores)
	if p == nil {
		var ranges []string
		for i := range s.SizingPolicies {
			c := &s.SizingPolicies[i].Cores
			ranges = append(ranges, fmt.Sprintf("%d to %d", c.Min, c.Max))
		}
		return field.ErrorList{invalidAt(at, cores, "the class has no sizes for this number of CPUs, but for "+strings.Join(ranges, ", "))}
	}
	var errs field.ErrorList
	if p.Cores.Step > 1 && (cores-p.Cores.Min)%p.Cores.Step != 0 {
		errs = append(errs, invalidAt(at, cores, fmt.Sprintf("must be %d and a multiple of %d more, at most %d", p.Cores.Min, p.Cores.Step, p.Cores.Max)))
	}
	errs = append(errs, p.checkMemory(vm, cores, path)...)
	return append(errs, p.checkFraction(vm, path)...)
}

func (p *SizingPolicy) checkMemory(vm *VirtualMachineSpec, cores int32, path spot) field.ErrorList {
	m := p.Memory
	at, has := path.Child("vm", "currentRam"), vm.VM.CurrentRAM
	if has == nil {
		at, has = path.Child("vm", "maximumRam"), vm.VM.MaximumRAM
	}
	if m == nil || has == nil {
		return nil
	}
	var errs field.ErrorList
	size := uint64(max(Bytes(*has), 0))
	bound := func(q *resource.Quantity, times uint64) uint64 {
		high, low := bits.Mul64(uint64(max(Bytes(*q), 0)), times)
		if high > 0 {
			return 1<<64 - 1
		}
		return low
	}
	least, most := uint64(0), uint64(1<<64-1)
	for _, r := range []struct {
		min, max *resource.Quantity
		times    uint64
		of       string
	}{{m.Min, m.Max, 1, ""}, {m.perCore().Min, m.perCore().Max, uint64(max(cores, 1)), fmt.Sprintf(" for each CPU, of which there are %d", cores)}} {
		if r.min != nil && size < bound(r.min, r.times) {
			errs = append(errs, invalidAt(at, has.String(), "must be at least "+r.min.String()+r.of))
		}
		if r.max != nil && size > bound(r.max, r.times) {
			errs = append(errs, invalidAt(at, has.String(), "must be at most "+r.max.String()+r.of))
		}
	}
	if m.Min != nil {
		least = bound(m.Min, 1)
	}
	if m.Max != nil {
		most = bound(m.Max, 1)
	}
	if m.Step != nil && size >= least && size <= most {
		if step := bound(m.Step, 1); step > 0 && (size-least)%step != 0 {
			from := "0"
			if m.Min != nil {
				from = m.Min.String()
			}
			errs = append(errs, invalidAt(at, has.String(), fmt.Sprintf("must be %s and a multiple of %s more", from, m.Step.String())))
		}
	}
	return errs
}

func (m *MemoryRange) perCore() *MemoryPerCore {
	if m.PerCore == nil {
		return &MemoryPerCore{}
	}
	return m.PerCore
}

func (p *SizingPolicy) checkFraction(vm *VirtualMachineSpec, path spot) field.ErrorList {
	allowed := strings.Join(p.CoreFractions, ", ")
	switch {
	case len(p.CoreFractions) == 0 || slices.Contains(p.CoreFractions, vm.CoreFraction):
		return nil
	case vm.NamesCompute():
		return field.ErrorList{forbiddenAt(path.Child("resources"), "must not name cpu or memory: the class says which part of a CPU is requested, by spec.coreFraction of "+allowed)}
	case vm.CoreFraction == "":
		return field.ErrorList{requiredAt(path.Child("coreFraction"), "must be one of "+allowed+"; the class has no default")}
	}
	return field.ErrorList{notSupportedAt(path.Child("coreFraction"), vm.CoreFraction, p.CoreFractions)}
}

// ValidateClass is [Validate] for a class.
func ValidateClass(c *VirtualMachineClass) field.ErrorList {
	if c == nil {
		return missing(KindClass)
	}
	var errs field.ErrorList
	meta, path := paths(true).at("metadata"), paths(true).at("spec")
	if c.Name == "" {
		errs = append(errs, requiredAt(meta.Child("name"), "a class needs a name"))
	} else {
		errs = append(errs, invalid(meta.Child("name"), c.Name, isSubdomain)...)
	}
	if c.Namespace != "" {
		errs = append(errs, forbiddenAt(meta.Child("namespace"), "a class is the cluster's, and in no namespace"))
	}
	if value, marked := c.Annotations[names.AnnotationDefaultClass]; marked && value != "true" && value != "false" {
		errs = append(errs, invalidAt(meta.Child("annotations").Key(names.AnnotationDefaultClass), value, `must be "true" or "false"`))
	}
	if c.Spec.CPU != nil {
		errs = append(errs, validateClassCPU(&c.Spec, path.Child("cpu"))...)
	}
	if n := c.Spec.NodeSelector; n != nil {
		at := path.Child("nodeSelector")
		errs = append(errs, tooMany(at.Child("matchLabels"), len(n.MatchLabels), 64)...)
		errs = append(errs, validateLabels(n.MatchLabels, at.Child("matchLabels"))...)
		errs = append(errs, tooMany(at.Child("matchExpressions"), len(n.MatchExpressions), 32)...)
		for i := range n.MatchExpressions {
			errs = append(errs, validateNodeRequirement(&n.MatchExpressions[i], at.Child("matchExpressions").Index(i))...)
		}
	}
	errs = append(errs, tooMany(path.Child("tolerations"), len(c.Spec.Tolerations), 64)...)
	for i := range c.Spec.Tolerations {
		errs = append(errs, validateToleration(&c.Spec.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	errs = append(errs, tooMany(path.Child("sizingPolicies"), len(c.Spec.SizingPolicies), 16)...)
	for i := range c.Spec.SizingPolicies {
		p, at := &c.Spec.SizingPolicies[i], path.Child("sizingPolicies").Index(i)
		errs = append(errs, p.validate(at)...)
		for j := range c.Spec.SizingPolicies[:i] {
			if o := &c.Spec.SizingPolicies[j]; p.overlaps(o) {
				errs = append(errs, invalidAt(at.Child("cores"), fmt.Sprintf("%d to %d", p.Cores.Min, p.Cores.Max),
					fmt.Sprintf("overlaps %s, which is from %d to %d: each number of CPUs must have one policy", path.Child("sizingPolicies").Index(j).Child("cores"), o.Cores.Min, o.Cores.Max)))
			}
		}
	}
	return errs
}

func tooMany(path spot, n, most int) field.ErrorList {
	if n <= most {
		return nil
	}
	return field.ErrorList{field.TooMany(path.path, n, most)}
}

func validateClassCPU(s *VirtualMachineClassSpec, path spot) field.ErrorList {
	c := s.CPU
	errs := oneOf(path.Child("type"), c.Type, ClassCPUHost, ClassCPUHostPassthrough, ClassCPUModel, ClassCPUFeatures)
	if c.Type == "Discovery" { // which Deckhouse has
		errs = field.ErrorList{invalidAt(path.Child("type"), c.Type, fmt.Sprintf("what nodes have in common is not found out here; type Model with the model %s, %s or %s is what processors of that level have",
			limits.CPULevel2, limits.CPULevel3, limits.CPULevel4))}
	}
	switch {
	case c.Type == ClassCPUModel && c.Model == "":
		errs = append(errs, requiredAt(path.Child("model"), "type Model needs the name of one of QEMU's CPU models, such as Skylake-Server-v4"))
	case c.Type != ClassCPUModel && c.Model != "":
		errs = append(errs, forbiddenAt(path.Child("model"), "is for type Model"))
	}
	switch {
	case c.Type == ClassCPUFeatures && len(c.Features) == 0:
		errs = append(errs, requiredAt(path.Child("features"), "type Features needs at least one feature, such as avx2"))
	case c.Type != ClassCPUFeatures && len(c.Features) > 0:
		errs = append(errs, forbiddenAt(path.Child("features"), "are for type Features"))
	}
	const name = "must be a name of QEMU's: letters, digits, and . _ - but at the beginning"
	word := func(text string, most int, at spot) {
		switch {
		case len(text) > most:
			errs = append(errs, tooLongAt(at, text, most))
		case text == "" || strings.Contains(text, ",") || strings.ContainsAny(text, "=+") || limits.CPUModel(text) != nil:
			errs = append(errs, invalidAt(at, text, name))
		}
	}
	if c.Model != "" {
		word(c.Model, 64, path.Child("model"))
	}
	errs = append(errs, tooMany(path.Child("features"), len(c.Features), 64)...)
	for i, f := range c.Features {
		at := path.Child("features").Index(i)
		word(f, 32, at)
		if slices.Contains(c.Features[:i], f) {
			errs = append(errs, duplicateAt(at, f))
		}
	}
	if model := s.CPUModel(); len(errs) == 0 {
		errs = append(errs, limited(path, model, limits.CPUModel(model))...)
	}
	return errs
}

func validateNodeRequirement(r *corev1.NodeSelectorRequirement, path spot) field.ErrorList {
	errs := invalid(path.Child("key"), r.Key, isQualifiedName)
	errs = append(errs, oneOf(path.Child("operator"), r.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
		corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)...)
	at := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, requiredAt(at, "operator "+string(r.Operator)+" needs values"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, forbiddenAt(at, "must not be given with operator "+string(r.Operator)))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			errs = append(errs, requiredAt(at, "operator "+string(r.Operator)+" needs one value, a number"))
		}
	}
	for i, v := range r.Values {
		errs = append(errs, invalid(at.Index(i), v, isLabelValue)...)
	}
	return errs
}

func (p *SizingPolicy) overlaps(o *SizingPolicy) bool {
	return p.Cores.Min <= o.Cores.Max && o.Cores.Min <= p.Cores.Max
}

func (p *SizingPolicy) validate(path spot) field.ErrorList {
	at := path.Child("cores")
	errs := inRange(at.Child("min"), int64(p.Cores.Min), 1, limits.MaxCPUs)
	errs = append(errs, inRange(at.Child("max"), int64(p.Cores.Max), 1, limits.MaxCPUs)...)
	errs = append(errs, inRange(at.Child("step"), int64(p.Cores.Step), 0, limits.MaxCPUs)...)
	if p.Cores.Min > p.Cores.Max {
		errs = append(errs, invalidAt(at.Child("min"), p.Cores.Min, fmt.Sprintf("must not be greater than max, which is %d", p.Cores.Max)))
	}
	if m := p.Memory; m != nil {
		errs = append(errs, validateMemoryRange(m.Min, m.Max, path.Child("memory"))...)
		errs = append(errs, validateMemoryRange(m.perCore().Min, m.perCore().Max, path.Child("memory", "perCore"))...)
		if m.Step != nil {
			step := validateBytes(*m.Step, path.Child("memory", "step"))
			if len(step) == 0 && m.Step.Sign() == 0 {
				step = append(step, invalidAt(path.Child("memory", "step"), m.Step.String(), "must be greater than 0"))
			}
			errs = append(errs, step...)
		}
	}
	errs = append(errs, tooMany(path.Child("coreFractions"), len(p.CoreFractions), 100)...)
	for i, f := range p.CoreFractions {
		at := path.Child("coreFractions").Index(i)
		if n, err := ParseCoreFraction(f); err != nil || n == 0 {
			errs = append(errs, invalidAt(at, f, "must be a percentage from 1% to 100%, such as 20%"))
		}
		if slices.Contains(p.CoreFractions[:i], f) {
			errs = append(errs, duplicateAt(at, f))
		}
	}
	at = path.Child("defaultCoreFraction")
	if _, err := ParseCoreFraction(p.DefaultCoreFraction); err != nil {
		errs = append(errs, invalidAt(at, p.DefaultCoreFraction, err.Error()))
	} else if p.DefaultCoreFraction != "" && len(p.CoreFractions) > 0 && !slices.Contains(p.CoreFractions, p.DefaultCoreFraction) {
		errs = append(errs, notSupportedAt(at, p.DefaultCoreFraction, p.CoreFractions))
	}
	return errs
}

func validateMemoryRange(least, most *resource.Quantity, path spot) field.ErrorList {
	var errs field.ErrorList
	for _, b := range []struct {
		name string
		q    *resource.Quantity
	}{{"min", least}, {"max", most}} {
		if b.q != nil {
			errs = append(errs, validateBytes(*b.q, path.Child(b.name))...)
		}
	}
	if len(errs) == 0 && least != nil && most != nil && CompareQuantities(*least, *most) > 0 {
		errs = append(errs, invalidAt(path.Child("min"), least.String(), "must not be greater than max, which is "+inUnitsOf(*most)))
	}
	return errs
}
