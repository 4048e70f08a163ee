package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// howMany is what VMOP_TEST_MACHINES says, or else what takes half a minute. CI
// has a thousand.
func howMany(t *test) int {
	t.Helper()
	text := os.Getenv("VMOP_TEST_MACHINES")
	if text == "" {
		return 300
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Many machines at once all get their objects, and then nothing more is
// written. Times and memory are printed. It keeps every processor busy: the tests that
// wait for timers run beside each other afterwards.
func TestHundredsOfMachines(tt *testing.T) {
	t := newTest(tt)
	p := newProxy(tt)
	n := howMany(t)
	o := t.start(p.kubeconfig)
	idle := o.resident(t)
	begin := time.Now()
	var creators sync.WaitGroup
	for c := range 4 {
		creators.Go(func() {
			for i := c; i < n; i += 4 {
				if _, err := t.vms.Create(t.Context(), t.object(machine(fmt.Sprintf("vm-%04d", i), "Running")), metav1.CreateOptions{}); err != nil {
					t.Errorf("create: %v", err)
				}
			}
		})
	}
	creators.Wait()
	t.Logf("%d machines created in %v", n, time.Since(begin).Round(time.Millisecond))
	t.eventuallyWithin(10*time.Minute, "all machines have their pods", func(ctx context.Context) error {
		pods, err := t.kube.CoreV1().Pods(t.namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil && len(pods.Items) != n {
			err = fmt.Errorf("%d of %d", len(pods.Items), n)
		}
		return err
	})
	t.Logf("all have pods after %v", time.Since(begin).Round(time.Millisecond))
	t.eventuallyWithin(10*time.Minute, "all machines have their status", func(ctx context.Context) error {
		list, err := t.vms.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		have := 0
		for i := range list.Items {
			vm := &spec.VirtualMachine{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, vm); err != nil {
				return err
			}
			// The pods are made and will wait for ever: nobody schedules them. Once
			// that is told, there is nothing more to do.
			untold := slices.ContainsFunc(vm.Status.Waits, func(w spec.Wait) bool { return !w.Told })
			if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady); c != nil && c.Reason != spec.ReasonPodNotFound && !untold {
				have++
			}
		}
		if have != n {
			return fmt.Errorf("%d of %d", have, n)
		}
		return nil
	})
	t.Logf("all have their status after %v; %d requests; resident %d KiB, %d KiB when idle",
		time.Since(begin).Round(time.Millisecond), len(p.requests()), o.resident(t), idle)
	claims, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 2*n {
		t.Errorf("%d claims, %v", len(claims.Items), err)
	}
	secrets, err := t.kube.CoreV1().Secrets(t.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labels.Set{"app.kubernetes.io/component": "display-secret"}.String()})
	if err != nil || len(secrets.Items) != n {
		t.Errorf("%d secrets, %v", len(secrets.Items), err)
	}
	t.reconciled(o, n)
	if code := o.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(o.log.String(), "level=ERROR") {
		t.Errorf("the log has errors:\n%s", tail(o.log.String()))
	}

	p.reset()
	begin = time.Now()
	o = t.start(p.kubeconfig)
	t.reconciled(o, n)
	t.Logf("a new operator has looked at all after %v; resident %d KiB: %.1f KiB for each machine",
		time.Since(begin).Round(time.Millisecond), o.resident(t), float64(o.resident(t)-idle)/float64(n))
	if r := p.requests(); len(r) > 0 {
		t.Errorf("nothing to do, but %d requests, as %q", len(r), r[:min(len(r), 5)])
	}
	if heap, err := o.metric("go_memstats_heap_inuse_bytes"); err == nil {
		t.Logf("heap in use: %.0f KiB", heap/1024)
	}
	metrics, err := fetch("http://" + o.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "vmop_machines{") {
			var v float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &v); err != nil {
				t.Error(err)
			}
			counted += v
		}
	}
	if int(counted) != n {
		t.Errorf("metrics count %v machines", counted)
	}
}

// resident is the operator's memory in KiB.
func (p *process) resident(t *test) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); f[0] == "VmRSS:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// The metrics say how many machines there are in which phase, what they wait
// for and what was written.
func TestMetrics(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	o := t.start(cluster.Kubeconfig())
	t.create(machine("one", "Running"))
	t.create(machine("two", "Stopped"))
	t.create(strings.Replace(machine("three", "Running"), "volumeClaimTemplate:\n        metadata: {name: system}\n        spec: {resources: {requests: {storage: 1Gi}}}", "persistentVolumeClaim: {claimName: missing}", 1))
	t.phase("one", spec.PhaseRunning)
	t.phase("two", spec.PhaseStopped)
	t.waits("three", spec.ConditionBlockDevicesReady, spec.ReasonClaimNotFound)
	for name, want := range map[string]float64{
		`vmop_machines{phase="Running"}`:                                                1,
		`vmop_machines{phase="Stopped"}`:                                                1,
		`vmop_machines{phase="Pending"}`:                                                1,
		`vmop_machines_waiting{condition="BlockDevicesReady",reason="ClaimNotFound"}`:   1,
		`vmop_api_writes_total{kind="Pod",result="OK",verb="create"}`:                   1,
		`vmop_api_writes_total{kind="ConfigMap",result="OK",verb="create"}`:             3,
		`vmop_api_writes_total{kind="PersistentVolumeClaim",result="OK",verb="create"}`: 5,
	} {
		t.eventually(name, func() error {
			got, err := o.metric(name)
			if err == nil && got != want {
				err = fmt.Errorf("%v, want %v", got, want)
			}
			return err
		})
	}
	if v, err := o.metric(`vmop_slow_reconciliations_total{controller="machines"}`); err != nil || v < 0 {
		t.Errorf("slow reconciliations: %v, %v", v, err)
	}
	if v, err := o.metric(`controller_runtime_reconcile_time_seconds_count{controller="machines"}`); err != nil || v == 0 {
		t.Errorf("reconcile time: %v, %v", v, err)
	}
}
