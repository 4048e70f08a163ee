package controller

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// What is shared is what each object had, whatever came before, and equal parts are one.
func TestWhatIsSharedIsEqual(t *testing.T) {
	amounts := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		var out corev1.ResourceList
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage} {
			if amount := rapid.SampledFrom([]string{"", "0", "1", "1000m", "1Gi", "1024Mi", "1G"}).Draw(t, string(name)); amount != "" {
				if out == nil {
					out = corev1.ResourceList{}
				}
				out[name] = resource.MustParse(amount)
			}
		}
		return out
	})
	texts := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", `a"`, names.LabelInstance}), rapid.SampledFrom([]string{"", "a", `"b`, "1"}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing()
		for range rapid.IntRange(1, 8).Draw(t, "objects") {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: amounts.Draw(t, "requests"), Limits: amounts.Draw(t, "limits"),
			}}}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Resources: &corev1.ResourceRequirements{Requests: amounts.Draw(t, "given")}}}
			if d := cmp.Diff(machinekind.CondensePod(pod), s.pod(pod)); d != "" {
				t.Errorf("pod: %s", d)
			}
			claim := &corev1.PersistentVolumeClaim{}
			claim.Labels, claim.Annotations = texts.Draw(t, "labels"), texts.Draw(t, "annotations")
			claim.Spec.Resources.Requests, claim.Status.Capacity = amounts.Draw(t, "requests"), amounts.Draw(t, "capacity")
			before := claim.DeepCopy()
			c := s.claim(claim)
			if d := cmp.Diff(machinekind.CondenseClaim(claim), c); d != "" {
				t.Errorf("claim: %s", d)
			}
			if d := cmp.Diff(before, claim); d != "" {
				t.Errorf("the claim has changed: %s", d)
			}
			again := s.claim(claim)
			if !same(c.Labels, again.Labels) || !same(c.Annotations, again.Annotations) || !same(c.Spec.Resources.Requests, again.Spec.Resources.Requests) {
				t.Error("equal claims have nothing in common")
			}
		}
	})
}

func same(a, b any) bool {
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	return v.Len() == 0 && w.Len() == 0 || v.Pointer() == w.Pointer()
}

// What machines have of their own is not remembered for ever.
func TestLittleIsRememberedToBeShared(t *testing.T) {
	s := newSharing()
	for i := range 3 * mostShared {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Labels = map[string]string{names.LabelInstance: fmt.Sprint(i)}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(i), resource.BinarySI)}
		if c := s.claim(claim); !maps.Equal(c.Labels, machinekind.CondenseClaim(claim).Labels) {
			t.Fatalf("labels %v", c.Labels)
		}
		if len(s.texts) > mostShared || len(s.amounts) > mostShared {
			t.Fatalf("%d texts and %d amounts are remembered", len(s.texts), len(s.amounts))
		}
	}
}
