package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	runnerkubernetes "github.com/vmop/sdk/frontends/runner/kubernetes"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporter is what a runner reports a machine's state by, to the test's API server.
func (t *test) reporter(name string) *runnerkubernetes.Reporter {
	t.Helper()
	client, err := runnerkubernetes.NewClient(cluster.Config(), t.namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	r := runnerkubernetes.NewReporter(client, func(_ runner.Level, text string) { t.Logf("the runner of %s: %s", name, text) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = r.Close(ctx) // a second time after that of the test
	})
	return r
}

// reported is the state of a runner whose guest executes, or does not.
func reported(phase runner.Phase, executes live.Status, reason string) runner.State {
	return runner.State{
		Phase: phase, CPUs: 1, RAM: 1 << 30, Generation: 1, RunnerVersion: "test",
		StatusConditions: []live.StatusCondition{{
			Type: live.Running, Status: executes, Reason: reason, ObservedGeneration: 1, LastTransitionTime: time.Now(),
		}},
	}
}

// How a machine ended while there was no operator, in a pod that is gone before there
// is one again, is known by what its runner has reported: the guest that has powered
// itself off stays so, the machine whose QEMU has failed is started again.
func TestEndThatNoOperatorSaw(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	k := t.startKubelet()
	ends := map[string]runner.Outcome{
		"quiet":   {Cause: runnerconfig.CauseGuestShutdown, Message: "the guest powered itself off"},
		"crashed": {Cause: runnerconfig.CauseQEMUFailure, Message: "QEMU ended by signal 11", QEMUStatus: "signal: segmentation fault"},
	}
	k.mu.Lock()
	for name := range ends {
		k.silent[name] = true // its runner is a real one
	}
	k.mu.Unlock()
	first := t.start(cluster.Kubeconfig())
	for name := range ends {
		t.create(strings.Replace(machine(name, "Running"), "guestShutdownStops: true", "runPolicy: AlwaysOnUnlessStoppedManually", 1))
	}
	reporters, pods := map[string]*runnerkubernetes.Reporter{}, map[string]string{}
	for name := range ends {
		t.phase(name, spec.PhaseStarting) // there is a pod
		reporters[name] = t.reporter(name)
		reporters[name].State(reported(runner.PhaseBooting, live.True, live.ReasonVMStarted))
		t.phase(name, spec.PhaseRunning)
		pods[name] = t.podUID(name)
	}
	first.kill()

	for name, outcome := range ends {
		state := reported(runner.PhaseStopped, live.False, live.ReasonVMStopped)
		state.Outcome = &outcome
		reporters[name].State(state)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := reporters[name].Close(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		vm, err := t.status(name)
		if err != nil {
			t.Fatal(err)
		}
		want := spec.RunnerEnd{Cause: string(outcome.Cause), Message: outcome.Message, QEMUStatus: outcome.QEMUStatus}
		if e := vm.Status.RunnerEnd; e == nil || *e != want || vm.Status.LastEnd != nil {
			t.Fatalf("%s: the runner has reported %+v, want %+v; last end %+v", name, e, want, vm.Status.LastEnd)
		}
		if err := t.kube.CoreV1().Pods(t.namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Fatal(err)
		}
	}
	t.eventually("the pods are gone", func() error {
		for name := range ends {
			if uid := t.podUID(name); uid != "" {
				return fmt.Errorf("%s has pod %s", name, uid)
			}
		}
		return nil
	})

	t.start(cluster.Kubeconfig())
	for name, outcome := range ends {
		t.eventually("the operator knows how "+name+" ended", func() error {
			vm, err := t.status(name)
			if err != nil {
				return err
			}
			if e := vm.Status.LastEnd; e == nil || e.Cause != string(outcome.Cause) || e.Message != outcome.Message || string(e.PodUID) != pods[name] {
				return fmt.Errorf("last end %+v", e)
			}
			return nil
		})
	}
	t.eventually("the machine that has failed runs in a new pod", func() error {
		if uid := t.podUID("crashed"); uid == "" || uid == pods["crashed"] {
			return fmt.Errorf("pod %q", uid)
		}
		return nil
	})
	t.phase("quiet", spec.PhaseStopped)
	if uid := t.podUID("quiet"); uid != "" {
		t.Error("the guest that powered itself off was started again")
	}
}
