package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// grownManifest is a machine of ordinary size.
const grownManifest = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {namespace: apps, name: %s}
spec:
  guestShutdownStops: true
  permissions: [{user: ann, may: [accessConsole, start, stop]}]
  cloudInit: {metaData: {}, userData: {packages: [qemu-guest-agent, nginx], users: [{name: ann, groups: [sudo]}]}}
  vm:
    state: Running
    maximumCpus: 4
    currentCpus: 2
    maximumRam: 8Gi
    currentRam: 4Gi
    networks: [{user: {}}]
    display: {spice: {port: 5900}}
    disks:
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {storageClassName: fast, resources: {requests: {storage: 40Gi}}}
    - cdrom: {image: ""}
`

// grown is a machine as a cluster has it, with all its objects.
type grown struct {
	vm     *spec.VirtualMachine
	pod    *corev1.Pod
	config *corev1.ConfigMap
	claims []corev1.PersistentVolumeClaim
	secret *corev1.Secret
	serial int
	number int
	now    time.Time
}

// grow lets the operator's decisions and what a node and a runner would do make
// a machine that runs, about which there is nothing to be done any more.
func grow(t testing.TB, number int, now time.Time) *grown {
	t.Helper()
	name := fmt.Sprintf("machine-%05d", number)
	vms, err := vmop.Load(name, fmt.Appendf(nil, grownManifest, name))
	if err != nil {
		t.Fatal(err)
	}
	g := &grown{vm: vms[0], number: number, now: now}
	spec.Default(g.vm)
	g.sort(t)
	g.store(g.vm)
	g.vm.Generation = 3
	for range 20 {
		plan := machinekind.Decide(g.snapshot())
		if len(plan.Actions)+len(plan.Statuses) == 0 && g.vm.Status.Phase == spec.PhaseRunning {
			return g
		}
		for _, a := range plan.Actions {
			g.act(t, a)
		}
		for _, s := range plan.Statuses {
			g.report(t, s.Status)
		}
		g.run(t)
	}
	t.Fatalf("machine %s has not converged: %+v", name, g.vm.Status)
	return nil
}

// sort gives the documents in the machine the order of keys that the API server
// gives them.
func (g *grown) sort(t testing.TB) {
	t.Helper()
	fields := map[string]any{}
	data, err := json.Marshal(g.vm)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err == nil {
		data, err = json.Marshal(fields)
	}
	if err == nil {
		g.vm = &spec.VirtualMachine{}
		err = json.Unmarshal(data, g.vm)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (g *grown) snapshot() machinekind.Snapshot {
	s := machinekind.Snapshot{VM: g.vm, Now: g.now, Password: "password-" + g.vm.Name, ConfigMap: g.config, Claims: g.claims}
	if g.pod != nil {
		s.Pods = []corev1.Pod{*g.pod}
	}
	if g.secret != nil {
		s.DisplaySecrets = []corev1.Secret{*g.secret}
	}
	return s
}

// store gives an object what the API server gives it.
func (g *grown) store(o metav1.Object) {
	g.serial++
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("%08x-%04x-4000-8000-%012x", g.number, g.serial, g.number)))
		o.SetCreationTimestamp(metav1.NewTime(g.now.Add(-time.Hour).Truncate(time.Second)))
	}
	o.SetResourceVersion(strconv.Itoa(1000*g.number + g.serial))
}

func (g *grown) act(t testing.TB, a reconcile.Action) {
	t.Helper()
	switch a := a.(type) {
	case reconcile.Create:
		g.put(t, a.Object)
	case reconcile.Apply:
		g.put(t, a.Object)
	case reconcile.SetFinalizers:
		g.vm.Finalizers = a.Finalizers
		g.store(g.vm)
	case reconcile.AnnotatePod:
		for k, v := range a.Annotations {
			g.pod.Annotations[k] = *v
		}
		g.store(g.pod)
	default:
		t.Fatalf("unexpected action %s", a.Target())
	}
}

func (g *grown) put(t testing.TB, o reconcile.Object) {
	t.Helper()
	g.store(o)
	switch o := o.(type) {
	case *corev1.Pod:
		g.pod = o
	case *corev1.ConfigMap:
		g.config = o
	case *corev1.Secret:
		o.Data, o.StringData = map[string][]byte{}, nil
		for _, k := range []string{names.PasswordKey, names.PasswordExpiryKey} {
			o.Data[k] = []byte("c2VjcmV0IG9mIHRoZSBtYWNoaW5l")
		}
		g.secret = o
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, AccessModes: o.Spec.AccessModes, Capacity: o.Spec.Resources.Requests,
		}
		o.Spec.VolumeName = "pvc-" + string(o.UID)
		o.Annotations = merged(o.Annotations, map[string]string{
			"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
			"volume.kubernetes.io/storage-provisioner": "storage.example.org/fast", "volume.kubernetes.io/selected-node": "node-17.example.org",
		})
		o.Finalizers = []string{"kubernetes.io/pvc-protection"}
		g.claims = append(g.claims, *o)
	default:
		t.Fatalf("unexpected object %T", o)
	}
}

func merged(maps ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// run does what a node and a runner do with a new pod.
func (g *grown) run(t testing.TB) {
	t.Helper()
	if g.pod == nil || g.pod.Status.Phase != "" {
		return
	}
	at := metav1.NewTime(g.now.Add(-50 * time.Minute).Truncate(time.Second))
	g.pod.Spec.NodeName = "node-17.example.org"
	g.pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.244.17.23", PodIPs: []corev1.PodIP{{IP: "10.244.17.23"}},
		HostIP: "192.168.10.17", HostIPs: []corev1.HostIP{{IP: "192.168.10.17"}}, StartTime: &at, QOSClass: corev1.PodQOSBurstable,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: g.pod.Name, Ready: true, Image: g.pod.Spec.Containers[0].Image,
			ImageID:     "ghcr.io/vmop/vmop-runner@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			ContainerID: fmt.Sprintf("containerd://%064x", g.number), Started: new(bool),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		}},
	}
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		g.pod.Status.Conditions = append(g.pod.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	var conditions []any
	for _, c := range spec.ConditionTypes() {
		conditions = append(conditions, map[string]any{
			"type": c, "status": "True", "reason": "Reported", "message": "the runner of the machine has said so",
			"observedGeneration": int64(3), "lastTransitionTime": at.UTC().Format(time.RFC3339),
		})
	}
	g.report(t, map[string]any{
		"cpus": int64(2), "ram": "4Gi", "runnerVersion": "v0.1.0", "machineType": "pc-q35-7.2", "accelerator": "kvm", "hostName": g.vm.Name,
		"versions":   map[string]any{"runner": "v0.1.0", "qemu": "7.2.22"},
		"interfaces": []any{map[string]any{"name": "eth0", "mac": "52:54:00:12:34:56", "ipAddresses": []any{"10.0.2.15/24"}}},
		"conditions": conditions,
	})
}

// report applies a part of the status.
func (g *grown) report(t testing.TB, part map[string]any) {
	t.Helper()
	conditions := g.vm.Status.Conditions
	g.vm.Status.Conditions = nil
	data, err := json.Marshal(part)
	if err == nil {
		err = json.Unmarshal(data, &g.vm.Status)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range g.vm.Status.Conditions {
		conditions = spec.WithCondition(conditions, c)
	}
	g.vm.Status.Conditions = conditions
	g.store(g.vm)
}

// objects are all objects of a kind, as JSON of the API server.
func (g *grown) objects(t testing.TB, kind string) [][]byte {
	t.Helper()
	var out [][]byte
	add := func(apiVersion string, o any) {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]any{}
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		fields["apiVersion"], fields["kind"] = apiVersion, kind
		managed(fields)
		if data, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	switch kind {
	case spec.KindVirtualMachine:
		add(spec.GroupVersion().String(), g.vm)
	case kindPod:
		add("v1", g.pod)
	case kindConfigMap:
		add("v1", g.config)
	case kindSecret:
		add("v1", g.secret)
	case kindClaim:
		for i := range g.claims {
			add("v1", &g.claims[i])
		}
	}
	return out
}

// managed adds what the API server notes down about who wrote what: an entry for
// the specification, and one for each author of the status.
func managed(o map[string]any) {
	var entries []any
	add := func(manager, subresource string, owned map[string]any) {
		entry := map[string]any{
			"manager": manager, "operation": "Apply", "apiVersion": o["apiVersion"], "time": "2026-01-01T00:00:00Z",
			"fieldsType": "FieldsV1", "fieldsV1": owned,
		}
		if subresource != "" {
			entry["subresource"] = subresource
		}
		entries = append(entries, entry)
	}
	owned := map[string]any{}
	for _, p := range []string{"metadata", "spec", "data"} {
		if v, ok := o[p]; ok {
			owned["f:"+p] = fieldsOf(v)
		}
	}
	add("kubernetes-java-kubectl-apply", "", owned)
	if status, ok := o["status"].(map[string]any); ok {
		for manager, fields := range authored(o["kind"] == spec.KindVirtualMachine, status) {
			add(manager, "status", map[string]any{"f:status": fields})
		}
	}
	o["metadata"].(map[string]any)["managedFields"] = entries
}

// authored are the fields of a status by who has written them. That of a machine has
// two authors.
func authored(machine bool, status map[string]any) map[string]map[string]any {
	if !machine {
		return map[string]map[string]any{"kubelet": fieldsOf(status)}
	}
	operators, runners := map[string]any{}, map[string]any{}
	for name, value := range status {
		switch name {
		case "conditions":
			for _, c := range value.([]any) {
				t := c.(map[string]any)["type"].(string)
				of := runners
				if slices.Contains(spec.OperatorConditionTypes(), t) {
					of = operators
				}
				list, ok := of["f:conditions"].(map[string]any)
				if !ok {
					list = map[string]any{}
					of["f:conditions"] = list
				}
				list[fmt.Sprintf(`k:{"type":%q}`, t)] = fieldsOf(c)
			}
		case "phase", "created", "ready", "nodeName", "ipAddress", "observedGeneration", "claims", "virtualMachinePods", "stats":
			operators["f:"+name] = fieldsOf(value)
		default:
			runners["f:"+name] = fieldsOf(value)
		}
	}
	return map[string]map[string]any{names.OperatorStatusManager: operators, names.RunnerStatusManager: runners}
}

func fieldsOf(v any) map[string]any {
	out := map[string]any{}
	if fields, ok := v.(map[string]any); ok {
		for k, inner := range fields {
			out["f:"+k] = fieldsOf(inner)
		}
	}
	return out
}

// Nothing is to be done about a grown machine as the API server has it, or else what is
// measured with many of them is something else.
func TestGrownMachinesNeedNothing(t *testing.T) {
	g := grow(t, 1, time.Now())
	m := &machine{}
	if err := json.Unmarshal(g.objects(t, spec.KindVirtualMachine)[0], m); err != nil {
		t.Fatal(err)
	}
	vm, err := m.decode()
	if err != nil {
		t.Fatal(err)
	}
	s := g.snapshot()
	s.VM, s.Authors = vm, m.authors
	if p := machinekind.Decide(s); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 {
		t.Errorf("actions %v, statuses %v, events %v", p.Actions, p.Statuses, p.Events)
	}
}
