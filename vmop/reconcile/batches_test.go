package reconcile_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Batches have the actions in their order. More than one are only objects that are created, none of
// them a pod, and not without end; and no more batches are made than that needs.
func TestBatches(t *testing.T) {
	const most = 8
	together := func(a reconcile.Action) bool {
		c, creates := a.(reconcile.Create)
		return creates && c.Target().Kind != "Pod"
	}
	action := rapid.Custom(func(t *rapid.T) reconcile.Action {
		named := metav1.ObjectMeta{Name: rapid.StringMatching("[a-z]").Draw(t, "name")}
		switch rapid.IntRange(0, 5).Draw(t, "action") {
		case 0:
			return reconcile.Create{Object: &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}, ObjectMeta: named}}
		case 1:
			return reconcile.Apply{Object: &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}, ObjectMeta: named}}
		case 2:
			return reconcile.SetFinalizers{Kind: "VirtualMachine", Name: named.Name}
		case 3:
			return reconcile.DeleteClaim{Name: named.Name}
		}
		return reconcile.Create{Object: &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{Kind: "PersistentVolumeClaim"}, ObjectMeta: named}}
	})
	rapid.Check(t, func(t *rapid.T) {
		actions := rapid.SliceOfN(action, 0, 40).Draw(t, "actions")
		batches := reconcile.Batches(actions)
		if all := slices.Concat(batches...); len(all)+len(actions) > 0 && !reflect.DeepEqual(all, actions) {
			t.Fatalf("%+v became %+v", actions, all)
		}
		for i, batch := range batches {
			switch {
			case len(batch) == 0 || len(batch) > most:
				t.Fatalf("a batch of %d", len(batch))
			case len(batch) > 1 && !reflect.DeepEqual(batch, slices.DeleteFunc(slices.Clone(batch), func(a reconcile.Action) bool { return !together(a) })):
				t.Fatalf("these at once: %+v", batch)
			case i > 0 && together(batch[0]) && together(batches[i-1][0]) && len(batches[i-1]) < most:
				t.Fatalf("these apart: %+v and %+v", batches[i-1], batch)
			}
		}
	})
}
