package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

var (
	vmsResource   = spec.GroupVersion().WithResource(spec.ResourceVirtualMachines)
	poolsResource = spec.GroupVersion().WithResource(spec.ResourceVMPools)
)

// patience is how long anything may take on a machine that is very busy.
const patience = 5 * time.Minute

// test is one test with a namespace and clients of its own.
type test struct {
	*testing.T
	namespace string
	kube      kubernetes.Interface
	vms       dynamic.ResourceInterface
	pools     dynamic.ResourceInterface
}

func newTest(t *testing.T) *test {
	t.Helper()
	return newTestOn(t, cluster)
}

// newTestOn is newTest with another cluster than the shared one.
func newTestOn(t *testing.T, on *controlplane.ControlPlane) *test {
	t.Helper()
	config := on.Config()
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	all, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &test{
		T: t, namespace: ns.Name, kube: kube,
		vms: all.Resource(vmsResource).Namespace(ns.Name), pools: all.Resource(poolsResource).Namespace(ns.Name),
	}
}

// eventually repeats until there is no error.
func (t *test) eventually(what string, try func() error) {
	t.Helper()
	t.eventuallyWithin(patience, what, func(context.Context) error { return try() })
}

func (t *test) eventuallyWithin(limit time.Duration, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// process is an operator.
type process struct {
	cmd     *exec.Cmd
	probes  string
	metrics string
	log     *buffer
	done    chan struct{}
	err     error
}

// buffer may be written and read at the same time.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start starts an operator for the test's namespace and waits until it is
// ready.
func (t *test) start(kubeconfig string, flags ...string) *process {
	t.Helper()
	p := t.launch(kubeconfig, flags...)
	t.ready(p)
	return p
}

func (t *test) ready(p *process) {
	t.Helper()
	t.eventually("the operator is ready", func() error {
		select {
		case <-p.done:
			t.Fatalf("the operator ended: %v\n%s", p.err, p.log)
		default:
		}
		_, err := fetch("http://" + p.probes + "/readyz")
		return err
	})
}

// launch starts an operator for the test's namespace, unless the flags say which
// it leaves out.
func (t *test) launch(kubeconfig string, flags ...string) *process {
	t.Helper()
	p := &process{probes: t.freeAddress(), metrics: t.freeAddress(), log: &buffer{}, done: make(chan struct{})}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"--kubeconfig=" + kubeconfig,
		"--health-probe-bind-address=" + p.probes, "--metrics-bind-address=" + p.metrics,
		"--verbose",
	}, flags...)
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--"+flagWithout) }) {
		args = append(args, "--namespace="+t.namespace)
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = append(os.Environ(), asOperator+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	// Should the test die, the operator must not go on.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of the operator's log:\n%s", tail(p.log.String()))
		}
	})
	return p
}

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "reflector=") || strings.Contains(l, "EventSource") })
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// kill ends an operator without asking.
func (p *process) kill() { _ = p.cmd.Process.Kill(); <-p.done }

// stop asks an operator to end and returns its exit code.
func (p *process) stop() int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// freeAddress is one that nobody listens at until an operator does: the many ports
// of other tests are at 127.0.0.1, which this is not.
func (t *test) freeAddress() string {
	t.Helper()
	l, err := net.Listen("tcp4", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func fetch(address string) (string, error) {
	resp, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// metric reads one value of the operator's metrics; 0 if there is none.
func (p *process) metric(name string) (float64, error) {
	text, err := fetch("http://" + p.metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			_, err := fmt.Sscan(rest, &v)
			return v, err
		}
	}
	return 0, nil
}

// object reads a manifest.
func (t *test) object(manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(t.namespace)
	return u
}

// create makes a machine from a manifest.
func (t *test) create(manifest string) {
	t.Helper()
	if _, err := t.vms.Create(t.Context(), t.object(manifest), metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
}

// machine is a small machine with a disk of its own.
func machine(name, state string) string {
	return fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: %s}
spec:
  guestShutdownStops: true
  vm:
    state: %s
    maximumCpus: 2
    currentCpus: 1
    maximumRam: 1Gi
    powerdownTimeout: 1
    networks: [{user: {}}]
    display: {spice: {port: 5900}}
    disks:
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {resources: {requests: {storage: 1Gi}}}
`, name, state)
}

func (t *test) setState(name string, state spec.MachineState) {
	t.Helper()
	t.eventually("set the state", func() error {
		patch := fmt.Sprintf(`{"spec":{"vm":{"state":%q}}}`, state)
		_, err := t.vms.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
		return err
	})
}

func (t *test) status(name string) (*spec.VirtualMachine, error) {
	u, err := t.vms.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	vm := &spec.VirtualMachine{}
	return vm, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, vm)
}

// phase waits for a phase that takes the present specification into account.
func (t *test) phase(name, want string) {
	t.Helper()
	t.eventually("machine "+name+" becomes "+want, func() error {
		vm, err := t.status(name)
		if err != nil {
			return err
		}
		if s := vm.Status; s.Phase != want || s.ObservedGeneration != vm.Generation {
			text, _ := json.Marshal(s)
			return fmt.Errorf("generation %d: %s", vm.Generation, text)
		}
		return nil
	})
}

// reconciled waits until an operator that was just started has looked at n
// machines.
func (t *test) reconciled(p *process, n int) {
	t.Helper()
	t.eventually("all machines were looked at", func() error {
		total := 0.0
		for _, result := range []string{"success", "requeue_after", "requeue", "error"} {
			v, err := p.metric(fmt.Sprintf(`controller_runtime_reconcile_total{controller="machines",result=%q}`, result))
			if err != nil {
				return err
			}
			total += v
		}
		depth, err := p.metric(`workqueue_depth{controller="machines",name="machines",priority=""}`)
		if err != nil {
			return err
		}
		active, err := p.metric(`controller_runtime_active_workers{controller="machines"}`)
		if err != nil || int(total) < n || depth != 0 || active != 0 {
			return fmt.Errorf("%v of %d looked at, %v waiting, %v active (%w)", total, n, depth, active, err)
		}
		return nil
	})
}

// file writes a configuration file.
func (t *test) file(content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// waits waits for a condition with a reason.
func (t *test) waits(name, condition, reason string) {
	t.Helper()
	t.eventually("machine "+name+" explains "+reason, func() error {
		vm, err := t.status(name)
		if err != nil {
			return err
		}
		if c := spec.FindCondition(vm.Status.Conditions, condition); c == nil || c.Reason != reason {
			return fmt.Errorf("conditions %+v", vm.Status.Conditions)
		}
		return nil
	})
}

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}
