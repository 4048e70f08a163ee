package machinetest

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Two operators with other settings do not fight about a machine, in whatever order
// they look at it: one looks after it, both say so, and there are few writes. When
// the one is gone, the other takes the machine over as it runs.
func TestPromisesOfTwoOperators(t *testing.T) {
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
					w.tend(pod, goodWay)
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

// An operator that may not claim a machine whose operator is gone says so, once for each refusal that
// is new, and leaves the machine's status to that one.
func TestOperatorThatMayNotClaim(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	w.settings.Operator = "team/vmop-operator"
	for range 5 {
		w.work()
	}
	w.settings.Operator, w.forbidden = "vmop-system/vmop-operator", map[string]bool{names.KindConfigMap: true}
	before := get[*spec.VirtualMachine](w, theVM).Status
	var events []reconcile.Event
	for range 20 {
		w.observeAll()
		w.reconcile(false)
		events = append(events, w.reconcile(false).Events...) // after a refusal the operator looks again
		w.pass(time.Minute)
	}
	if len(events) != 1 || events[0].Type != corev1.EventTypeWarning ||
		!strings.Contains(events[0].Note, "operator vmop-system/vmop-operator finds the machine looked after by operator team/vmop-operator") {
		t.Errorf("%+v", events)
	}
	if now := get[*spec.VirtualMachine](w, theVM).Status; !equality.Semantic.DeepEqual(before, now) {
		t.Errorf("the status was %+v, and is %+v", before, now)
	}
}

// VM-Operator's own operator, which knows nothing of others, is noticed when it writes
// beside ours, and forgotten when it does so no more. Its machine is no less looked
// after, and a takeover is none of it.
func TestPromisesOfAFormerOperator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(what string, n int) int {
			if what == "made by VM-Operator" {
				return rapid.IntRange(0, 1).Draw(t, what)
			}
			return 0
		}, decideOnLess)
		w.settings.Operator = "vmop-system/vmop-operator"
		writes := 0
		life := func(rounds int, step time.Duration) {
			for range rounds {
				w.observeAll()
				writes += len(w.reconcile(false).Actions)
				w.observeAll()
				w.controllers()
				if pod := get[*corev1.Pod](w, thePod); pod != nil {
					if w.guests[pod.UID] == nil {
						w.tend(pod, goodWay)
					}
				}
				w.pass(step)
			}
		}
		sole := func() *spec.Condition {
			return spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionSoleOperator)
		}
		life(10, time.Second)
		if c := sole(); c.Reason != spec.ReasonSoleOperator {
			t.Fatalf("after the start: %+v", c)
		}
		for range rapid.IntRange(1, 3).Draw(t, "acts") {
			writes = 0
			if pod := get[*corev1.Pod](w, thePod); pod != nil && rapid.Bool().Draw(t, "by a pod") {
				pod.Annotations, pod.UID, pod.CreationTimestamp = nil, w.uid(), metav1.NewTime(w.now)
				w.put(thePod, pod)
			} else {
				cm := get[*corev1.ConfigMap](w, theConfig)
				cm.Annotations[names.AnnotationVersion] = "4.0.2" // it leaves what a patch or the making of the object owns
				cm.ManagedFields = []metav1.ManagedFieldsEntry{{
					Manager: names.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
					FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:config.yaml":{}},"f:metadata":{"f:annotations":{"f:vmoperator.jdrupes.org/version":{}}}}`),
				}}
				cm.Data = map[string]string{names.ConfigKey: "/Runner: {}"}
				w.put(theConfig, cm)
			}
			life(8, time.Second)
			c := sole()
			if c.Reason != spec.ReasonTwoOperators || !strings.Contains(c.Message, "VM-Operator's own operator") || !strings.Contains(c.Message, w.settings.Operator) {
				t.Fatalf("after VM-Operator's write: %+v", c)
			}
			if cm := get[*corev1.ConfigMap](w, theConfig); cm.Annotations[names.AnnotationOperator] != w.settings.Operator || writes > 4 {
				t.Fatalf("%d writes, %v", writes, cm.Annotations)
			}
			life(1, time.Duration(rapid.IntRange(1, 70).Draw(t, "pause"))*time.Second)
		}
		life(8, 5*time.Minute)
		if c := sole(); c.Reason != spec.ReasonSoleOperator {
			t.Errorf("when VM-Operator is silent: %+v", c)
		}
	})
}

// An operator that ends takes back its own claims to machines of others, and nothing
// else.
func TestWithdraw(t *testing.T) {
	const now = "2026-01-02T03:04:05Z"
	for _, c := range []struct {
		holder, claim string
		want          bool
	}{
		{"a/one", "b/two " + now, true},
		{"b/two", "b/two " + now, false}, // it has taken the machine over
		{"a/one", "c/three " + now, false},
		{"a/one", "b/two", false},
		{"a/one", "", false},
		{"", "b/two " + now, false},
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", ResourceVersion: "2", Annotations: map[string]string{
			names.AnnotationOperator: c.holder, names.AnnotationOperatorClaim: c.claim,
		}}}
		got := machine.Withdraw(cm, "b/two")
		if (got != nil) != c.want || got != nil && (got.ResourceVersion != "2" || len(got.Annotations) != 1 || got.Annotations[names.AnnotationOperatorClaim] != "") {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
