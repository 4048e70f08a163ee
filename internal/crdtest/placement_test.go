package crdtest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

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
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "placed", Namespace: "default"},
			Spec: corev1.PodSpec{
				Containers:  []corev1.Container{{Name: "a", Image: "a"}},
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
			if strings.HasPrefix(e.Field, "spec.tolerations") || strings.HasPrefix(e.Field, "spec.topologySpreadConstraints") {
				found = append(found, e.Error())
			}
		}
		if (refusal == nil) != (len(found) == 0) {
			rt.Fatalf("the API server says: %v\nthe library says: %q", refusal, found)
		}
	})
}
