package machinetest

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// TestWaitThatWasToldGoesOn is the shrink that an operator refuses, which then
// cannot write the ConfigMap, and which then, started anew, sees again only what
// it saw first. Whoever was told of the shrink is not told again, and was told.
func TestWaitThatWasToldGoesOn(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	settle := func() {
		for range 10 {
			w.observeAll()
			w.reconcile(false)
			w.controllers()
		}
	}
	settle()
	for range 5 { // until the runner reports
		w.tend(get[*corev1.Pod](w, thePod), goodWay)
	}
	settle()
	personDoes(w, []string{"grows"})
	settle()
	personDoes(w, []string{"shrinks"})
	settle()
	refused := w.objects[theVM].seen
	target := reconcile.Target{Verb: "patch", Kind: "ConfigMap", Name: "web"}
	w.failures[target] = reconcile.Failure{Target: target, Reason: "Forbidden", Message: "exceeded quota: pods", Count: 1, Last: w.now}
	w.askForReset()
	settle()
	if c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionConfigurationApplied); c.Reason != spec.ReasonQuotaExceeded {
		t.Fatalf("the ConfigMap is not in the way: %+v", c)
	}
	clear(w.failures)
	w.pass(time.Second)
	pod := get[*corev1.Pod](w, thePod)
	pod.Status.PodIP = "10.0.0.2" // something to write
	w.put(thePod, pod)
	w.observeAll()
	w.objects[theVM].seen = refused
	w.reconcile(false)
	if c := w.waits[spec.ConditionConfigurationApplied]; c == nil || c.wait.Reason != spec.ReasonShrinkRefused {
		t.Fatalf("the shrink is not what is waited for: %+v\n%s", c, strings.Join(w.log, "\n"))
	}
	if err := w.live(0); err != nil {
		t.Errorf("%v\n%s", err, strings.Join(w.log, "\n"))
	}
}
