package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// measuredProgram makes the test program one whose memory is measured, and says
// which.
const measuredProgram = "VMOP_TEST_MEASURED"

func TestMain(m *testing.M) {
	if what := os.Getenv(measuredProgram); what != "" {
		if err := measured(what, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// footprint is the memory of a process that has seen all machines, in bytes.
type footprint struct {
	// Resident is what the operating system counts, Heap what is in use after a
	// garbage collection.
	Resident, Heap float64
	// Quiet is what the operating system counts when the process has given back what it
	// does not need.
	Quiet float64
	// Seconds is how long it took.
	Seconds float64
}

// BenchmarkMemory is what a machine that runs costs in the operator, beside the
// caches of controller-runtime as they are without any settings. VMOP_BENCH_MACHINES
// is the number of machines.
func BenchmarkMemory(b *testing.B) {
	n := 1000
	if text := os.Getenv("VMOP_BENCH_MACHINES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	none, all := newFakeAPI(b, 0), newFakeAPI(b, n)
	for _, what := range []string{"operator", "plain-caches"} {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				idle, full := measure(b, what, none, 0), measure(b, what, all, n)
				b.ReportMetric((full.Resident-idle.Resident)/float64(n)/1024, "KiB-resident/machine")
				b.ReportMetric((full.Quiet-idle.Quiet)/float64(n)/1024, "KiB-quiet/machine")
				b.ReportMetric((full.Heap-idle.Heap)/float64(n)/1024, "KiB-heap/machine")
				b.ReportMetric(full.Seconds, "s-to-observe-all")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	if w := all.written(); len(w) > 0 {
		b.Errorf("%d writes though nothing is to be done, such as %s", len(w), w[0])
	}
}

// measure runs a program against an API server until it has seen everything.
func measure(b *testing.B, what string, api *fakeAPI, n int) footprint {
	b.Helper()
	cmd := testbin.Self(b.Context(), b, measuredProgram+"="+what, api.URL, strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	var f footprint
	if err := json.Unmarshal(out, &f); err != nil {
		b.Fatalf("%s: %v: %s", what, err, out)
	}
	return f
}

// measured is the program that is measured. It prints its footprint.
func measured(what, url, machines string) error {
	n, err := strconv.Atoi(machines)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	config := &rest.Config{Host: url, QPS: -1}
	ctrllog.SetLogger(logr.Discard())
	begin := time.Now()
	ended := make(chan error, 1)
	keep := any(nil)
	switch what {
	case "operator":
		debug.SetGCPercent(GCPercent)
		m, err := New(config, Options{})
		if err != nil {
			return err
		}
		go func() { ended <- m.Start(ctx) }()
		if err := untilReconciled(ctx, n, ended); err != nil {
			return err
		}
		keep = m
	default:
		c, err := plainCaches(ctx, config)
		if err != nil {
			return err
		}
		go func() { ended <- c.Start(ctx) }()
		if !c.WaitForCacheSync(ctx) {
			return ctx.Err()
		}
		keep = c
	}
	f := footprint{Seconds: time.Since(begin).Seconds()}
	if f.Resident, err = resident(); err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // what was read is let go by those who have read it
	runtime.GC()                // what pools keep goes with the second one
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	f.Heap = float64(stats.HeapAlloc)
	debug.FreeOSMemory()
	if f.Quiet, err = resident(); err != nil {
		return err
	}
	runtime.KeepAlive(keep)
	return json.NewEncoder(os.Stdout).Encode(f)
}

// untilReconciled waits until every machine was looked at.
func untilReconciled(ctx context.Context, n int, ended <-chan error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// What counts machines fails as long as they are not all read.
		families, counting := metrics.Registry.Gather()
		looked, waiting := 0.0, 0.0
		for _, f := range families {
			for _, m := range f.Metric {
				switch {
				case f.GetName() == "controller_runtime_reconcile_total" && m.Label[0].GetValue() == "machines":
					looked += m.GetCounter().GetValue()
				case f.GetName() == "controller_runtime_active_workers" || f.GetName() == "workqueue_depth":
					waiting += m.GetGauge().GetValue()
				}
			}
		}
		if int(looked) >= n && waiting == 0 && counting == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the operator ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("%v of %d machines looked at: %w", looked, n, ctx.Err())
		case <-tick.C:
		}
	}
}

// plainCaches watch the same objects and keep them as they are.
func plainCaches(ctx context.Context, config *rest.Config) (cache.Cache, error) {
	scheme := kruntime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	machines, pools := ownKind("", spec.KindVirtualMachine, ""), ownKind("", spec.KindVMPool, "")
	pools.SetGroupVersionKind(spec.GroupVersion().WithKind(spec.KindVMPool))
	by := map[client.Object]cache.ByObject{
		machines: {}, pools: {},
		&corev1.Pod{}:                   {Label: labels.SelectorFromSet(podLabels())},
		&corev1.ConfigMap{}:             {Label: labels.SelectorFromSet(objectLabels())},
		&corev1.Service{}:               {Label: labels.SelectorFromSet(objectLabels())},
		&corev1.Secret{}:                {Label: watchedSecrets()},
		&corev1.PersistentVolumeClaim{}: {},
	}
	c, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: by})
	if err != nil {
		return nil, err
	}
	for o := range by {
		if _, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// resident is the memory of this process that is not shared with the program's
// file.
func resident() (float64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			var kib float64
			_, err := fmt.Sscan(rest, &kib)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("no VmRSS")
}
