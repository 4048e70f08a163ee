package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	took := time.Since(begin)
	if err := t.few("created to running", p, 8, took); err != nil {
		t.Error(err)
	}
	if r := p.events(); took < lasting && len(r) > 0 {
		t.Errorf("told: %q", r)
	}
}

// A claim that a machine has run with is not made anew without a word, whichever
// operator looks, and one that comes back is used.
func TestLostClaimIsNotReplaced(tt *testing.T) {
	t := newTest(tt)
	k := t.startKubelet()
	o := t.start(cluster.Kubeconfig())
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	t.setState("one", spec.StateStopped)
	t.phase("one", spec.PhaseStopped)
	o.stop()
	claims := t.kube.CoreV1().PersistentVolumeClaims(t.namespace)
	lose := func() {
		t.Helper()
		// Without its controllers nobody else removes the finalizer.
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if err := claims.Delete(t.Context(), "one-system-disk", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := claims.Patch(t.Context(), "one-system-disk", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	before, err := claims.Get(t.Context(), "one-system-disk", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lose()
	t.start(cluster.Kubeconfig())
	t.setState("one", spec.StateRunning)
	t.waits("one", spec.ConditionPodReady, spec.ReasonClaimGone)
	t.eventually("an event tells of it", func() error {
		for _, e := range t.eventsOf() {
			if e.Type == corev1.EventTypeWarning && e.Reason == spec.ReasonClaimGone {
				return nil
			}
		}
		return errors.New("there is none")
	})
	back := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: before.Name, Labels: before.Labels}, Spec: before.Spec}
	back.Spec.VolumeName = ""
	if _, err := claims.Create(t.Context(), back, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseRunning)

	// Somebody wants a new disk, as the message says.
	t.setState("one", spec.StateStopped)
	t.phase("one", spec.PhaseStopped)
	lose()
	t.waits("one", spec.ConditionBlockDevicesReady, spec.ReasonClaimGone)
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	message := spec.FindCondition(vm.Status.Conditions, spec.ConditionBlockDevicesReady).Message
	_, value, found := strings.Cut(message, " by the annotation "+names.AnnotationNewDisk+"=")
	if !found {
		t.Fatal(message)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"vm":{"state":"Running"}}}`, names.AnnotationNewDisk, value)
	if _, err := t.vms.Patch(t.Context(), "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseRunning)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.deleted) != 2 {
		t.Errorf("deleted claims: %q", k.deleted)
	}
	k.deleted = nil // by this test
}

// A machine whose namespace is being deleted is not made again until it goes.
func TestNamespaceIsDeleted(tt *testing.T) {
	t := newTest(tt)
	t.startKubelet()
	p := newProxy(tt)
	t.start(p.kubeconfig)
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	// Nobody deletes what is in it here.
	if err := t.kube.CoreV1().Namespaces().Delete(t.Context(), t.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.reset()
	if err := t.kube.CoreV1().Pods(t.namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.waits("one", spec.ConditionPodReady, spec.ReasonNamespaceTerminating)
	made := slices.DeleteFunc(p.requests(), func(r string) bool { return !strings.HasPrefix(r, "create ") })
	if len(made) != 1 {
		t.Errorf("the operator tries to make %q", made)
	}
}
