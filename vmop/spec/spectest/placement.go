package spectest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

func drawCompute(t *rapid.T, s *spec.VirtualMachineSpec) {
	if maybe(t, "resources") {
		s.Resources = drawResources(t)
	}
	if !s.NamesCompute() && maybe(t, "coreFraction") {
		s.CoreFraction = fmt.Sprintf("%d%%", rapid.IntRange(1, 100).Draw(t, "coreFraction"))
	}
}

func drawResources(t *rapid.T) *corev1.ResourceRequirements {
	r := &corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(rapid.Int64Range(0, 64000).Draw(t, "milli-CPUs"), resource.DecimalSI),
		corev1.ResourceMemory: Bytes(0, 1<<40).Draw(t, "memory"),
	}}
	if maybe(t, "limits") {
		r.Limits = corev1.ResourceList{corev1.ResourceMemory: Bytes(1<<40, 1<<50).Draw(t, "memory limit")}
		if maybe(t, "CPU limit") {
			r.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(rapid.Int64Range(64000, 128000).Draw(t, "milli-CPUs at most"), resource.DecimalSI)
		}
		if maybe(t, "devices") { // which are requested as they are limited
			n := *resource.NewQuantity(rapid.Int64Range(0, 4).Draw(t, "devices"), resource.DecimalSI)
			r.Limits["example.org/gpu"], r.Requests["example.org/gpu"] = n, n
		}
	}
	return r
}

func drawPlacement(t *rapid.T, s *spec.VirtualMachineSpec) {
	if maybe(t, "nodeName") {
		s.NodeName = subdomain().Draw(t, "nodeName")
	}
	if maybe(t, "nodeSelector") {
		s.NodeSelector = drawLabels(t, "nodeSelector", 256)
	}
	if maybe(t, "affinity") {
		s.Affinity = drawAffinity(t)
	}
	if maybe(t, "tolerations") {
		s.Tolerations = append([]corev1.Toleration{}, drawTolerations(t)...)
	}
	if maybe(t, "topologySpreadConstraints") {
		s.TopologySpreadConstraints = drawSpreads(t)
	}
	if maybe(t, "terminationGracePeriodSeconds") {
		s.TerminationGracePeriodSeconds = drawTimeout(t, "terminationGracePeriodSeconds")
	}
	if maybe(t, "priorityClassName") {
		s.PriorityClassName = subdomain().Draw(t, "priorityClassName")
	}
}

func drawTimeout(t *rapid.T, what string) *int32 {
	return new(rapid.OneOf(rapid.Int32Range(0, 3600), rapid.Int32Range(0, limits.MaxPowerdownTimeout)).Draw(t, what))
}

func drawTolerations(t *rapid.T) []corev1.Toleration {
	return drawList(t, "tolerations", 3, 64, func(int) corev1.Toleration { return Toleration().Draw(t, "toleration") })
}

// drawSpreads draws constraints of which no two are about the same nodes.
func drawSpreads(t *rapid.T) []corev1.TopologySpreadConstraint {
	var out []corev1.TopologySpreadConstraint
	for i := range max(count(t, "spreads", 2, 16), 1) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: rapid.Int32Range(1, 100).Draw(t, "maxSkew"), TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable:  rapid.SampledFrom([]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}).Draw(t, "whenUnsatisfiable"),
			LabelSelector:      drawSelector(t, "spread"),
			NodeAffinityPolicy: drawInclusion(t, "nodeAffinityPolicy"),
			NodeTaintsPolicy:   drawInclusion(t, "nodeTaintsPolicy"),
		}
		if i > 0 {
			c.TopologyKey = fmt.Sprintf("example.org/place-%d", i)
		}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			c.MinDomains = drawInt(t, "minDomains", 1, 8)
		}
		if c.LabelSelector != nil && maybe(t, "matchLabelKeys") {
			c.MatchLabelKeys = []string{keyAlike}
		}
		out = append(out, c)
	}
	return out
}

func drawInclusion(t *rapid.T, what string) *corev1.NodeInclusionPolicy {
	if !maybe(t, what) {
		return nil
	}
	return new(rapid.SampledFrom([]corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}).Draw(t, what))
}

// The keys of labels that no selector is about: the values of a pod itself are added.
const (
	keyAlike   = "example.org/alike"
	keyUnalike = "example.org/unalike"
)

// drawSelector draws selectors of labels, also none, which is another thing than one of
// everything.
func drawSelector(t *rapid.T, what string) *metav1.LabelSelector {
	if !maybe(t, what) {
		return nil
	}
	s := &metav1.LabelSelector{MatchLabels: Labels().Draw(t, what)}
	if maybe(t, "matchExpressions") {
		r := metav1.LabelSelectorRequirement{Key: Label().Draw(t, "key"), Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
			metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
		}).Draw(t, "operator")}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = rapid.SliceOfN(Label(), 1, 2).Draw(t, "values")
		}
		s.MatchExpressions = []metav1.LabelSelectorRequirement{r}
	}
	return s
}

// drawAffinity draws one that Kubernetes takes.
func drawAffinity(t *rapid.T) *spec.Affinity {
	a := &spec.Affinity{}
	if maybe(t, "nodeAffinity") {
		a.NodeAffinity = drawNodeAffinity(t)
	}
	if maybe(t, "podAffinity") {
		required, preferred := drawTerms(t, 2)
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	}
	if maybe(t, "podAntiAffinity") {
		required, preferred := drawTerms(t, 2)
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	}
	machines := func(name string) *spec.VirtualMachineAndPodAffinity {
		if !maybe(t, name) {
			return nil
		}
		required, preferred := drawTerms(t, 32)
		out := &spec.VirtualMachineAndPodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
		for _, p := range preferred {
			out.PreferredDuringSchedulingIgnoredDuringExecution = append(out.PreferredDuringSchedulingIgnoredDuringExecution,
				spec.WeightedVirtualMachineAndPodAffinityTerm{Weight: p.Weight, Term: p.PodAffinityTerm})
		}
		return out
	}
	a.VirtualMachineAndPodAffinity = machines("virtualMachineAndPodAffinity")
	a.VirtualMachineAndPodAntiAffinity = machines("virtualMachineAndPodAntiAffinity")
	return a
}

func drawTerms(t *rapid.T, most int) (required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	required = drawList(t, "required", 1, most, func(int) corev1.PodAffinityTerm { return drawTerm(t) })
	preferred = drawList(t, "preferred", 1, most, func(int) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: drawWeight(t), PodAffinityTerm: drawTerm(t)}
	})
	return required, preferred
}

func drawWeight(t *rapid.T) int32 { return rapid.Int32Range(1, 100).Draw(t, "weight") }

func drawTerm(t *rapid.T) corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{
		LabelSelector:     drawSelector(t, "labelSelector"),
		NamespaceSelector: drawSelector(t, "namespaceSelector"),
		TopologyKey:       rapid.SampledFrom([]string{corev1.LabelHostname, corev1.LabelTopologyZone}).Draw(t, "topologyKey"),
	}
	if maybe(t, "namespaces") {
		term.Namespaces = rapid.SliceOfN(Label(), 1, 2).Draw(t, "namespaces")
	}
	if term.LabelSelector != nil && maybe(t, "matchLabelKeys") {
		term.MatchLabelKeys = []string{keyAlike}
	}
	if term.LabelSelector != nil && maybe(t, "mismatchLabelKeys") {
		term.MismatchLabelKeys = []string{keyUnalike}
	}
	return term
}

func drawNodeAffinity(t *rapid.T) *corev1.NodeAffinity {
	term := func(int) corev1.NodeSelectorTerm {
		var out corev1.NodeSelectorTerm
		out.MatchExpressions = rapid.SliceOfN(NodeRequirement(), 0, 2).Draw(t, "matchExpressions")
		if maybe(t, "matchFields") {
			out.MatchFields = []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}).Draw(t, "operator"),
				Values: []string{Label().Draw(t, "node")},
			}}
		}
		return out
	}
	out := &corev1.NodeAffinity{}
	if maybe(t, "required") {
		out.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: append([]corev1.NodeSelectorTerm{term(0)}, drawList(t, "terms", 1, 3, term)...),
		}
	}
	out.PreferredDuringSchedulingIgnoredDuringExecution = drawList(t, "preferred", 1, 3, func(int) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: drawWeight(t), Preference: term(0)}
	})
	return out
}

func drawLoadBalancerService(t *rapid.T) *spec.LoadBalancerService {
	values := func(what string) map[string]*string {
		var out map[string]*string
		for key, value := range Labels().Draw(t, what) {
			if out == nil {
				out = map[string]*string{}
			}
			out[key] = nil
			if len(value)%3 > 0 { // a mapping has no order that a draw could be in
				out[key] = &value
			}
		}
		return out
	}
	return &spec.LoadBalancerService{Labels: values("service labels"), Annotations: values("service annotations")}
}

// NodeRequirement generates conditions on the labels of nodes.
func NodeRequirement() *rapid.Generator[corev1.NodeSelectorRequirement] {
	return rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement {
		r := corev1.NodeSelectorRequirement{Key: Label().Draw(t, "key"), Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
			corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
		}).Draw(t, "operator")}
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			r.Values = rapid.SliceOfN(Label(), 1, 3).Draw(t, "values")
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			r.Values = []string{fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "value"))}
		}
		return r
	})
}
