package crdtest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// Where a machine may run is judged as Kubernetes judges the fields of pods of the same
// names: what the library takes makes no pod that the API server refuses, and what it
// refuses the API server would refuse, too. (It takes a topologyKey that no label can
// have; no node would take such a pod.)
func TestPlacementIsJudgedAsThatOfPods(t *testing.T) {
	client, _, err := connect() // it warns of constraints without a selector
	if err != nil {
		t.Fatal(err)
	}
	pods := client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("default")
	rapid.Check(t, func(rt *rapid.T) {
		word := func(name string, right ...string) string {
			return rapid.SampledFrom(append(right, "", "-", "A b", "a/b/c", strings.Repeat("a", 64))).Draw(rt, name)
		}
		vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "placed"}}
		s := &vm.Spec
		if rapid.Bool().Draw(rt, "tolerates") {
			tol := corev1.Toleration{
				Key: word("key", "dedicated", "example.org/gpu"), Value: word("value", "gpu", "1"),
				Operator: corev1.TolerationOperator(word("operator", "Equal", "Exists")), Effect: corev1.TaintEffect(word("effect", "NoSchedule", "NoExecute")),
			}
			if rapid.Bool().Draw(rt, "ends") {
				seconds := rapid.Int64Range(-1, 2).Draw(rt, "tolerationSeconds")
				tol.TolerationSeconds = &seconds
			}
			s.Tolerations = []corev1.Toleration{tol}
		}
		for range rapid.IntRange(0, 2).Draw(rt, "spreads") {
			c := corev1.TopologySpreadConstraint{
				MaxSkew: rapid.Int32Range(-1, 2).Draw(rt, "maxSkew"), TopologyKey: rapid.SampledFrom([]string{"", "zone", "example.org/rack"}).Draw(rt, "topologyKey"),
				WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(word("whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway")),
			}
			if rapid.Bool().Draw(rt, "selects") {
				c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{word("label", "app"): word("is", "a")}}
			}
			if rapid.Bool().Draw(rt, "has domains") {
				n := rapid.Int32Range(0, 2).Draw(rt, "minDomains")
				c.MinDomains = &n
			}
			if rapid.Bool().Draw(rt, "has policy") {
				p := corev1.NodeInclusionPolicy(word("nodeTaintsPolicy", "Honor", "Ignore"))
				c.NodeTaintsPolicy = &p
			}
			s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, c)
		}
		selector := func() *metav1.LabelSelector {
			switch rapid.IntRange(0, 2).Draw(rt, "selector") {
			case 0:
				return nil
			case 1:
				return &metav1.LabelSelector{MatchLabels: map[string]string{word("label", "app"): word("is", "a")}}
			}
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: word("label", "app"), Operator: metav1.LabelSelectorOperator(word("operator", "In", "Exists")), Values: []string{"a"}}}}
		}
		keys := func(name string) []string {
			if !rapid.Bool().Draw(rt, name) {
				return nil
			}
			return []string{word(name, "app", "tier")}
		}
		terms := func() (out []corev1.PodAffinityTerm) {
			for range rapid.IntRange(0, 1).Draw(rt, "terms") {
				term := corev1.PodAffinityTerm{
					LabelSelector: selector(), NamespaceSelector: selector(), TopologyKey: word("topologyKey", "zone", "example.org/rack"),
					MatchLabelKeys: keys("matchLabelKeys"), MismatchLabelKeys: keys("mismatchLabelKeys"),
				}
				if rapid.Bool().Draw(rt, "elsewhere") {
					term.Namespaces = []string{word("namespace", "other")}
				}
				out = append(out, term)
			}
			return out
		}
		weight := func() int32 { return rapid.Int32Range(-1, 101).Draw(rt, "weight") }
		nodes := func() corev1.NodeSelectorTerm {
			requirement := func(name string) []corev1.NodeSelectorRequirement {
				if !rapid.Bool().Draw(rt, name) {
					return nil
				}
				return []corev1.NodeSelectorRequirement{{
					Key: word("key", "zone", "metadata.name"), Operator: corev1.NodeSelectorOperator(word("operator", "In", "NotIn", "Exists", "DoesNotExist", "Gt")),
					Values: rapid.SliceOfN(rapid.Custom(func(*rapid.T) string { return word("value", "a", "7") }), 0, 2).Draw(rt, "values"),
				}}
			}
			return corev1.NodeSelectorTerm{MatchExpressions: requirement("matchExpressions"), MatchFields: requirement("matchFields")}
		}
		if rapid.Bool().Draw(rt, "affinity") {
			s.Affinity = &spec.Affinity{}
			if rapid.Bool().Draw(rt, "nodeAffinity") {
				s.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
				if r := s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; rapid.Bool().Draw(rt, "required") {
					r.NodeSelectorTerms = []corev1.NodeSelectorTerm{nodes()}
				} else {
					s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
					s.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: weight(), Preference: nodes()}}
				}
			}
			s.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()}
			for _, term := range terms() {
				s.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: weight(), PodAffinityTerm: term}}
			}
			s.Affinity.VirtualMachineAndPodAntiAffinity = &spec.VirtualMachineAndPodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()}
			for _, term := range terms() {
				s.Affinity.VirtualMachineAndPodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []spec.WeightedVirtualMachineAndPodAffinityTerm{{Weight: weight(), Term: term}}
			}
		}
		defaulted := vm.DeepCopy()
		spec.Default(defaulted)
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "placed", Namespace: "default"},
			Spec: corev1.PodSpec{
				Containers:  []corev1.Container{{Name: "a", Image: "a"}},
				Affinity:    objects.Pod(defaulted, objects.Settings{}, objects.PodInput{}).Spec.Affinity,
				Tolerations: s.Tolerations, TopologySpreadConstraints: s.TopologySpreadConstraints,
			},
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			rt.Fatal(err)
		}
		_, refusal := pods.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		var found []string
		for _, e := range spec.Validate(vm) {
			if strings.HasPrefix(e.Field, "spec.tolerations") || strings.HasPrefix(e.Field, "spec.affinity") || strings.HasPrefix(e.Field, "spec.topologySpreadConstraints") {
				found = append(found, e.Error())
			}
		}
		if (refusal == nil) != (len(found) == 0) {
			rt.Fatalf("the API server says: %v\nthe library says: %q", refusal, found)
		}
	})
}
