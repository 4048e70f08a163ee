package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// managerConfig is the configuration of VM-Operator's own test.
const managerConfig = `
"/Manager":
  "/Controller":
    "/Reconciler":
      runnerDataPvc: {storageClassName: local-path}
      loadBalancerService:
        labels: {label1: label1, label2: toBeReplaced}
        annotations:
          metallb.universe.tf/loadBalancerIPs: 192.168.168.1
          metallb.universe.tf/ip-allocated-from-pool: single-common
          metallb.universe.tf/allow-shared-ip: single-common
# What VM-Operator allows to everybody.
"/Operator": {trustAuthors: true}
`

// What VM-Operator's own test asserts of a cluster.
func TestVMOperatorsOwnAssertions(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.start(cluster.Kubeconfig(), "--config="+t.file(managerConfig))
	manifest, err := os.ReadFile("../../vmop/spec/testdata/basic-vm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.create(string(manifest))
	core := t.kube.CoreV1()
	get := metav1.GetOptions{}
	// Its CD is in an image repository, which it waits for.
	repository := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: names.ImageRepositoryClaim}}
	repository.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	repository.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if _, err := core.PersistentVolumeClaims(t.namespace).Create(t.Context(), repository, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{
		"app.kubernetes.io/name": "vm-runner", "app.kubernetes.io/instance": "test-vm", "app.kubernetes.io/managed-by": "vm-operator",
	}

	var cm *corev1.ConfigMap
	t.eventually("the ConfigMap is there", func() (err error) {
		cm, err = core.ConfigMaps(t.namespace).Get(t.Context(), "test-vm", get)
		return err
	})
	t.same("labels of the ConfigMap", labels, cm.Labels)
	t.owned(cm)
	var config map[string]any
	if err := yaml.Unmarshal([]byte(cm.Data["config.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	runner, _ := config["/Runner"].(map[string]any)
	machine, _ := runner["vm"].(map[string]any)
	t.same("guestShutdownStops", any(false), runner["guestShutdownStops"])
	cloud, _ := runner["cloudInit"].(map[string]any)
	meta, _ := cloud["metaData"].(map[string]any)
	if meta["instance-id"] == nil {
		t.Error("no instance-id")
	}
	t.same("host name", any("test-vm"), meta["local-hostname"])
	t.same("user data", any(map[string]any{}), cloud["userData"])
	for field, want := range map[string]any{
		"maximumRam": "4 GiB", "currentRam": "2 GiB", "maximumCpus": 4.0, "currentCpus": 2.0, "powerdownTimeout": 1.0,
	} {
		t.same(field, want, machine[field])
	}
	networks, _ := machine["network"].([]any)
	if len(networks) != 1 {
		t.Fatalf("networks: %v", networks)
	}
	network, _ := networks[0].(map[string]any)
	t.same("network 0: type", any("user"), network["type"])
	drives, _ := machine["drives"].([]any)
	want := []map[string]any{
		{"type": "ide-cd", "file": "https://test.com/test.iso", "bootindex": 0.0},
		{"type": "ide-cd", "file": "/var/local/vmop-image-repository/image.iso"},
		{"type": "raw", "resource": "/dev/system-disk"},
		{"type": "raw", "resource": "/dev/disk-1"},
	}
	if len(drives) != len(want) {
		t.Fatalf("drives: %v", drives)
	}
	for i, fields := range want {
		drive, _ := drives[i].(map[string]any)
		for k, v := range fields {
			t.same(fmt.Sprintf("drive %d: %s", i, k), v, drive[k])
		}
	}
	display, _ := machine["display"].(map[string]any)
	spice, _ := display["spice"].(map[string]any)
	t.same("outputs", any(2.0), display["outputs"])
	t.same("port", any(5812.0), spice["port"])
	t.same("usbRedirects", any(2.0), spice["usbRedirects"])

	secrets, err := core.Secrets(t.namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=vm-runner,app.kubernetes.io/instance=test-vm,app.kubernetes.io/component=display-secret",
	})
	if err != nil || len(secrets.Items) != 1 {
		t.Fatalf("%d secrets, %v", len(secrets.Items), err)
	}
	if data := secrets.Items[0].Data; len(data["display-password"]) != 24 || string(data["password-expiry"]) != "now" {
		t.Errorf("a password of %d bytes, expiry %q", len(data["display-password"]), data["password-expiry"])
	}
	for name, size := range map[string]string{"test-vm-runner-data": "1Mi", "test-vm-system-disk": "1Gi", "test-vm-disk-1": "1Gi"} {
		var pvc *corev1.PersistentVolumeClaim
		t.eventually("claim "+name, func() (err error) {
			pvc, err = core.PersistentVolumeClaims(t.namespace).Get(t.Context(), name, get)
			return err
		})
		t.same("labels of "+name, labels, pvc.Labels)
		request := pvc.Spec.Resources.Requests[corev1.ResourceStorage]
		t.same("size of "+name, size, request.String())
		if len(pvc.OwnerReferences) > 0 {
			t.Errorf("%s has an owner and would be deleted with it", name)
		}
		if name == "test-vm-system-disk" {
			t.same("annotation", "system-disk", pvc.Annotations["use_as"])
		}
	}
	if uid := t.podUID("test-vm"); uid != "" {
		t.Errorf("a stopped machine has pod %s", uid)
	}
	t.phase("test-vm", spec.PhaseStopped)

	t.setState("test-vm", spec.StateRunning)
	var pod *corev1.Pod
	t.eventually("the pod is there", func() (err error) {
		pod, err = core.Pods(t.namespace).Get(t.Context(), "test-vm", get)
		return err
	})
	labels["app.kubernetes.io/component"] = "vm-runner"
	t.same("labels of the pod", labels, pod.Labels)
	t.owned(pod)
	if pod.Annotations["vmrunner.jdrupes.org/cmVersion"] == "" {
		t.Error("no cmVersion")
	}
	container := pod.Spec.Containers[0]
	t.same("container", "test-vm", container.Name)
	if container.Image == "" || container.Resources.Requests.Cpu().String() != "1" {
		t.Errorf("image %q, requests %v", container.Image, container.Resources.Requests)
	}

	var service *corev1.Service
	t.eventually("the service is there", func() (err error) {
		service, err = core.Services(t.namespace).Get(t.Context(), "test-vm", get)
		return err
	})
	delete(labels, "app.kubernetes.io/component")
	labels["label1"], labels["label2"], labels["label3"] = "label1", "replaced", "added"
	t.same("labels of the service", labels, service.Labels)
	a := service.Annotations
	if a["metallb.universe.tf/loadBalancerIPs"] != "192.168.168.1" || a["anno1"] != "added" || a["metallb.universe.tf/ip-allocated-from-pool"] != "" {
		t.Errorf("annotations %v", a)
	}
}

func (t *test) same(what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -wanted +got:\n%s", what, diff)
	}
}

// owned checks what VM-Operator's objects have that go with their machine.
func (t *test) owned(o metav1.Object) {
	t.Helper()
	if o.GetAnnotations()["vmoperator.jdrupes.org/version"] == "" {
		t.Errorf("%s: no version", o.GetName())
	}
	r := o.GetOwnerReferences()
	if len(r) != 1 || r[0].APIVersion != "vmoperator.jdrupes.org/v1" || r[0].Kind != "VirtualMachine" || r[0].Name != "test-vm" || r[0].UID == "" {
		t.Errorf("%s: owners %v", o.GetName(), r)
	}
}

// A cluster that VM-Operator has run is taken over while its machine runs.
func TestTakeover(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	p := newProxy(tt)
	t.create(machine("old", "Running"))
	stored, err := t.status("old")
	if err != nil {
		t.Fatal(err)
	}
	owner := fmt.Sprintf(`[{apiVersion: vmoperator.jdrupes.org/v1, kind: VirtualMachine, name: old, uid: %s, controller: false}]`, stored.UID)
	const three = `app.kubernetes.io/name: vm-runner, app.kubernetes.io/instance: old, app.kubernetes.io/managed-by: vm-operator`
	t.apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: old, labels: {` + three + `, left.over/label: x}, annotations: {vmoperator.jdrupes.org/version: 4.0.2, left.over/note: x}, ownerReferences: ` + owner + `}
data:
  logging.properties: ""
  left-over.properties: x
  config.yaml: |
    "/Runner":
      dataDir: /var/local/vm-data
      guestShutdownStops: true
      resetCounter: 3
      vm: {name: old, maximumRam: 1 GiB}
`)
	for _, name := range []string{"runner-data-old-0", "system-disk-old-0"} {
		t.apply(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ` + name + `, labels: {` + three + `}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`)
	}
	t.apply(`
apiVersion: v1
kind: Secret
metadata: {name: my-password, labels: {app.kubernetes.io/name: vm-runner, app.kubernetes.io/instance: old, app.kubernetes.io/component: display-secret}}
stringData: {display-password: secret, password-expiry: never}
`)
	t.apply(`
apiVersion: v1
kind: Pod
metadata: {name: old, labels: {` + three + `, app.kubernetes.io/component: vm-runner}, annotations: {vmrunner.jdrupes.org/cmVersion: "1", vmoperator.jdrupes.org/version: 4.0.2}, ownerReferences: ` + owner + `}
spec:
  hostNetwork: true
  nodeName: node-1
  terminationGracePeriodSeconds: 95
  containers:
  - {name: old, image: example.org/runner:4, securityContext: {privileged: true}, volumeDevices: [{name: system-disk, devicePath: /dev/system-disk}]}
  volumes:
  - {name: runner-data, persistentVolumeClaim: {claimName: runner-data-old-0}}
  - {name: system-disk, persistentVolumeClaim: {claimName: system-disk-old-0}}
`)
	uid := t.podUID("old")
	t.startKubelet()
	t.eventually("the old pod runs", func() error {
		pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "old", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("phase %s", pod.Status.Phase)
		}
		return err
	})
	o := t.start(p.kubeconfig)
	t.phase("old", spec.PhaseRunning)
	t.same("the pod's UID", uid, t.podUID("old"))

	cm, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := cm.Data["left-over.properties"]; ok || cm.Annotations["left.over/note"] != "" || cm.Labels["left.over/label"] != "" {
		t.Errorf("stale fields in %v, %v, %v", cm.Data, cm.Annotations, cm.Labels)
	}
	if !strings.Contains(cm.Data["config.yaml"], "resetCounter: 3") {
		t.Errorf("the reset counter is lost:\n%s", cm.Data["config.yaml"])
	}
	claims, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 2 {
		t.Errorf("%d claims, %v", len(claims.Items), err)
	}
	secrets, err := t.kube.CoreV1().Secrets(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) != 1 {
		t.Errorf("%d secrets, %v", len(secrets.Items), err)
	}
	o.stop()
	p.reset()
	o = t.start(p.kubeconfig)
	t.reconciled(o, 1)
	if r := p.requests(); len(r) > 0 {
		t.Errorf("after the takeover: %q", r)
	}
}

// apply writes an object as VM-Operator does.
func (t *test) apply(manifest string) {
	t.Helper()
	u := t.object(manifest)
	data, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	path := map[string]string{"ConfigMap": "configmaps", "PersistentVolumeClaim": "persistentvolumeclaims", "Secret": "secrets", "Pod": "pods", "Service": "services"}[u.GetKind()]
	result := t.kube.CoreV1().RESTClient().Patch("application/apply-patch+yaml").Namespace(t.namespace).Resource(path).Name(u.GetName()).
		Param("fieldManager", names.FieldManager).Param("force", "true").Body(data).Do(t.Context())
	if err := result.Error(); err != nil {
		t.Fatal(err)
	}
}
