package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Of two operators one works; when it is killed, the other goes on.
func TestLeaderIsReplaced(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	elect := []string{"--leader-elect", "--leader-election-namespace=" + t.namespace, "--leader-election-id=test"}
	first, second := newProxy(tt), newProxy(tt)
	one := t.start(first.kubeconfig, elect...)
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)

	two := t.start(second.kubeconfig, elect...)
	if r := second.requests(); len(r) > 0 {
		t.Errorf("the one that waits: %q", r)
	}
	one.kill()
	t.setState("one", spec.StateStopped)
	t.phase("one", spec.PhaseStopped)

	// One that is asked to end leaves its place at once.
	three := t.start(first.kubeconfig, elect...)
	if code := two.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, two.log)
	}
	t.setState("one", spec.StateRunning)
	t.phase("one", spec.PhaseRunning)
	if code := three.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, three.log)
	}
}

// Operators that are killed at any moment never lead to two pods or lose a
// claim, which the kubelet checks, and the last one finishes what they began.
func TestOperatorIsKilledAtRandomMoments(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"one", "two", "three"}
	states := map[string]spec.MachineState{}
	for _, name := range names {
		t.create(machine(name, "Running"))
	}
	for range 10 {
		o := t.start(cluster.Kubeconfig())
		moment := time.NewTimer(time.Duration(random.IntN(400)) * time.Millisecond)
		name := names[random.IntN(len(names))]
		states[name] = []spec.MachineState{spec.StateRunning, spec.StateStopped}[random.IntN(2)]
		t.setState(name, states[name])
		<-moment.C
		o.kill()
	}
	t.start(cluster.Kubeconfig())
	for _, name := range names {
		want := spec.PhaseRunning
		if states[name] == spec.StateStopped {
			want = spec.PhaseStopped
		}
		t.phase(name, want)
	}
}

// outage is how long the API server is away: 4 seconds, unless VMOP_TEST_OUTAGE
// says otherwise. CI has a minute.
func outage(t *test) time.Duration {
	t.Helper()
	text := os.Getenv("VMOP_TEST_OUTAGE")
	if text == "" {
		return 4 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The operator outlives the API server and goes on when it is back.
func TestAPIServerGoesAway(tt *testing.T) {
	tt.Parallel()
	own := ownCluster(tt)
	t := newTestOn(tt, own)
	k := t.startKubelet()
	// An API server that starts refuses service accounts until it has read the roles.
	_, kubeconfig, err := own.ServiceAccount(t.Context(), "operator", "cluster-admin")
	if err != nil {
		t.Fatal(err)
	}
	o := t.start(kubeconfig)
	t.create(machine("one", "Running"))
	t.create(machine("two", "Stopped"))
	t.phase("one", spec.PhaseRunning)
	t.phase("two", spec.PhaseStopped)
	uid := t.podUID("one")

	// The machine has work to be done while nobody answers.
	t.setState("two", spec.StateRunning)
	own.StopAPIServer()
	away := time.NewTimer(outage(t))
	select {
	case <-away.C:
	case <-o.done:
		t.Errorf("the operator ended: %v", o.err)
	}
	t.comeBack(own)
	t.goesOn("two")
	t.same("the pod's UID", uid, t.podUID("one"))
	t.fewLines(o)
	k.end("one", outcome("guest-shutdown", "the guest powered itself off"))
	t.phase("one", spec.PhaseStopped)
	if code := o.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.leavesOut(own)
}

// leavesOut checks that an operator of all namespaces but one leaves that alone.
func (t *test) leavesOut(own *controlplane.ControlPlane) {
	t.Helper()
	t.create(machine("out", "Stopped"))
	there := newTestOn(t.T, own)
	there.create(machine("in", "Stopped"))
	t.start(own.Kubeconfig(), "--"+flagWithout+"="+t.namespace)
	there.phase("in", spec.PhaseStopped)
	vm, err := t.status("out")
	if err != nil {
		t.Fatal(err)
	}
	if vm.Status.Phase != "" {
		t.Errorf("a machine of a namespace that is left out is %s", vm.Status.Phase)
	}
}

// comeBack starts the API server again.
func (t *test) comeBack(own *controlplane.ControlPlane) {
	t.Helper()
	begin := time.Now()
	if err := own.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	started(begin)
}

// goesOn waits for a machine's pod. The aim is five seconds; tests run beside much
// else.
func (t *test) goesOn(name string) {
	t.Helper()
	begin := time.Now()
	t.eventuallyWithin(within(), "the operator goes on", func(context.Context) error {
		if t.podUID(name) == "" {
			return errors.New("no pod")
		}
		return nil
	})
	t.Logf("the operator went on after %v", time.Since(begin).Round(100*time.Millisecond))
}

// fewLines checks that an outage does not fill the log.
func (t *test) fewLines(o *process) {
	t.Helper()
	log := o.log.String()
	if n := strings.Count(log, "not be reached"); n != 1 {
		t.Errorf("%d lines tell of the outage", n)
	}
	if n := strings.Count(log, "lease"); n > 0 {
		t.Errorf("%d lines tell of a lease that was lost because of the outage:\n%s", n, tail(log))
	}
	if n := strings.Count(log, "level=ERROR"); n > 5 {
		t.Errorf("%d errors:\n%s", n, tail(log))
	}
	if n := strings.Count(log, "forbidden"); n > 0 {
		t.Errorf("%d lines tell of what an API server refuses that has just started:\n%s", n, tail(log))
	}
}

// One process waits for the API server, for the definitions and for the API server
// again, though it loses its lease meanwhile; and ends at any time when it is asked
// to.
func TestOperatorWaits(tt *testing.T) {
	tt.Parallel()
	own, err := controlplane.Start(tt.Context(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		tt.Fatal(err)
	}
	tt.Cleanup(func() {
		if err := own.Stop(); err != nil {
			tt.Error(err)
		}
	})
	t := newTestOn(tt, own)
	own.StopAPIServer()
	elect := []string{"--leader-elect", "--leader-election-namespace=" + t.namespace, "--leader-election-id=test"}
	o, impatient := t.launch(own.Kubeconfig(), elect...), t.launch(own.Kubeconfig())
	says := func(o *process, what string) {
		t.eventually("the operator says "+what, func() error {
			if _, err := fetch("http://" + o.probes + "/healthz"); err != nil {
				return err
			}
			if _, err := fetch("http://" + o.probes + "/readyz"); err == nil || !strings.Contains(err.Error(), what) {
				return fmt.Errorf("it says %v", err)
			}
			return nil
		})
	}
	says(o, "cannot be reached")
	says(impatient, "cannot be reached")
	t.ends(impatient)
	t.comeBack(own)
	says(o, "the definition of vms.vmoperator.jdrupes.org")
	if err := define(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	t.ready(o)
	t.startKubelet()
	t.create(machine("one", "Running"))
	t.create(machine("two", "Stopped"))
	t.phase("one", spec.PhaseRunning)
	t.phase("two", spec.PhaseStopped)

	t.setState("two", spec.StateRunning)
	o.log.reset()
	own.StopAPIServer()
	time.Sleep(max(12*time.Second, outage(t))) // it loses the lease after ten
	t.comeBack(own)
	t.goesOn("two")
	t.phase("two", spec.PhaseRunning)
	t.fewLines(o)
	own.StopAPIServer()
	t.ends(o)
}

// ends asks an operator to end, which it does soon and without much ado.
func (t *test) ends(o *process) {
	t.Helper()
	used, _ := o.metric("process_cpu_seconds_total") // which has no metrics yet has used little
	begin := time.Now()
	if code := o.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, tail(o.log.String()))
	}
	if d := time.Since(begin); d > within() {
		t.Errorf("it took %v to end", d)
	}
	cpu := o.cmd.ProcessState.UserTime() + o.cmd.ProcessState.SystemTime()
	if cpu -= time.Duration(used * float64(time.Second)); cpu > 2*time.Second {
		t.Errorf("it has used the processor for %v to end", cpu)
	}
}

// An operator that may not read anything ends when it is asked to, though its
// caches will never be filled.
func TestOperatorWithoutRightsEnds(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	data, err := os.ReadFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	for _, u := range config["users"].([]any) {
		user := u.(map[string]any)["user"].(map[string]any)
		user["as"], user["as-groups"] = "nobody", []any{"system:authenticated"}
	}
	if data, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	o := t.launch(t.file(string(data)))
	t.eventually("it waits for its caches", func() error {
		if _, err := fetch("http://" + o.probes + "/readyz"); err == nil || !strings.Contains(err.Error(), "caches") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	time.Sleep(2 * time.Second)
	t.ends(o)
}

// Objects of somebody else that have the names of a machine's are left alone,
// and the machine says what it waits for.
func TestObjectsOfOthersAreLeftAlone(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	core := t.kube.CoreV1()
	other := metav1.ObjectMeta{Name: "taken", Labels: map[string]string{"mine": "yes"}}
	if _, err := core.ConfigMaps(t.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: other}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: other, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := core.Services(t.namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret-display-secret", Labels: other.Labels}, StringData: map[string]string{"key": "theirs"}}
	if _, err := core.Secrets(t.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p, begin := newProxy(tt), time.Now()
	t.start(p.kubeconfig, "--config="+t.file(`"/Manager/Controller/Reconciler": {loadBalancerService: true}`))
	t.create(machine("taken", "Running"))
	t.create(machine("secret", "Running"))
	t.waits("taken", spec.ConditionConfigurationApplied, spec.ReasonNameTaken)
	t.waits("secret", spec.ConditionConfigurationApplied, spec.ReasonNameTaken)

	// Whatever else changes, the Secret is not tried again before a minute is over.
	for n := range 5 {
		patch := fmt.Sprintf(`{"spec":{"vm":{"powerdownTimeout":%d}}}`, 10+n)
		vm, err := t.vms.Patch(t.Context(), "secret", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
		if err != nil {
			t.Fatal(err)
		}
		t.eventually("the change is seen", func() error {
			seen, err := t.status("secret")
			if err != nil {
				return err
			}
			c := spec.FindCondition(seen.Status.Conditions, spec.ConditionConfigurationApplied)
			if c == nil || c.ObservedGeneration < vm.GetGeneration() || c.Reason != spec.ReasonNameTaken || !strings.Contains(c.Message, "secret-display-secret") {
				return fmt.Errorf("generation %d: %+v", vm.GetGeneration(), c)
			}
			return nil
		})
	}
	tries := len(p.which(func(r *request) bool { return r.text == "create secrets" })) - 1 // that of the other machine
	if most := 2 + int(time.Since(begin)/time.Minute); tries > most {
		t.Errorf("%d Creates of a Secret that is there, at most %d are wanted", tries, most)
	}
	secret, err := core.Secrets(t.namespace).Get(t.Context(), secret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.same("labels of the Secret", other.Labels, secret.Labels)
	t.same("data of the Secret", map[string][]byte{"key": []byte("theirs")}, secret.Data)

	cm, err := core.ConfigMaps(t.namespace).Get(t.Context(), "taken", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.same("labels of the ConfigMap", other.Labels, cm.Labels)
	s, err := core.Services(t.namespace).Get(t.Context(), "taken", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.same("labels of the service", other.Labels, s.Labels)

	// Once the names are free, the machines go on by themselves.
	if err := core.ConfigMaps(t.namespace).Delete(t.Context(), "taken", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := core.Secrets(t.namespace).Delete(t.Context(), secret.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Nobody watches the objects of others; they are looked for again each minute.
	for _, name := range []string{"taken", "secret"} {
		t.eventually("the pod of "+name+" is there", func() error {
			if t.podUID(name) == "" {
				return fmt.Errorf("no pod")
			}
			return nil
		})
	}
	if s, err = core.Services(t.namespace).Get(t.Context(), "taken", metav1.GetOptions{}); err != nil || s.Labels["mine"] != "yes" || s.Labels[names.LabelManagedBy] != "" {
		t.Errorf("service %v, %v", s.Labels, err)
	}
}

// A write that the API server refuses is explained and does not end in a loop.
func TestRefusalIsExplained(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	core := t.kube.CoreV1()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{"count/pods": *quantity("0")}
	made, err := core.ResourceQuotas(t.namespace).Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The quota controller would do this.
	made.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	if _, err := core.ResourceQuotas(t.namespace).UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.startKubelet()
	p := newProxy(tt)
	t.start(p.kubeconfig)
	t.create(machine("one", "Running"))
	t.waits("one", spec.ConditionPodReady, spec.ReasonQuotaExceeded)
	if err := core.ResourceQuotas(t.namespace).Delete(t.Context(), "none", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseRunning)
	if r := p.requests(); len(r) > 60 {
		t.Errorf("%d requests: %q", len(r), r)
	}
}

// A quota that counts limits gives the pod some; one that is used up is told with
// what is left, and when it has grown the machine is started.
func TestQuotaGrows(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	quotas := t.kube.CoreV1().ResourceQuotas(t.namespace)
	// have is a quota as its controller would show it, with nothing used.
	have := func(q *corev1.ResourceQuota, hard corev1.ResourceList) *corev1.ResourceQuota {
		t.Helper()
		q.Spec.Hard = hard
		var err error
		if q.ResourceVersion == "" {
			q, err = quotas.Create(t.Context(), q, metav1.CreateOptions{})
		} else {
			q, err = quotas.Update(t.Context(), q, metav1.UpdateOptions{})
		}
		if err == nil {
			q.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}}
			for name := range hard {
				q.Status.Used[name] = *quantity("0")
			}
			q, err = quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	list := func(requests, limits string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceRequestsMemory: *quantity(requests), corev1.ResourceLimitsMemory: *quantity(limits), corev1.ResourceRequestsCPU: *quantity("8")}
	}
	q := have(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"}}, list("64Mi", "64Gi"))
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(machine("one", "Running"))
	t.eventually("the machine says what is left", func() error {
		vm, err := t.status("one")
		if err != nil {
			return err
		}
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady)
		if c == nil || c.Reason != spec.ReasonQuotaExceeded || !strings.Contains(c.Message, "requested: requests.memory=") || !strings.Contains(c.Message, "limited: requests.memory=64Mi") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	have(q, list("64Gi", "64Gi"))
	t.phase("one", spec.PhaseRunning)
	pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r := pod.Spec.Containers[0].Resources; r.Limits.Memory().Cmp(*r.Requests.Memory()) <= 0 || pod.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("%s: %+v", pod.Status.QOSClass, r)
	}
}

// A pod whose image cannot be pulled is explained, with the image.
func TestImageThatCannotBePulled(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.start(cluster.Kubeconfig())
	t.create(machine("one", "Running"))
	t.eventually("the pod is there", func() error {
		pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			return err
		}
		// The kubelet would do this.
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "one", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such host"},
		}}}
		_, err = t.kube.CoreV1().Pods(t.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		return err
	})
	t.waits("one", spec.ConditionPodReady, "ImagePullBackOff")
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady); !strings.Contains(c.Message, "image ghcr.io/") {
		t.Errorf("the image is not told: %s", c.Message)
	}
}

// A claim that a disk refers to need not have any labels; the machine notices
// when it appears.
func TestReferencedClaimAppears(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: one}
spec:
  vm: {state: Running, maximumCpus: 1, maximumRam: 1Gi, networks: [{user: {}}], display: {spice: {port: 5900}}, disks: [{persistentVolumeClaim: {claimName: precious}}]}
`)
	t.waits("one", spec.ConditionBlockDevicesReady, spec.ReasonClaimNotFound)
	block := corev1.PersistentVolumeBlock
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "precious"}}
	claim.Spec.VolumeMode, claim.Spec.AccessModes = &block, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *quantity("1Gi")}
	if _, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseRunning)
}

// The assignment from a pool that was deleted goes after a while, and one whose
// retention has passed; that of a pool that exists stays.
func TestAssignmentsAreKeptUp(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	if _, err := t.pools.Create(t.Context(), t.object(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VmPool
metadata: {name: here}
spec: {retention: PT1h, permissions: [{user: ann}]}
`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.start(cluster.Kubeconfig())
	const longAgo = "2020-01-01T00:00:00Z"
	for name, a := range map[string]spec.Assignment{
		"kept": {Pool: "here", LastUsed: time.Now().UTC().Format(time.RFC3339)}, "freed": {Pool: "gone", LastUsed: longAgo}, "expired": {Pool: "here", LastUsed: longAgo},
	} {
		t.create(machine(name, "Stopped"))
		patch := fmt.Sprintf(`{"status":{"assignment":{"pool":%q,"user":%q,"lastUsed":%q}}}`, a.Pool, name, a.LastUsed)
		if _, err := t.vms.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"freed", "expired"} {
		t.eventually("assignment "+name+" is removed", func() error {
			vm, err := t.status(name)
			if err == nil && vm.Status.Assignment != nil && vm.Status.Assignment.Pool != "" {
				err = fmt.Errorf("assignment %+v", vm.Status.Assignment)
			}
			return err
		})
	}
	vm, err := t.status("kept")
	if err != nil || vm.Status.Assignment == nil || vm.Status.Assignment.User != "kept" {
		t.Errorf("assignment %+v, %v", vm.Status.Assignment, err)
	}
}

// A machine that was deleted leaves its claims and its secret behind, and
// nothing is made for it again.
func TestDeletedMachineLeavesItsData(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	k := t.startKubelet()
	p := newProxy(tt)
	t.start(p.kubeconfig)
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	k.mu.Lock()
	k.stubborn["one"] = true
	k.mu.Unlock()
	p.reset()
	if err := t.vms.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseTerminating)
	uid := t.podUID("one")
	if uid == "" {
		t.Error("the pod is gone")
	}
	// Somebody does not want to wait.
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"now"}}}`, names.AnnotationForceStop)
	if _, err := t.vms.Patch(t.Context(), "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.eventually("the machine is gone", func() error {
		if vm, err := t.status("one"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%+v, %v", vm, err)
		}
		return nil
	})
	if now := t.podUID("one"); now != "" {
		t.Errorf("it went before its pod %s", now)
	}
	t.Logf("deleted: %d requests:\n%s", len(p.requests()), strings.Join(p.requests(), "\n"))
	claims, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 2 {
		t.Errorf("%d claims, %v", len(claims.Items), err)
	}
	if _, err := t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "one-display-secret", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := t.vms.Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the machine: %v", err)
	}
	// One of the same name finds them again.
	p.reset()
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	for _, r := range p.requests() {
		if r == "create secrets" || r == "create persistentvolumeclaims" {
			t.Errorf("%s, though there is one", r)
		}
	}
}

// A machine that is stored and that the types have no place for, as an earlier
// definition may have let one be, says so, and the others go on.
func TestUnreadableMachine(tt *testing.T) {
	tt.Parallel()
	own := ownCluster(tt)
	t := newTestOn(tt, own)
	t.startKubelet()
	const weight = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/affinity/properties/nodeAffinity/properties/" +
		"preferredDuringSchedulingIgnoredDuringExecution/items/properties/weight"
	patch := `[{"op": "remove", "path": "` + weight + `/maximum"}, {"op": "remove", "path": "` + weight + `/format"}]`
	if _, err := own.Kubectl(t.Context(), "patch", "crd", spec.ResourceVirtualMachines+"."+spec.GroupName, "--type=json", "-p", patch); err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(machine("broken", "Running"), "spec:\n", `spec:
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 99999999999
        preference: {matchExpressions: [{key: a, operator: Exists}]}
`, 1)
	t.eventually("the earlier definition is in use", func() error {
		_, err := t.vms.Create(t.Context(), t.object(broken), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	t.create(machine("well", "Running"))
	t.start(own.Kubeconfig())
	t.phase("well", spec.PhaseRunning)
	t.eventually("the machine says what is wrong", func() error {
		out, err := own.Kubectl(t.Context(), "get", "vm", "-n", t.namespace, "broken", "-o",
			`jsonpath={.status.conditions[?(@.type=="ConfigurationApplied")].reason} {.status.conditions[?(@.type=="ConfigurationApplied")].message}`)
		if err == nil && (!strings.HasPrefix(out, spec.ReasonInvalidSpecification) || !strings.Contains(out, "weight")) {
			err = errors.New(out)
		}
		return err
	})
	if uid := t.podUID("broken"); uid != "" {
		t.Errorf("the machine has pod %s", uid)
	}
}

// A machine that is deleted with --cascade=orphan keeps its disks whatever its manifest says, also
// if the garbage collector has done its part while there was no operator.
func TestOrphaningMachineKeepsItsDisks(tt *testing.T) {
	t := newTest(tt)
	t.startKubelet()
	t.create(strings.Replace(machine("web", "Running"), "spec:\n", "spec:\n  deletionPolicy: Delete\n", 1))
	first := t.start(cluster.Kubeconfig())
	t.phase("web", spec.PhaseRunning)
	patch := func(text string) {
		if _, err := t.vms.Patch(t.Context(), "web", types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec": {"vm": {"state": "Stopped"}}}`)
	t.phase("web", spec.PhaseStopped)
	first.stop()
	if err := t.vms.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
		t.Fatal(err)
	}
	// There is no controller manager here.
	configs := t.kube.CoreV1().ConfigMaps(t.namespace)
	if _, err := configs.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata": {"ownerReferences": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	patch(`{"metadata": {"finalizers": ["` + names.FinalizerMachine + `"]}}`)
	t.start(cluster.Kubeconfig())
	t.eventually("the machine is gone", func() error {
		if vm, err := t.status("web"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%+v, %v", vm, err)
		}
		return nil
	})
	for _, name := range []string{"web-runner-data", "web-system-disk"} {
		if c, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil || c.DeletionTimestamp != nil {
			t.Errorf("claim %s: %+v, %v", name, c, err)
		}
	}
	if _, err := t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "web-display-secret", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// A machine whose manifest says so takes with it what was made for it, once the
// operator may delete it, and nothing else.
func TestDeletedMachineTakesItsDisks(tt *testing.T) {
	t := newTest(tt)
	t.startKubelet()
	p := newProxy(tt)
	t.start(p.kubeconfig)
	claims := t.kube.CoreV1().PersistentVolumeClaims(t.namespace)
	deletes := func(name string) string {
		return strings.Replace(machine(name, "Running"), "spec:\n", "spec:\n  deletionPolicy: Delete\n", 1)
	}
	t.create(deletes("one"))
	t.create(deletes("two"))
	t.create(strings.Replace(machine("three", "Stopped"), "    disks:\n", "    disks:\n    - persistentVolumeClaim: {claimName: two-system-disk}\n", 1))
	t.phase("one", spec.PhaseRunning)
	t.phase("two", spec.PhaseRunning)
	p.reset()
	for _, name := range []string{"one", "two"} {
		if err := t.vms.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.eventually("the machines are gone", func() error {
		for _, name := range []string{"one", "two"} {
			if vm, err := t.status(name); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%+v, %v", vm, err)
			}
		}
		return nil
	})
	for name, gone := range map[string]bool{"one-runner-data": true, "one-system-disk": true, "two-runner-data": true, "two-system-disk": false} {
		// Without a controller manager nobody removes the finalizer that protects claims.
		c, err := claims.Get(t.Context(), name, metav1.GetOptions{})
		if has := err == nil && c.DeletionTimestamp == nil; has == gone || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("claim %s: deleted %v, %v", name, !has, err)
		}
	}
	_, err := t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "one-display-secret", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the display secret is there: %v", err)
	}
	t.Logf("deleted: %d requests:\n%s", len(p.requests()), strings.Join(p.requests(), "\n"))
}
