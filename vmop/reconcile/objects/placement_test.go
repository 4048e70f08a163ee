package objects_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

// terms are what an affinity says of others: with and without whom something runs, and
// whom it would rather run with (or, with a negative weight, without).
type terms struct {
	with, without []corev1.PodAffinityTerm
	rather        []corev1.WeightedPodAffinityTerm
}

func (t *terms) add(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, sign int32) {
	if sign > 0 {
		t.with = append(t.with, required...)
	} else {
		t.without = append(t.without, required...)
	}
	for _, p := range preferred {
		p.Weight *= sign
		t.rather = append(t.rather, p)
	}
}

// ofMachine are the terms as the manifest has them.
func ofMachine(a *spec.Affinity) *terms {
	t := &terms{}
	if p := a.PodAffinity; p != nil {
		t.add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, 1)
	}
	if p := a.PodAntiAffinity; p != nil {
		t.add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, -1)
	}
	for sign, m := range map[int32]*spec.VirtualMachineAndPodAffinity{1: a.VirtualMachineAndPodAffinity, -1: a.VirtualMachineAndPodAntiAffinity} {
		if m == nil {
			continue
		}
		var preferred []corev1.WeightedPodAffinityTerm
		for _, p := range m.PreferredDuringSchedulingIgnoredDuringExecution {
			preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: p.Weight, PodAffinityTerm: p.Term})
		}
		t.add(m.RequiredDuringSchedulingIgnoredDuringExecution, preferred, sign)
	}
	return t
}

// place says as Kubernetes' scheduler does whether a node may be taken on which others
// have these labels, and how much it is wanted.
func (t *terms) place(tb rapid.TB, others []map[string]string) (may bool, score int32) {
	matched := func(term *corev1.PodAffinityTerm) bool {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			tb.Fatal(err)
		}
		return slices.ContainsFunc(others, func(l map[string]string) bool { return selector.Matches(labels.Set(l)) })
	}
	may = true
	for i := range t.with {
		may = may && matched(&t.with[i])
	}
	for i := range t.without {
		may = may && !matched(&t.without[i])
	}
	for i := range t.rather {
		if matched(&t.rather[i].PodAffinityTerm) {
			score += t.rather[i].Weight
		}
	}
	return may, score
}

// What a manifest says of machines is said of their pods: next to whom a machine must
// run, and would rather run, and apart from whom.
func TestMachinesArePlacedByTheLabelsOfMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.Spec.VM.Display = nil // whose certificate somebody would have to make
		spec.Default(vm)
		draw := func(what string) *spec.VirtualMachineAndPodAffinity {
			out := &spec.VirtualMachineAndPodAffinity{}
			term := func() corev1.PodAffinityTerm {
				app := rapid.SampledFrom([]string{"database", "web"}).Draw(t, what)
				return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"server": app}}, TopologyKey: corev1.LabelHostname}
			}
			for range rapid.IntRange(0, 2).Draw(t, what+" required") {
				out.RequiredDuringSchedulingIgnoredDuringExecution = append(out.RequiredDuringSchedulingIgnoredDuringExecution, term())
			}
			for range rapid.IntRange(0, 2).Draw(t, what+" preferred") {
				out.PreferredDuringSchedulingIgnoredDuringExecution = append(out.PreferredDuringSchedulingIgnoredDuringExecution,
					spec.WeightedVirtualMachineAndPodAffinityTerm{Weight: rapid.Int32Range(1, 100).Draw(t, "weight"), Term: term()})
			}
			return out
		}
		if vm.Spec.Affinity == nil {
			vm.Spec.Affinity = &spec.Affinity{}
		}
		if rapid.Bool().Draw(t, "with") {
			vm.Spec.Affinity.VirtualMachineAndPodAffinity = draw("with")
		}
		if rapid.Bool().Draw(t, "apart") {
			vm.Spec.Affinity.VirtualMachineAndPodAntiAffinity = draw("apart")
		}
		written := vm.Spec.Affinity.DeepCopy()
		pod := objects.Pod(vm, objects.Settings{}, objects.PodInput{})
		if diff := cmp.Diff(written, vm.Spec.Affinity); diff != "" {
			t.Fatalf("the manifest is changed: %s", diff)
		}
		if diff := cmp.Diff(written.NodeAffinity, pod.Spec.Affinity.NodeAffinity); diff != "" {
			t.Fatalf("nodes: %s", diff)
		}
		made := &terms{}
		if p := pod.Spec.Affinity.PodAffinity; p != nil {
			made.add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, 1)
		}
		if p := pod.Spec.Affinity.PodAntiAffinity; p != nil {
			made.add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, -1)
		}
		// Machines that are there already, and their pods.
		var machines, pods []map[string]string
		for _, app := range rapid.SliceOfN(rapid.SampledFrom([]string{"database", "web", ""}), 0, 3).Draw(t, "others") {
			other := spec.NewVirtualMachine("lab", "other")
			if other.Labels = map[string]string{"app": "shop"}; app != "" {
				other.Labels["server"] = app
			}
			spec.Default(other)
			theirs := objects.Pod(other, objects.Settings{}, objects.PodInput{})
			objects.PassOn(other, &objects.Allowed{}).AddTo(theirs)
			machines, pods = append(machines, other.Labels), append(pods, theirs.Labels)
		}
		may, score := ofMachine(written).place(t, machines)
		if podMay, podScore := made.place(t, pods); podMay != may || podScore != score {
			t.Fatalf("beside %v: the machine may run (%t, %d), its pod (%t, %d)\n%+v", machines, may, score, podMay, podScore, pod.Spec.Affinity)
		}
		// And nothing else: as many terms as are written.
		want := ofMachine(written)
		if len(made.with) != len(want.with) || len(made.without) != len(want.without) || len(made.rather) != len(want.rather) {
			t.Fatalf("%+v, want %+v", made, want)
		}
	})
}
