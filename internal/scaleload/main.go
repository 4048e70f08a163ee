package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/spec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// neighbours is the prefix of namespaces that are measured beside a busy one.
const neighbours = "good"

func main() {
	program := flag.String("operator", "bin/vm-operator", "the `PROGRAM` that is measured")
	machines := flag.Int("machines", 1000, "how many machines, `N`")
	outage := flag.Duration("outage", time.Minute, "how long the API server is away")
	only := flag.String("steps", "", "the `STEPS` to measure after the first, separated by commas, such as stop,outage, default: all")
	policy := flag.String("policy", "deploy/finalizer-policy.yaml", "the `FILE` with the policy by which machines have the finalizer from their creation, none if empty")
	requests := flag.Bool("requests", false, "print, too, what the API server was asked for, by verb and resource")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l := &load{program: *program, policy: *policy, made: map[key]time.Time{}}
	if err := l.run(ctx, *machines, *outage, strings.Split(*only, ","), *requests); err != nil {
		fmt.Fprintln(os.Stderr, "scaleload:", err)
		os.Exit(1)
	}
}

type load struct {
	plane      *controlplane.ControlPlane
	kube       kubernetes.Interface
	vms        dynamic.NamespaceableResourceInterface
	standIn    *standIn
	rest       func() // ends the stand-in
	operator   *operator
	kubeconfig string
	program    string
	policy     string
	log        string
	template   map[string]any

	mu   sync.Mutex
	made map[key]time.Time
}

func (l *load) run(ctx context.Context, n int, outage time.Duration, wanted []string, requests bool) error {
	dir, err := os.MkdirTemp("", "scaleload-")
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { _ = plane.Stop() }()
	l.plane, l.log = plane, filepath.Join(dir, "operator.log")
	if err := yaml.Unmarshal([]byte(manifest), &l.template); err != nil {
		return err
	}
	config, kubeconfig, err := plane.ServiceAccount(ctx, "scaleload", "cluster-admin")
	if err != nil {
		return err
	}
	l.kubeconfig = kubeconfig
	if l.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	all, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	l.vms = all.Resource(spec.GroupVersion().WithResource(spec.ResourceVirtualMachines))
	apply := [][]string{{"apply", "--server-side", "-f", "deploy/crds"}, {"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"}}
	if l.policy != "" {
		apply = append(apply, []string{"apply", "-f", l.policy})
	}
	for _, args := range apply {
		if _, err := plane.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	if l.policy != "" {
		if err := l.awaitPolicy(ctx); err != nil {
			return err
		}
	}
	l.standIn = newStandIn(l.kube, l.vms)
	if l.rest, err = l.standIn.start(ctx); err != nil {
		return err
	}
	defer func() { l.rest() }()
	if l.operator, err = startOperator(ctx, l.program, l.kubeconfig, l.log); err != nil {
		return err
	}
	defer func() { l.operator.stop() }()
	fmt.Printf("%d machines in 10 namespaces; the operator's log: %s\n\n", n, l.log)
	fmt.Printf("%-10s %8s %8s %8s %8s %9s %9s %7s %7s  %s\n", "", "given", "pods", "quiet", "requests", "operator", "server", "RSS", "peak", "")
	fmt.Printf("%-10s %8s %8s %8s %8s %9s %9s %7s %7s\n", "", "s", "s", "s", "each", "ms each", "ms each", "MiB", "MiB")
	keys := keysOf("ns", n, 10)
	steps := []struct {
		name string
		do   func() error
	}{
		{"create", func() error { return l.create(ctx, "create", keys) }},
		{"idle", func() error { return l.idle(ctx) }},
		{"restart", func() error { return l.restart(ctx) }},
		{"stand-in", func() error { return l.again(ctx, keys) }},
		{"label", func() error { return l.change(ctx, "label", keys, labelled, nil) }},
		{"stop", func() error {
			return l.change(ctx, "stop", keys, stopped, func() bool { return len(l.standIn.pods.ListKeys()) == 0 })
		}},
		{"outage", func() error { return l.outage(ctx, min(500, n), outage) }},
		{"neighbour", func() error { return l.neighbour(ctx, min(500, n)) }},
	}
	for i, step := range steps {
		if wanted[0] != "" && i > 0 && !slices.Contains(wanted, step.name) {
			continue
		}
		before := l.served(ctx)
		if err := step.do(); err != nil {
			return err
		}
		if requests {
			breakdown(before, l.served(ctx), n)
		}
	}
	return nil
}

func (l *load) row(what string, n int, a, b moment, given, pods, quiet time.Duration, remark string) {
	each := func(v float64) string { return fmt.Sprintf("%.1f", v/float64(max(1, n))) }
	seconds := func(d time.Duration) string {
		if d == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", d.Seconds())
	}
	fmt.Printf("%-10s %8s %8s %8s %8s %9s %9s %7.0f %7.0f  %s\n", what, seconds(given), seconds(pods), seconds(quiet), each(b.requests-a.requests),
		each(1000*(b.operator.cpu-a.operator.cpu)), each(1000*(b.server.cpu-a.server.cpu)), b.operator.rss, b.operator.peak, remark)
}

func keysOf(prefix string, n, namespaces int) []key {
	var out []key
	for i := range n {
		out = append(out, key{fmt.Sprintf("%s-%d", prefix, i%namespaces), fmt.Sprintf("vm-%05d", i)})
	}
	return out
}

func namespacesOf(keys []key) map[string]bool {
	out := map[string]bool{}
	for _, k := range keys {
		out[k.namespace] = true
	}
	return out
}

// give creates machines and retries until it succeeds.
func (l *load) give(ctx context.Context, keys []key, workers int) error {
	for namespace := range namespacesOf(keys) {
		if err := l.prepare(ctx, namespace); err != nil {
			return err
		}
	}
	return each(ctx, keys, workers, func(ctx context.Context, k key) error {
		u := (&unstructured.Unstructured{Object: l.template}).DeepCopy()
		u.SetName(k.name)
		_, err := l.vms.Namespace(k.namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: "kubectl"})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		if err == nil {
			l.mu.Lock()
			l.made[k] = time.Now()
			l.mu.Unlock()
		}
		return err
	})
}

// each calls do for each machine until it succeeds, or the API server says that it is wrong.
func each(ctx context.Context, keys []key, workers int, do func(context.Context, key) error) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(keys) && ctx.Err() == nil; i += workers {
				for ctx.Err() == nil {
					try, cancel := context.WithTimeout(ctx, 20*time.Second)
					err := do(try, keys[i])
					cancel()
					if err == nil {
						break
					}
					if apierrors.IsInvalid(err) {
						giveUp(fmt.Errorf("machine %s in namespace %s: %w", keys[i].name, keys[i].namespace, err))
					}
					time.Sleep(200 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (l *load) create(ctx context.Context, what string, keys []key) error {
	a := l.now()
	if err := l.give(ctx, keys, 4); err != nil {
		return err
	}
	given, pods := time.Since(a.at), time.Duration(0)
	at, err := l.quiet(ctx, func() bool {
		if pods == 0 && l.standIn.having(l.standIn.pod, keys) == len(keys) {
			pods = time.Since(a.at)
		}
		return pods > 0 && l.standIn.having(l.standIn.runs, keys) == len(keys)
	})
	if err != nil {
		return err
	}
	remark, err := l.check(ctx, keys)
	l.row(what, len(keys), a, l.now(), given, pods, at.Sub(a.at), remark)
	return err
}

func (l *load) check(ctx context.Context, keys []key) (string, error) {
	list, err := l.vms.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "", err
	}
	phases := map[key]string{}
	for i := range list.Items {
		phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
		phases[key{list.Items[i].GetNamespace(), list.Items[i].GetName()}] = phase
	}
	running := 0
	for _, k := range keys {
		if phases[k] == spec.PhaseRunning {
			running++
		}
	}
	return fmt.Sprintf("%d running, %d with a second pod", running, l.standIn.twice(keys)), nil
}

func (l *load) idle(ctx context.Context) error {
	a := l.now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(30 * time.Second):
	}
	b := l.now()
	l.row("idle 30 s", 1, a, b, 0, 0, 0, fmt.Sprintf("%.0f requests in all", b.requests-a.requests))
	return nil
}

func (l *load) restart(ctx context.Context) error {
	l.operator.stop()
	before := time.Now()
	var err error
	if l.operator, err = startOperator(ctx, l.program, l.kubeconfig, l.log); err != nil {
		return err
	}
	ready := time.Since(before)
	at, err := l.quiet(ctx, func() bool { return true })
	if err != nil {
		return err
	}
	b := l.now()
	l.row("restart", 1, moment{server: b.server}, b, ready, 0, at.Sub(before), "given: ready")
	return nil
}

// again has the stand-in repeat its requests for the creation of a machine, so that its share of
// the load can be distinguished from the operator's.
func (l *load) again(ctx context.Context, keys []key) error {
	a := l.now()
	if err := each(ctx, keys, 8, l.standIn.again); err != nil {
		return err
	}
	given := time.Since(a.at)
	at, err := l.quiet(ctx, func() bool { return true })
	if err != nil {
		return err
	}
	l.row("stand-in", len(keys), a, l.now(), given, 0, at.Sub(a.at), "its requests of a creation once more, with an update of the pod for its binding")
	return nil
}

// Changes of a machine by a user.
const (
	labelled = `{"metadata":{"labels":{"team":"x"}}}`
	stopped  = `{"spec":{"vm":{"state":"Stopped"}}}`
	started  = `{"spec":{"vm":{"state":"Running"}}}`
)

func (l *load) patch(ctx context.Context, keys []key, patch string) error {
	return each(ctx, keys, 8, func(ctx context.Context, k key) error {
		_, err := l.vms.Namespace(k.namespace).Patch(ctx, k.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
		return err
	})
}

func (l *load) change(ctx context.Context, what string, keys []key, patch string, done func() bool) error {
	a := l.now()
	if err := l.patch(ctx, keys, patch); err != nil {
		return err
	}
	given := time.Since(a.at)
	if done == nil {
		done = func() bool { return true }
	}
	at, err := l.quiet(ctx, done)
	if err != nil {
		return err
	}
	l.row(what, len(keys), a, l.now(), given, 0, at.Sub(a.at), "")
	return nil
}

// outage takes the API server away in the middle of a mass creation.
func (l *load) outage(ctx context.Context, n int, away time.Duration) error {
	keys := keysOf("out", n, 10)
	a := l.now()
	given := make(chan error, 1)
	go func() { given <- l.give(ctx, keys, 4) }()
	for l.standIn.having(l.standIn.pod, keys) < n/4 && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(l.log)
	l.rest()
	l.plane.StopAPIServer()
	down := time.Now()
	time.Sleep(away)
	if err := l.plane.StartAPIServer(ctx); err != nil {
		return err
	}
	up, sent := time.Now(), l.operator.counts().requests
	// An API server that has just started may refuse what it is asked. Times of creation are whole
	// seconds, and the API server is away for longer.
	for n := 0; n == 0 && ctx.Err() == nil; {
		time.Sleep(100 * time.Millisecond)
		n, _ = l.pods(ctx, keys, down)
	}
	goesOn := time.Since(up)
	var err error
	if l.rest, err = l.standIn.start(ctx); err != nil {
		return err
	}
	at, err := l.quiet(ctx, func() bool { return l.standIn.having(l.standIn.runs, keys) == n })
	if err != nil {
		return err
	}
	if err := <-given; err != nil {
		return err
	}
	after, _ := os.ReadFile(l.log)
	remark, err := l.check(ctx, keys)
	b := l.now()
	b.server = a.server // it is another process
	l.row("outage", n, a, b, 0, goesOn, at.Sub(up), fmt.Sprintf("pods: the first, quiet: all, after the API server; %.0f requests after; %d lines of log; %s",
		b.requests-sent, strings.Count(string(after), "\n")-strings.Count(string(text), "\n"), remark))
	return err
}

// pods returns how many pods there are in the namespaces of these machines that were created after
// a time. It lists no others, which would add load to an API server that has just started.
func (l *load) pods(ctx context.Context, keys []key, after time.Time) (n int, err error) {
	for namespace := range namespacesOf(keys) {
		list, err := l.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			if list.Items[i].CreationTimestamp.After(after) {
				n++
			}
		}
	}
	return n, nil
}

// neighbour measures twenty machines of a namespace alone, during a mass creation in another, and
// during a start of all that were created there.
func (l *load) neighbour(ctx context.Context, n int) error {
	if err := l.good(ctx, "alone", ""); err != nil {
		return err
	}
	many := keysOf("many", n, 1)
	run := func() bool { return l.standIn.having(l.standIn.runs, many) == n }
	if err := l.goodBeside(ctx, n, "created", run, func() error { return l.give(ctx, many, 4) }); err != nil {
		return err
	}
	if err := l.patch(ctx, many, stopped); err != nil {
		return err
	}
	ended := func() bool {
		n, err := l.pods(ctx, many, time.Time{})
		return err == nil && n == 0 && l.standIn.having(l.standIn.runs, many) == 0
	}
	if _, err := l.quiet(ctx, ended); err != nil {
		return err
	}
	return l.goodBeside(ctx, n, "started", run, func() error { return l.patch(ctx, many, started) })
}

// goodBeside measures twenty machines while do works on n others, and waits for its end.
func (l *load) goodBeside(ctx context.Context, n int, what string, done func() bool, do func() error) error {
	given := make(chan error, 1)
	go func() { given <- do() }()
	time.Sleep(2 * time.Second)
	if err := l.good(ctx, what, fmt.Sprintf(", while %d others are %s", n, what)); err != nil {
		return err
	}
	if err := <-given; err != nil {
		return err
	}
	_, err := l.quiet(ctx, done)
	return err
}

func (l *load) good(ctx context.Context, what, meanwhile string) error {
	keys := keysOf(neighbours+"-"+what, 20, 1)
	a := l.now()
	given := make(chan error, 1)
	go func() { given <- l.give(ctx, keys, 1) }()
	phase := map[key]time.Time{}
	for len(phase) < len(keys) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		list, err := l.vms.Namespace(keys[0].namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue
		}
		for i := range list.Items {
			k := key{list.Items[i].GetNamespace(), list.Items[i].GetName()}
			if p, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase"); p == spec.PhaseRunning && phase[k].IsZero() {
				phase[k] = time.Now()
			}
		}
	}
	if err := <-given; err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.standIn.mu.Lock()
	defer l.standIn.mu.Unlock()
	l.row("good", len(keys), a, l.now(), 0, median(l.made, l.standIn.pod, keys), median(l.made, phase, keys), "pods, quiet: medians to a pod and to Running"+meanwhile)
	return nil
}

func median(from, to map[key]time.Time, keys []key) time.Duration {
	var all []time.Duration
	for _, k := range keys {
		all = append(all, to[k].Sub(from[k]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

const manifest = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: NAME}
spec:
  cloudInit:
    metaData: {}
    userData:
      users:
      - {name: admin, groups: sudo, shell: /bin/bash, ssh_authorized_keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleEx admin@example.org]}
      packages: [qemu-guest-agent, nginx, postgresql]
      runcmd: [[systemctl, enable, --now, nginx], [systemctl, enable, --now, qemu-guest-agent]]
  vm:
    state: Running
    maximumCpus: 2
    currentCpus: 1
    maximumRam: 1Gi
    networks: [{user: {}}]
    display: {spice: {port: 5900, generateSecret: true}}
    disks:
    - {volumeClaimTemplate: {metadata: {name: system}, spec: {resources: {requests: {storage: 10Gi}}}}}
    - {volumeClaimTemplate: {metadata: {name: data}, spec: {resources: {requests: {storage: 20Gi}}}}}
`
