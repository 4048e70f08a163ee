package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// Two operators with other settings do not fight about a machine, in whatever order
// they look at it: one looks after it, both say so, and there are few writes. When
// the one is gone, the other takes the machine over as it runs.
func TestTwoOperators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		operators := []objects.Settings{
			{Version: "1", Operator: "vmop-system/vmop-operator", RunnerImage: "registry.example.org/runner:1", LoggingProperties: "a", Allowed: objects.Allowed{Everything: true}},
			{Version: "2", Operator: "team/vmop-operator", RunnerImage: "registry.example.org/runner:2", LoggingProperties: "b", Allowed: objects.Allowed{Everything: true}},
		}
		w := newWorld(func(string, int) int { return 0 }, decideOnLess)
		writes, deletes := 0, 0
		events := map[string]int{}
		look := func(i int) {
			w.settings = operators[i]
			w.observeAll() // an operator waits until it sees what it wrote
			p := w.reconcile(false)
			writes += len(p.Actions) + len(p.Statuses)
			for _, a := range p.Actions {
				if _, is := a.(reconcile.DeletePod); is {
					deletes++
				}
			}
			for _, e := range p.Events {
				if e.Reason == spec.ReasonTwoOperators {
					events[operators[i].Operator]++
				}
			}
		}
		life := func(who func() int, rounds int, step time.Duration) {
			for range rounds {
				look(who())
				w.controllers()
				if pod := get[*corev1.Pod](w, thePod); pod != nil && w.guests[pod.UID] == nil {
					w.tend(pod, 0)
				} else if pod != nil {
					w.guests[pod.UID].stage = min(w.guests[pod.UID].stage, 2)
					if w.guests[pod.UID].stage < 2 || !w.guests[pod.UID].told {
						w.guests[pod.UID].stage = 2
						w.runnerReports(w.guests[pod.UID])
					}
				}
				w.pass(step)
			}
		}
		any := func() int { return rapid.IntRange(0, 1).Draw(t, "operator") }
		life(any, 40, time.Second)
		turn := 0
		each := func() int { turn++; return turn % 2 }
		life(each, 60, time.Second) // each has answered by now
		holder := get[*corev1.ConfigMap](w, theConfig).Annotations[names.AnnotationOperator]
		other := operators[0].Operator
		if holder == other {
			other = operators[1].Operator
		}
		pod := get[*corev1.Pod](w, thePod)
		c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionSoleOperator)
		if pod == nil || deletes > 0 || writes > 40 {
			t.Fatalf("pod %v, %d deletions, %d writes", pod != nil, deletes, writes)
		}
		if c.Reason != spec.ReasonTwoOperators || !strings.Contains(c.Message, holder) || !strings.Contains(c.Message, other) {
			t.Errorf("%+v", c)
		}
		if events[holder] == 0 || events[other] == 0 {
			t.Errorf("who told of the other: %v", events)
		}
		writes = 0
		life(each, 40, 3*time.Minute)
		if deletes > 0 || writes > 2*12*2+6 {
			t.Errorf("%d deletions, %d writes in two hours", deletes, writes)
		}
		// The holder is removed.
		last := 0
		if operators[1].Operator == other {
			last = 1
		}
		life(func() int { return last }, 30, time.Minute)
		cm := get[*corev1.ConfigMap](w, theConfig)
		c = spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionSoleOperator)
		if cm.Annotations[names.AnnotationOperator] != other || c.Reason != spec.ReasonSoleOperator || get[*corev1.Pod](w, thePod).UID != pod.UID {
			t.Errorf("the one that stays is not responsible: %v, %+v", cm.Annotations, c)
		}
	})
}
