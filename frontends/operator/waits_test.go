package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lasting is less than the time after which a wait is told by an event and a status,
// which are requests more. A machine that is very busy takes that long.
const lasting = 9 * time.Second

// eventsOf are the events that the operator has told.
func (t *test) eventsOf() []eventsv1.Event {
	t.Helper()
	list, err := t.kube.EventsV1().Events(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// What lasts is told by one event for each wait, also by an operator that starts
// again, and causes no other writes.
func TestWaitsAreToldOnce(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	p := newProxy(tt)
	// Nobody makes volumes for claims, or chooses a node for the pod.
	o := t.start(p.kubeconfig)
	t.create(machine("one", "Running"))
	want := []string{
		"Normal BlockDevicesNotReady: claim one-runner-data of the runner's data waits for a volume; see kubectl describe pvc one-runner-data",
		"Normal PodNotStarted: pod one waits for a node; see kubectl describe pod one",
	}
	told := func() error {
		var have []string
		for _, e := range t.eventsOf() {
			if e.Series != nil {
				t.Errorf("%s is told %d times", e.Reason, e.Series.Count)
			}
			have = append(have, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return fmt.Errorf("events %q", have)
		}
		return nil
	}
	t.waits("one", spec.ConditionBlockDevicesReady, spec.ReasonBlockDevicesNotReady)
	t.eventually("what lasts is told", told)
	vm, err := t.status("one")
	if err != nil || len(vm.Status.Waits) != 2 || !vm.Status.Waits[0].Told || !vm.Status.Waits[1].Told {
		t.Errorf("waits %+v, %v", vm.Status.Waits, err)
	}
	o.stop()
	p.reset()
	o = t.start(p.kubeconfig)
	t.reconciled(o, 1)
	if r := append(p.requests(), p.events()...); len(r) > 0 {
		t.Errorf("a new operator tells what was told: %q", r)
	}

	t.startKubelet()
	t.phase("one", spec.PhaseRunning)
	if vm, err = t.status("one"); err != nil || len(vm.Status.Waits) > 0 {
		t.Errorf("a machine that runs waits for %+v, %v", vm.Status.Waits, err)
	}
	if err := told(); err != nil {
		t.Error(err)
	}
}

// What is over before long is in the status meanwhile, and is no event.
func TestShortWaitsAreNotTold(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	p := newProxy(tt)
	t.start(p.kubeconfig)
	p.reset()
	begin := time.Now()
	t.create(machine("one", "Running"))
	t.waits("one", spec.ConditionBlockDevicesReady, spec.ReasonBlockDevicesNotReady)
	t.startKubelet()
	t.phase("one", spec.PhaseRunning)
	r := append(p.requests(), p.events()...)
	took := time.Since(begin).Round(time.Millisecond)
	t.Logf("running after %v with %d requests:\n%s", took, len(r), strings.Join(r, "\n"))
	if took < lasting && (len(r) > 8 || len(p.events()) > 0) {
		t.Error("these are too many")
	}
}
