package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// A machine is created, runs, is stopped, started again, crashes, and powers
// itself off; each step takes few requests, and once it is done none.
func TestLifeOfAMachine(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	p := newProxy(tt)
	t.startKubelet()
	o := t.start(p.kubeconfig)

	// What else goes on in a busy machine only adds to them: the best of some counts.
	var err error
	made := 0
	for _, name := range []string{"one", "two", "three"} {
		p.reset()
		begin := time.Now()
		t.create(machine(name, "Running"))
		t.phase(name, spec.PhaseRunning)
		made++
		if err = t.few("created to running", p, 7, time.Since(begin)); err == nil {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
	// What is known of the start is written with that.
	if vm, err := t.status("one"); err != nil {
		t.Error(err)
	} else if s := vm.Status.Stats; s == nil || s.LastStartTime == nil || s.LaunchTimeDuration == nil || s.LaunchTimeDuration.VirtualMachineStartingSeconds == nil ||
		len(s.PhasesTransitions) < 2 || s.PhasesTransitions[0].Phase != spec.PhasePending || s.PhasesTransitions[len(s.PhasesTransitions)-1].Phase != spec.PhaseRunning {
		t.Errorf("%+v", s)
	} else if text, err := yaml.Marshal(s); err == nil {
		t.Logf("stats:\n%s", text)
	}

	for range 3 {
		t.setState("one", spec.StateRunning)
		t.phase("one", spec.PhaseRunning)
		p.reset()
		begin := time.Now()
		t.setState("one", spec.StateStopped)
		t.phase("one", spec.PhaseStopped)
		if err = t.few("stopped", p, 3, time.Since(begin)); err == nil {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
	// An operator that finds everything as it should be writes nothing. The one before may have
	// ended before the runner's last report was answered.
	var left []string
	for range 3 {
		if code := o.stop(); code != 0 {
			t.Errorf("exit code %d\n%s", code, o.log)
		}
		p.reset()
		o = t.start(p.kubeconfig)
		t.reconciled(o, made)
		if left = p.requests(); len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("nothing to do: %q", left)
	}
}

// few reports how many requests a step needed, if they were too many. What is in between
// is told of if the step takes a while, so a slow machine is allowed some more.
func (t *test) few(step string, p *proxy, limit int, took time.Duration) error {
	t.Helper()
	r := p.effective()
	t.Logf("%s: %d requests in %v:\n%s", step, len(r), took.Round(time.Millisecond), strings.Join(r, "\n"))
	if took > time.Second {
		limit += 2
	}
	if len(r) > limit && took < lasting {
		return fmt.Errorf("%s: %d requests; want at most %d", step, len(r), limit)
	}
	return nil
}

func TestEndsOfAMachine(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	k := t.startKubelet()
	t.start(newProxy(tt).kubeconfig)
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	first := t.podUID("one")

	// A crash is noted, explained and delayed; then there is a new pod.
	// Its last words have a byte that the API server refuses in an apply.
	k.end("one", outcome(runnerconfig.CauseQEMUFailure, "qemu crashed\x7f"))
	t.eventually("the crash is explained", func() error {
		vm, err := t.status("one")
		if err != nil {
			return err
		}
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady)
		if vm.Status.LastEnd == nil || vm.Status.LastEnd.Failures != 1 || c == nil || c.Reason != spec.ReasonRestartDelayed {
			return fmt.Errorf("last end %+v, condition %+v", vm.Status.LastEnd, c)
		}
		return nil
	})
	t.eventually("there is a new pod", func() error {
		if uid := t.podUID("one"); uid == "" || uid == first {
			return fmt.Errorf("pod %q", uid)
		}
		return nil
	})
	t.phase("one", spec.PhaseRunning)

	// A guest that powers itself off stays off.
	k.end("one", outcome(runnerconfig.CauseGuestShutdown, "the guest powered itself off"))
	t.phase("one", spec.PhaseStopped)
	vm, err := t.status("one")
	if err != nil || vm.Spec.VM.State != spec.StateStopped {
		t.Errorf("state %s, %v", vm.Spec.VM.State, err)
	}
	t.eventually("the pod is gone", func() error {
		if uid := t.podUID("one"); uid != "" {
			return fmt.Errorf("pod %s", uid)
		}
		return nil
	})

	// A reason for each is an event, once.
	events, err := t.kube.EventsV1().Events(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, e := range events.Items {
		seen[e.Type+" "+e.Reason]++
		t.Logf("%s %s: %s", e.Type, e.Reason, e.Note)
	}
	for reason, n := range seen {
		if n > 1 {
			t.Errorf("%d events %s", n, reason)
		}
	}
	if len(seen) == 0 {
		t.Error("no events")
	}
}

// A guest that reboots while a change waits for a restart is started anew with
// the change, and nothing waits then; so is one whose pod somebody deletes.
func TestGuestRebootAppliesChanges(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	k := t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	first := t.podUID("one")
	config := func(ends bool) func() error {
		return func() error {
			cm, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
			if err == nil && strings.Contains(cm.Data["config.yaml"], "guestResetEnds: true") != ends {
				err = fmt.Errorf("configuration:\n%s", cm.Data["config.yaml"])
			}
			return err
		}
	}
	t.eventually("a reset by the guest is one", config(false))

	// The runner's configuration does not have this: it is the pod's.
	patch := `{"spec":{"resources":{"requests":{"memory":"64Mi"}},"nodeSelector":{"disk":"fast"}}}`
	if _, err := t.vms.Patch(t.Context(), "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.waits("one", spec.ConditionAwaitingRestart, spec.ReasonChangesPendingRestart)
	t.eventually("the runner is told", config(true))
	t.same("the pod's UID", first, t.podUID("one"))

	k.end("one", outcome(runnerconfig.CauseGuestReset, "the guest reset itself"))
	t.eventually("there is a new pod", func() error {
		if uid := t.podUID("one"); uid == "" || uid == first {
			return fmt.Errorf("pod %q", uid)
		}
		return nil
	})
	t.phase("one", spec.PhaseRunning)
	t.waits("one", spec.ConditionAwaitingRestart, spec.ReasonNoRestartRequired)
	t.eventually("a reset by the guest is one again", config(false))
	vm, err := t.status("one")
	if err != nil || vm.Status.LastEnd == nil || vm.Status.LastEnd.Failures != 0 || vm.Spec.VM.State != spec.StateRunning {
		t.Errorf("last end %+v, state %s, %v", vm.Status.LastEnd, vm.Spec.VM.State, err)
	}

	// So does somebody who deletes the pod.
	second := t.podUID("one")
	patch = `{"spec":{"nodeSelector":{"disk":"slow"}}}`
	if _, err := t.vms.Patch(t.Context(), "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.waits("one", spec.ConditionAwaitingRestart, spec.ReasonChangesPendingRestart)
	t.same("the pod's UID", second, t.podUID("one"))
	if err := t.kube.CoreV1().Pods(t.namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.eventually("there is a new pod with the change", func() error {
		pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
		if err == nil && (string(pod.UID) == second || pod.Spec.NodeSelector["disk"] != "slow") {
			err = fmt.Errorf("pod %s for nodes %v", pod.UID, pod.Spec.NodeSelector)
		}
		return err
	})
	t.phase("one", spec.PhaseRunning)
	t.waits("one", spec.ConditionAwaitingRestart, spec.ReasonNoRestartRequired)
}

func outcome(cause runnerconfig.Cause, message string) string {
	return string(runnerconfig.Outcome{Cause: cause, Message: message}.TerminationMessage())
}

// podUID is empty if there is no pod.
func (t *test) podUID(name string) string {
	t.Helper()
	pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		return "" // the API server is away
	}
	return string(pod.UID)
}
