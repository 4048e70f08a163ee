package main

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// podsDeleted counts the pods of the test that somebody has begun to delete.
func (t *test) podsDeleted() func() int {
	t.Helper()
	pods := t.kube.CoreV1().Pods(t.namespace)
	now, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	n := new(atomic.Int32)
	go func() {
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && (e.Type == watch.Deleted || pod.DeletionTimestamp != nil) {
				n.Add(1)
			}
		}
	}()
	return func() int { return int(n.Load()) }
}

// told waits for an event about a machine with a text.
func (t *test) told(reason string, texts ...string) {
	t.Helper()
	t.eventually("an event tells "+strings.Join(texts, ", "), func() error {
		for _, e := range t.eventsOf() {
			all := e.Type == corev1.EventTypeWarning && e.Reason == reason
			for _, text := range texts {
				all = all && strings.Contains(e.Note, text)
			}
			if all {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// later lets time go by for the claim of an operator to a machine: it was made
// earlier.
func (t *test) later(name, operator string, by time.Duration) {
	t.Helper()
	configs := t.kube.CoreV1().ConfigMaps(t.namespace)
	t.eventually("the claim is older", func() error {
		cm, err := configs.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text := cm.Annotations[names.AnnotationOperatorClaim]
		was, ok := strings.CutPrefix(text, operator+" ")
		at, err := time.Parse(time.RFC3339, was)
		if !ok || err != nil || time.Since(at) > by {
			return fmt.Errorf("claim %q", text)
		}
		older := operator + " " + at.Add(-by).Format(time.RFC3339)
		if cm.Annotations[names.AnnotationOperatorAnswer] == text {
			cm.Annotations[names.AnnotationOperatorAnswer] = older
		}
		cm.Annotations[names.AnnotationOperatorClaim] = older
		_, err = configs.Update(t.Context(), cm, metav1.UpdateOptions{FieldManager: "test"})
		return err
	})
}

// Of two operators with other settings one looks after a machine, also after one that
// is made while both look. Neither deletes a pod, both say who the other is, and it is
// over when one of them stops.
func TestTwoOperatorsOfOneCluster(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	deleted := t.podsDeleted()
	const a, b = "vmop-system/vmop-operator", "team/vmop-operator"
	operator := func(identity, image string) *process {
		return t.start(cluster.Kubeconfig(), "--identity="+identity, "--config="+t.file("/Operator: {runnerImage: "+image+"}\n"))
	}
	first := operator(a, "registry.example.org/runner:1")
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	one := t.podUID("one")
	second := operator(b, "registry.example.org/runner:2")
	both := func(name string) {
		t.Helper()
		t.waits(name, spec.ConditionSoleOperator, spec.ReasonTwoOperators)
		vm, err := t.status(name)
		if err != nil {
			t.Fatal(err)
		}
		if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionSoleOperator); !strings.Contains(c.Message, a) || !strings.Contains(c.Message, b) {
			t.Errorf("condition %+v", c)
		}
	}
	both("one")
	t.told(spec.ReasonTwoOperators, "operators "+a+" and "+b, "both")
	t.told(spec.ReasonTwoOperators, "operator "+b+" finds", "looked after by operator "+a)
	t.create(machine("two", "Running")) // whose it becomes is chance
	t.phase("two", spec.PhaseRunning)
	both("two")
	if n := deleted(); n > 0 || t.podUID("one") != one {
		t.Errorf("%d deletions of pods", n)
	}

	// The one that stands back stops.
	if code := second.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.waits("one", spec.ConditionSoleOperator, spec.ReasonSoleOperator)

	// The one that looks after the machine stops, and after some time the other asks
	// again and has no answer.
	operator(b, "registry.example.org/runner:2")
	both("one")
	first.stop()
	t.later("one", b, 11*time.Minute)
	t.later("one", b, time.Minute)
	t.waits("one", spec.ConditionSoleOperator, spec.ReasonSoleOperator)
	cm, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || cm.Annotations[names.AnnotationOperator] != b {
		t.Errorf("the machine is looked after by %v, %v", cm.Annotations, err)
	}
	if n := deleted(); n > 0 || t.podUID("one") != one {
		t.Errorf("%d deletions of pods", n)
	}
}

// VM-Operator's own operator writes beside this one, as the same manager of fields.
func TestFormerOperatorIsNoticed(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig(), "--identity=vmop-system/vmop-operator")
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	t.waits("one", spec.ConditionSoleOperator, spec.ReasonSoleOperator)
	one := t.podUID("one")
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	t.apply(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  labels: {app.kubernetes.io/name: vm-runner, app.kubernetes.io/instance: one, app.kubernetes.io/managed-by: vm-operator}
  annotations: {vmoperator.jdrupes.org/version: 4.0.2}
  ownerReferences: [{apiVersion: vmoperator.jdrupes.org/v1, kind: VirtualMachine, name: one, uid: %s, controller: false}]
data:
  config.yaml: "/Runner: {dataDir: /var/local/vm-data, vm: {name: one}}"
`, vm.UID))
	t.waits("one", spec.ConditionSoleOperator, spec.ReasonTwoOperators)
	t.told(spec.ReasonTwoOperators, "VM-Operator's own operator")
	t.eventually("the configuration is as it was", func() error {
		cm, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil || !strings.Contains(cm.Data[names.ConfigKey], "currentCpus") || cm.Annotations[names.AnnotationOperator] != "vmop-system/vmop-operator" {
			return fmt.Errorf("%v, %w", cm.Annotations, err)
		}
		return nil
	})
	if t.podUID("one") != one {
		t.Error("another pod")
	}
	// It writes no more.
	t.later("one", "VM-Operator", 26*time.Minute)
	t.waits("one", spec.ConditionSoleOperator, spec.ReasonSoleOperator)
}
