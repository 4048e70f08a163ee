package machinetest

import (
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	corev1 "k8s.io/api/core/v1"
)

// What VM-Operator's runner wrote is given to the runner's user once, and once
// more when VM-Operator was back.
func TestTakeOverOnce(t *testing.T) {
	for name, recent := range map[string]bool{"since VM-Operator 3.4": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(func(string, int) int { return 0 }, machine.Decide)
			takeover(w, recent, false)
			starts := func() (root bool) {
				t.Helper()
				for range 30 {
					w.work()
					if pod := get[*corev1.Pod](w, thePod); pod != nil && pod.Status.Phase == corev1.PodRunning {
						w.work()
						root = len(pod.Spec.InitContainers) > 0
						delete(w.guests, pod.UID)
						w.put(thePod, nil)
						return root
					}
				}
				t.Fatal("it does not start")
				return false
			}
			if !starts() {
				t.Error("the first pod takes nothing over")
			}
			for range 2 {
				if starts() {
					t.Error("a later pod has a container of root")
				}
			}
			// VM-Operator writes what it always writes, as the same manager of fields.
			cm := get[*corev1.ConfigMap](w, theConfig)
			for _, a := range []string{names.AnnotationDataOwner, names.AnnotationResetCounter, names.AnnotationApplied, names.AnnotationContent, names.AnnotationGeneration} {
				delete(cm.Annotations, a)
			}
			w.put(theConfig, cm)
			if !starts() {
				t.Error("what VM-Operator has written since is not taken over")
			}
		})
	}
}
