package deploytest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/vmop/sdk/vmop/operatorconfig"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	claims     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// A second time nothing changes: what is stored is what is written.
func TestApplyingTwiceChangesNothing(t *testing.T) {
	for _, folder := range []string{"access", "definitions", ".", "runner", "image-repository"} {
		folder = filepath.Join(deploy, folder)
		for line := range strings.SplitSeq(strings.TrimSpace(kubectl(t, "apply", "--warnings-as-errors", "-k", folder)), "\n") {
			if !strings.HasSuffix(line, " unchanged") {
				t.Errorf("%s: %s", folder, line)
			}
		}
		if out := kubectl(t, "diff", "-k", folder); out != "" {
			t.Errorf("%s: %s", folder, out)
		}
	}
}

// The namespace of the operator takes unprivileged pods only. The Deployment
// controller got the operator's pod made there.
func TestTheOperatorRunsUnprivileged(t *testing.T) {
	pod := operatorPod(t, "vmop-system")
	if pod.Spec.ServiceAccountName != "vmop-operator" {
		t.Errorf("service account %q", pod.Spec.ServiceAccountName)
	}
	if c := pod.Spec.Containers[0]; c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Errorf("probes %v, %v", c.LivenessProbe, c.ReadinessProbe)
	}
	// To be sure that somebody looks.
	loose := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "loose", "namespace": "vmop-system"},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
	}}
	_, err := client(t).Resource(pods).Namespace("vmop-system").Create(t.Context(), loose, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("a pod without restrictions: %v", err)
	}
}

// An operator for one namespace also stays in it.
func TestTheOperatorOfOneNamespace(t *testing.T) {
	pod := operatorPod(t, namespaceOfOne)
	env := pod.Spec.Containers[0].Env
	if len(env) != 1 || env[0].Name != "VMOP_NAMESPACES" || env[0].ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
		t.Error(env)
	}
	var claim corev1.PersistentVolumeClaim
	read(t, claims, namespaceOfOne, "vmop-image-repository", &claim)
}

// operatorPod waits for the pod that the Deployment leads to.
func operatorPod(t *testing.T, namespace string) corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := client(t).Resource(pods).Namespace(namespace)
	options := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=vmop-operator"}
	var pod corev1.Pod
	list, err := c.List(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > 0 {
		convert(t, &list.Items[0], &pod)
		return pod
	}
	options.ResourceVersion = list.GetResourceVersion()
	w, err := c.Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Added {
			convert(t, e.Object.(*unstructured.Unstructured), &pod)
			return pod
		}
	}
	t.Fatalf("no pod of the operator within %v:\n%s", patience, kubectl(t, "-n", namespace, "describe", "replicasets"))
	return pod
}

func TestTheConfigurationIsGood(t *testing.T) {
	for _, namespace := range []string{"vmop-system", namespaceOfOne} {
		pod := operatorPod(t, namespace)
		var file, settings corev1.ConfigMap
		read(t, configMaps, namespace, pod.Spec.Volumes[0].Projected.Sources[0].ConfigMap.Name, &file)
		read(t, configMaps, namespace, pod.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name, &settings)
		c, remarks, err := operatorconfig.Parse("config.yaml", []byte(file.Data["config.yaml"]))
		if err != nil || len(remarks.Warnings)+len(remarks.Notes) > 0 {
			t.Errorf("%s: %+v, %+v, %v", namespace, c, remarks, err)
		}
		c, remarks, err = operatorconfig.ParseEnvironment(c, environ(settings.Data))
		if err != nil || len(remarks.Warnings) > 0 || c.Settings.RunnerImage == "" || c.Settings.RunnerPullPolicy != corev1.PullIfNotPresent {
			t.Errorf("%s: %+v, %+v, %v", namespace, c, remarks, err)
		}
	}
}

func environ(variables map[string]string) []string {
	var out []string
	for k, v := range variables {
		out = append(out, k+"="+v)
	}
	return out
}

// A machine's pod runs where only unprivileged pods may, unless its manifest or
// the operator's settings ask for more.
func TestMachinesRunUnprivileged(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings objects.Settings
		edit     func(*spec.VirtualMachine)
		refused  string
	}{
		{name: "plain", edit: func(*spec.VirtualMachine) {}},
		{name: "kvm", settings: objects.Settings{KVMResource: "devices.kubevirt.io/kvm"}, edit: func(*spec.VirtualMachine) {}},
		{name: "tpm", edit: func(vm *spec.VirtualMachine) { vm.Spec.VM.UseTPM = true }},
		{name: "tap", edit: func(vm *spec.VirtualMachine) {
			vm.Spec.VM.Networks = []spec.Network{{Tap: &spec.TapNetwork{Bridge: "br0"}}}
		}, refused: "host namespaces"},
		{name: "privileged", settings: objects.Settings{Privileged: true}, edit: func(*spec.VirtualMachine) {}, refused: "privileged"},
	} {
		vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: c.name, Namespace: namespaceOfOne}}
		cpus := int32(1)
		vm.Spec.VM.MaximumCPUs = &cpus
		c.edit(vm)
		spec.Default(vm)
		pod := objects.Pod(vm, c.settings, objects.PodInput{Disks: machineconfig.Disks(vm)})
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client(t).Resource(pods).Namespace(namespaceOfOne).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The policies for machines are objects that an API server takes, and select the pods
// of machines.
func TestThePolicyOfMachinesSelectsTheirPods(t *testing.T) {
	file := filepath.Join(deploy, "components", "isolated-machines", "network-policy.yaml")
	out := kubectl(t, "apply", "--dry-run=server", "--warnings-as-errors", "-n", namespaceOfOne, "-f", file, "-o", "jsonpath={.spec.podSelector.matchLabels}")
	var selected map[string]string
	if err := json.Unmarshal([]byte(out), &selected); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	cpus := int32(1)
	vm.Spec.VM.MaximumCPUs = &cpus
	spec.Default(vm)
	has := objects.Pod(vm, objects.Settings{}, objects.PodInput{}).Labels
	for k, v := range selected {
		if has[k] != v {
			t.Errorf("the policy selects %s=%s, and pods have %q", k, v, has[k])
		}
	}
	if len(selected) == 0 {
		t.Error("the policy selects every pod")
	}
}
