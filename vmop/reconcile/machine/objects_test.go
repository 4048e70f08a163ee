package machine_test

import (
	"bytes"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func yamlOf(t testing.TB, objects []reconcile.Object) string {
	t.Helper()
	var b bytes.Buffer
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(data)
	}
	return b.String()
}

func find[T reconcile.Object](t testing.TB, objects []reconcile.Object, name string) T {
	t.Helper()
	for _, o := range objects {
		if v, ok := o.(T); ok && v.GetName() == name {
			return v
		}
	}
	var none T
	t.Fatalf("no %T %s among the objects", none, name)
	return none
}

// managerSettings is the configuration of VM-Operator's own test.
func managerSettings() objects.Settings {
	return objects.Settings{
		Version: "5.0.0",
		LoadBalancer: &objects.LoadBalancer{
			Labels: map[string]string{"label1": "label1", "label2": "toBeReplaced"},
			Annotations: map[string]string{
				"metallb.universe.tf/loadBalancerIPs":   "192.168.168.1",
				"metallb.universe.tf/ip-allocated-from": "single-common",
				"metallb.universe.tf/allow-shared-ip":   "single-common",
			},
		},
	}
}

// The asserted facts of VM-Operator's own test.
func TestObjectsOfVMOperatorsTestMachine(t *testing.T) {
	vm := fixture.Load(t, "basic-vm.yaml")
	vm.UID = "8e7d3c52-4d6a-4a0e-a8c5-1f4b1c6f0a11"
	all, err := machine.Objects(vm, managerSettings())
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "basic-vm.objects.yaml", yamlOf(t, all))

	three := map[string]string{
		"app.kubernetes.io/name": "vm-runner", "app.kubernetes.io/instance": "test-vm", "app.kubernetes.io/managed-by": "vm-operator",
	}
	hasAll := func(what string, got, want map[string]string) {
		t.Helper()
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q", what, k, got[k], v)
			}
		}
	}
	cm := find[*corev1.ConfigMap](t, all, "test-vm")
	hasAll("ConfigMap", cm.Labels, three)
	if cm.Annotations["vmoperator.jdrupes.org/version"] != "5.0.0" {
		t.Errorf("ConfigMap: annotations %v", cm.Annotations)
	}
	pod := find[*corev1.Pod](t, all, "test-vm")
	hasAll("Pod", pod.Labels, three)
	hasAll("Pod", pod.Labels, map[string]string{"app.kubernetes.io/component": "vm-runner"})
	service := find[*corev1.Service](t, all, "test-vm")
	hasAll("Service", service.Labels, three)
	hasAll("Service", service.Labels, map[string]string{"label1": "label1", "label2": "replaced", "label3": "added"})
	hasAll("Service", service.Annotations, map[string]string{"metallb.universe.tf/loadBalancerIPs": "192.168.168.1", "anno1": "added"})
	for _, o := range []reconcile.Object{cm, pod, service} {
		r := o.GetOwnerReferences()
		if len(r) != 1 || r[0].APIVersion != "vmoperator.jdrupes.org/v1" || r[0].Kind != "VirtualMachine" || r[0].Name != "test-vm" || r[0].UID != vm.UID {
			t.Errorf("%T: owner references %v", o, r)
		}
		// Nodes are drained of pods that somebody makes anew only. VM-Operator's
		// other objects have an owner that is no controller.
		if _, isPod := o.(*corev1.Pod); *r[0].Controller != isPod {
			t.Errorf("%T: the machine is its controller: %v", o, *r[0].Controller)
		}
	}
	secret := find[*corev1.Secret](t, all, "test-vm-display-secret")
	hasAll("Secret", secret.Labels, map[string]string{
		"app.kubernetes.io/name": "vm-runner", "app.kubernetes.io/instance": "test-vm", "app.kubernetes.io/component": "display-secret",
	})
	if secret.StringData["password-expiry"] != "now" || secret.StringData["display-password"] != "" {
		t.Errorf("Secret: %v", secret.StringData)
	}
	if with := objects.DisplaySecret(vm, "given"); with.StringData["display-password"] != "given" {
		t.Errorf("Secret with a password: %v", with.StringData)
	}
	for name, size := range map[string]string{"test-vm-runner-data": "1Mi", "test-vm-system-disk": "1Gi", "test-vm-disk-1": "1Gi"} {
		pvc := find[*corev1.PersistentVolumeClaim](t, all, name)
		hasAll(name, pvc.Labels, three)
		if got := pvc.Spec.Resources.Requests[corev1.ResourceStorage]; got.Cmp(resource.MustParse(size)) != 0 {
			t.Errorf("%s requests %s", name, got.String())
		}
		if len(pvc.OwnerReferences) > 0 {
			t.Errorf("%s has an owner, with which it would be deleted", name)
		}
	}
	if got := find[*corev1.PersistentVolumeClaim](t, all, "test-vm-system-disk").Annotations["use_as"]; got != "system-disk" {
		t.Errorf("annotation use_as is %q", got)
	}
	c := pod.Spec.Containers[0]
	if cpu := c.Resources.Requests[corev1.ResourceCPU]; c.Name != "test-vm" || c.Image == "" || cpu.Cmp(resource.MustParse("1")) != 0 {
		t.Errorf("container: %s %s %v", c.Name, c.Image, c.Resources)
	}
}

func checkObjects(t *rapid.T) {
	vm := spectest.VirtualMachine().Draw(t, "vm")
	s := objects.Settings{
		KVMResource: rapid.SampledFrom([]corev1.ResourceName{"", "devices.kubevirt.io/kvm"}).Draw(t, "kvm"),
		Privileged:  rapid.Bool().Draw(t, "privileged"),
	}
	if rapid.Bool().Draw(t, "load balancer") {
		s.LoadBalancer = &objects.LoadBalancer{Labels: spectest.Labels().Draw(t, "labels")}
	}
	before := vm.DeepCopy()
	objects, err := machine.Objects(vm, s)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, vm) {
		t.Fatal("the argument was changed")
	}
	if again, err := machine.Objects(vm, s); err != nil || !reflect.DeepEqual(objects, again) {
		t.Fatalf("the second result differs: %v", err)
	}
	seen := map[string]bool{}
	var pod *corev1.Pod
	var config runnerconfig.Config
	claims := map[string]bool{names.ImageRepositoryClaim: true}
	for _, o := range objects {
		gvk := o.GetObjectKind().GroupVersionKind()
		id := gvk.Kind + " " + o.GetName()
		if gvk.Version == "" || seen[id] {
			t.Errorf("%s: kind %v, seen before: %v", id, gvk, seen[id])
		}
		seen[id] = true
		if o.GetNamespace() != vm.Namespace {
			t.Errorf("%s is in namespace %q", id, o.GetNamespace())
		}
		if l := o.GetLabels(); l[names.LabelName] != names.AppName || l[names.LabelInstance] != vm.Name {
			t.Errorf("%s has the labels %v", id, l)
		}
		switch o := o.(type) {
		case *corev1.PersistentVolumeClaim:
			claims[o.Name] = true
		case *corev1.ConfigMap:
			if o.Name != vm.Name {
				continue // that of the user data
			}
			if config, _, err = runnerconfig.Parse([]byte(o.Data[names.ConfigKey])); err != nil {
				t.Fatal(err)
			}
		case *corev1.Pod:
			pod = o
		}
	}
	for _, r := range vm.Spec.BlockDeviceRefs {
		claims[r.Claim()] = true
	}
	for _, d := range vm.Spec.VM.Disks {
		if d.PersistentVolumeClaim != nil {
			claims[d.PersistentVolumeClaim.ClaimName] = true
		}
	}
	for _, s := range vm.Spec.VM.Shares {
		claims[s.PersistentVolumeClaim.ClaimName] = true
	}
	shutdown := int64(900)
	if t := vm.Spec.VM.PowerdownTimeout; t != nil {
		shutdown = int64(*t)
	}
	if t := vm.Spec.TerminationGracePeriodSeconds; t != nil {
		shutdown = int64(*t)
	}
	if has, told := *pod.Spec.TerminationGracePeriodSeconds, *config.Runner.VM.PowerdownTimeout; told != shutdown || has != shutdown+30 {
		t.Errorf("the guest has %d seconds to shut down, the pod %d; want %d", told, has, shutdown)
	}
	checkVolumes(t, pod, claims, config)
	checkRepository(t, pod, config)
	checkRights(t, vm, s, pod)
}

// checkRepository asserts that the pod mounts the image repository if and only if
// its configuration names a file there.
func checkRepository(t *rapid.T, pod *corev1.Pod, config runnerconfig.Config) {
	files := []string{}
	for _, d := range config.Runner.VM.Drives {
		files = append(files, d.File)
	}
	if k := config.Runner.VM.KernelBoot; k != nil {
		files = append(files, k.Kernel, k.Initrd)
	}
	named := slices.ContainsFunc(files, machineconfig.InRepository)
	mounted := slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == machineconfig.ImageRepositoryDir })
	claimed := slices.Contains(objects.PodClaims(pod), names.ImageRepositoryClaim)
	if named != mounted || named != claimed {
		t.Errorf("the repository is mounted: %v, its claim is used: %v; files %q", mounted, claimed, files)
	}
}

// checkVolumes asserts that the pod's parts fit each other and that the runner
// finds every disk where its configuration says that it is.
func checkVolumes(t *rapid.T, pod *corev1.Pod, claims map[string]bool, config runnerconfig.Config) {
	c := &pod.Spec.Containers[0]
	volumes, used, at := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		if volumes[v.Name] || len(validation.IsDNS1123Label(v.Name)) > 0 {
			t.Errorf("volume %q", v.Name)
		}
		volumes[v.Name] = true
		if p := v.PersistentVolumeClaim; p != nil && !claims[p.ClaimName] {
			t.Errorf("volume %q uses the unknown claim %q", v.Name, p.ClaimName)
		}
	}
	mounted := func(name, where string) {
		if !volumes[name] || used[name] || at[where] {
			t.Errorf("volume %q at %q", name, where)
		}
		used[name], at[where] = true, true
	}
	for _, m := range c.VolumeMounts {
		mounted(m.Name, m.MountPath)
	}
	for _, m := range c.VolumeDevices {
		mounted(m.Name, m.DevicePath)
	}
	if len(used) != len(volumes) {
		t.Errorf("volumes %v, used %v", volumes, used)
	}
	for _, d := range config.Runner.VM.Drives {
		if d.Type != runnerconfig.DriveRaw {
			continue
		}
		if !at[d.Resource] && !at[path.Dir(d.File)] {
			t.Errorf("the configuration has the drive %+v, the pod %v", d, at)
		}
	}
}

// checkRights asserts that a pod has no more rights than its machine needs.
func checkRights(t *rapid.T, vm *spec.VirtualMachine, s objects.Settings, pod *corev1.Pod) {
	taps := false
	for _, n := range vm.Spec.VM.Networks {
		taps = taps || n.Tap != nil
	}
	c := &pod.Spec.Containers[0]
	sc, psc := c.SecurityContext, pod.Spec.SecurityContext
	privileged := sc.Privileged != nil && *sc.Privileged
	if privileged && (!s.Privileged || s.KVMResource != "" || vm.Spec.VM.Accelerator == spec.AcceleratorTCG) {
		t.Error("privileged for no reason")
	}
	var made []string
	if privileged {
		made = append(made, "MKNOD")
	}
	if taps {
		made = append(made, "NET_ADMIN")
	}
	if pod.Spec.HostNetwork != taps || len(sc.Capabilities.Add) > 0 || len(pod.Spec.InitContainers) != len(made) {
		t.Errorf("taps: %v, host network: %v, capabilities %v, containers before the runner: %+v", taps, pod.Spec.HostNetwork, sc.Capabilities, pod.Spec.InitContainers)
	}
	for n, i := range pod.Spec.InitContainers {
		isc := i.SecurityContext
		if !reflect.DeepEqual(isc.Capabilities.Add, []corev1.Capability{corev1.Capability(made[min(n, len(made)-1)])}) || !reflect.DeepEqual(isc.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
			*isc.AllowPrivilegeEscalation || isc.Privileged != nil || !*isc.ReadOnlyRootFilesystem || len(i.VolumeMounts) != 1 || len(i.VolumeDevices) > 0 {
			t.Errorf("the container %s has %+v, %v", i.Name, isc, i.VolumeMounts)
		}
	}
	if escalation := *sc.AllowPrivilegeEscalation; escalation != privileged {
		t.Errorf("privilege escalation: %v", escalation)
	}
	_, asks := c.Resources.Limits[s.KVMResource]
	if want := s.KVMResource != "" && vm.Spec.VM.Accelerator != spec.AcceleratorTCG; asks != want {
		t.Errorf("asks for KVM: %v, want %v", asks, want)
	}
	if !*psc.RunAsNonRoot || *psc.RunAsUser == 0 || !*sc.ReadOnlyRootFilesystem || psc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!reflect.DeepEqual(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) || *pod.Spec.EnableServiceLinks || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v %+v", psc, sc)
	}
}

func TestObjectsOfEveryValidMachine(t *testing.T) { rapid.Check(t, checkObjects) }

func FuzzObjects(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkObjects)) }

func TestObjectsAreOnesThatAClientKnows(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects, err := machine.Objects(fixture.Load(t, "basic-vm.yaml"), managerSettings())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		kinds, _, err := scheme.ObjectKinds(o)
		if want := []schema.GroupVersionKind{o.GetObjectKind().GroupVersionKind()}; err != nil || !cmp.Equal(kinds, want) {
			t.Errorf("%T says that it is %v: %v %v", o, want, kinds, err)
		}
		if len(o.GetOwnerReferences()) > 0 {
			t.Errorf("%T refers to an owner without a UID", o)
		}
	}
}

func TestPodOfAMachineWithTapAndFiles(t *testing.T) {
	vm := fixture.Parse(t, "vm.yaml", `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web, namespace: prod}
spec:
  image: {repository: registry.example.org, path: runner, version: "2", pullPolicy: Always}
  nodeSelector: {disk: ssd}
  vm:
    maximumCpus: 4
    currentCpus: 3
    maximumRam: 8Gi
    currentRam: 4Gi
    powerdownTimeout: 60
    networks: [{tap: {bridge: br0}}]
    disks:
    - volumeClaimTemplate:
        spec: {volumeMode: Filesystem, resources: {requests: {storage: 10Gi}}}
    - persistentVolumeClaim: {claimName: imported}
    display: {spice: {generateSecret: false}}
`)
	objects, err := machine.Objects(vm, objects.Settings{KVMResource: "devices.kubevirt.io/kvm"})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "tap.objects.yaml", yamlOf(t, objects))
}

func TestComputedRequests(t *testing.T) {
	for _, c := range []struct {
		name     string
		edit     func(*spec.VirtualMachine)
		settings objects.Settings
		cpu, ram string
	}{
		{"two CPUs", func(vm *spec.VirtualMachine) { vm.Spec.VM.CurrentCPUs = new(int32(2)) }, objects.Settings{}, "1", "6871947673"},
		{"three CPUs", func(vm *spec.VirtualMachine) { vm.Spec.VM.CurrentCPUs = new(int32(3)) }, objects.Settings{}, "1.5", "6871947673"},
		{"memory", func(vm *spec.VirtualMachine) { vm.Spec.VM.CurrentRAM = new(resource.MustParse("4Gi")) }, objects.Settings{}, "0.5", "3435973836"},
		{"no overcommit", func(vm *spec.VirtualMachine) {
			vm.Spec.VM.CurrentCPUs, vm.Spec.VM.CurrentRAM = new(int32(2)), new(resource.MustParse("4Gi"))
		}, objects.Settings{CPUOvercommit: 1, RAMOvercommit: 1}, "2", "4Gi"},
		{"one CPU and all of the memory", func(*spec.VirtualMachine) {}, objects.Settings{}, "0.5", "6871947673"},
		{"the manifest's", func(vm *spec.VirtualMachine) {
			vm.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}
		}, objects.Settings{}, "3", "0"},
		{"the manifest names neither", func(vm *spec.VirtualMachine) {
			vm.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.org/device": resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("0")}}
		}, objects.Settings{}, "0.5", "6871947673"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := fixture.Parse(t, "vm.yaml", `{apiVersion: vmoperator.jdrupes.org/v1, kind: VirtualMachine, metadata: {name: a}, spec: {vm: {maximumCpus: 4, maximumRam: 8Gi}}}`)
			c.edit(vm)
			objects, err := machine.Objects(vm, c.settings)
			if err != nil {
				t.Fatal(err)
			}
			r := find[*corev1.Pod](t, objects, "a").Spec.Containers[0].Resources
			cpu, ram := r.Requests[corev1.ResourceCPU], r.Requests[corev1.ResourceMemory]
			want := resource.MustParse(c.ram)
			if !want.IsZero() {
				// What QEMU needs is not divided.
				want.Add(*resource.NewQuantity(overheadOf(t, vm, c.settings), resource.BinarySI))
			}
			if cpu.Cmp(resource.MustParse(c.cpu)) != 0 || ram.Cmp(want) != 0 || len(r.Limits) > 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// overheadOf is what the machine needs beside its guest's RAM, in bytes, by the
// function that is held against QEMU's weight.
func overheadOf(t *testing.T, vm *spec.VirtualMachine, s objects.Settings) int64 {
	t.Helper()
	c, err := machineconfig.ForCluster(vm, machineconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runnerconfig.Default(&c)
	o, err := runnerconfig.MemoryOverhead(&c, qemucmd.Host{KVM: s.KVMResource != ""})
	if err != nil || o.Total() < 100<<20 {
		t.Fatalf("%+v, %v", o, err)
	}
	return (o.Total() + 1<<20 - 1) &^ (1<<20 - 1)
}

// What a pod has recorded says what its requests are, whatever the operator is by
// then; they grow with what the guest may use, and there is room in the limits.
func TestRequestsOfAmounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(what string) int64 { return rapid.Int64Range(1, 1<<50).Draw(t, what) }
		r := objects.Requests{
			CPUOvercommit: rapid.Float64Range(0.1, 32).Draw(t, "CPU overcommit"), RAMOvercommit: rapid.Float64Range(0.1, 8).Draw(t, "RAM overcommit"),
			Overhead: rapid.Int64Range(0, 1<<40).Draw(t, "overhead"), Maximum: objects.Amounts{CPUs: rapid.Int64Range(1, 1<<12).Draw(t, "maximum"), RAM: amount("maximum of RAM")},
		}
		r.Limited, r.CoreFraction = rapid.Bool().Draw(t, "limited"), rapid.Int64Range(0, 100).Draw(t, "fraction")
		a := objects.Amounts{CPUs: rapid.Int64Range(1, 1<<12).Draw(t, "CPUs"), RAM: amount("RAM")}
		more := objects.Amounts{CPUs: a.CPUs + 1, RAM: a.RAM + amount("more")}
		for name, q := range r.For(a) {
			next := r.For(more)[name]
			limit, limited := r.Limits()[name]
			if limited != (r.Limited || r.CoreFraction > 0 && name == corev1.ResourceCPU) {
				t.Fatalf("%s: limited: %v, of %+v", name, limited, r)
			}
			if next.Cmp(q) < 0 || limited && limit.Cmp(q) < 0 || q.Sign() < 0 {
				t.Fatalf("%s: %s for %+v, %s for %+v, limit %s", name, q.String(), a, next.String(), more, limit.String())
			}
		}
		if cpu := r.For(a)[corev1.ResourceCPU]; r.CoreFraction > 0 {
			if n := min(a.CPUs, r.Maximum.CPUs); cpu.MilliValue() != n*10*r.CoreFraction || cpu.IsZero() || r.Covered(r.For(a)).CPUs != n {
				t.Fatalf("%s for %d CPUs and %d%%: %+v", cpu.String(), n, r.CoreFraction, r.Covered(r.For(a)))
			}
		}
		covered := r.Covered(r.For(a))
		if q := r.For(covered)[corev1.ResourceCPU]; q.Cmp(r.For(a)[corev1.ResourceCPU]) > 0 {
			t.Fatalf("%+v asks for more CPU than %+v", covered, a)
		}
		if q := r.For(covered)[corev1.ResourceMemory]; covered.RAM > 1<<20 && q.Cmp(r.For(a)[corev1.ResourceMemory]) > 0 {
			t.Fatalf("%+v asks for more memory than %+v", covered, a)
		}
	})
}

// A part of each CPU is requested, whatever the overcommitment, and the limit is that
// of the machine's CPUs. Nobody's memory gets a limit by it.
func TestCoreFraction(t *testing.T) {
	vm := fixture.Parse(t, "vm.yaml", `{apiVersion: vmoperator.jdrupes.org/v1, kind: VirtualMachine, metadata: {name: a}, spec: {coreFraction: 15%, vm: {currentCpus: 3, maximumCpus: 4, maximumRam: 8Gi}}}`)
	made, err := machine.Objects(vm, objects.Settings{CPUOvercommit: 7})
	if err != nil {
		t.Fatal(err)
	}
	pod := find[*corev1.Pod](t, made, "a")
	r := pod.Spec.Containers[0].Resources
	if r.Requests.Cpu().String() != "450m" || r.Limits.Cpu().String() != "4" || len(r.Limits) != 1 {
		t.Errorf("%+v", r)
	}
	// A pod keeps what it was made with.
	if recorded, ok := objects.RecordedRequests(pod); !ok || recorded.CoreFraction != 15 {
		t.Errorf("%+v, %v", recorded, ok)
	}
}

func TestServiceIsWanted(t *testing.T) {
	yes := &objects.LoadBalancer{}
	for _, c := range []struct {
		name     string
		settings objects.Settings
		manifest string
		want     bool
	}{
		{"the operator makes none", objects.Settings{}, `loadBalancerService: {labels: {a: b}}`, false},
		{"the manifest says nothing", objects.Settings{LoadBalancer: yes}, ``, true},
		{"the manifest adds to it", objects.Settings{LoadBalancer: yes}, `loadBalancerService: {labels: {a: null}}`, true},
		{"the manifest turns it off", objects.Settings{LoadBalancer: yes}, `loadBalancerService: {}`, false},
		{"no display is served", objects.Settings{LoadBalancer: yes}, `display`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			display := ""
			if c.manifest == "display" {
				c.manifest, display = "", ", display: {outputs: 1}"
			}
			vm := fixture.Parse(t, "vm.yaml", strings.ReplaceAll("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec:\n  vm: {maximumCpus: 1"+display+"}\n  "+c.manifest+"\n", "\n  \n", "\n"))
			objects, err := machine.Objects(vm, c.settings)
			if err != nil {
				t.Fatal(err)
			}
			got := false
			for _, o := range objects {
				_, isService := o.(*corev1.Service)
				got = got || isService
			}
			if got != c.want {
				t.Errorf("there is a service: %v, want %v", got, c.want)
			}
		})
	}
}

func TestOwnLabelsWin(t *testing.T) {
	vm := fixture.Load(t, "basic-vm.yaml")
	bad := "somebody-else"
	vm.Spec.VM.Disks[2].VolumeClaimTemplate.Metadata.Labels = map[string]string{names.LabelInstance: bad, "mine": "x"}
	vm.Spec.LoadBalancerService = &spec.LoadBalancerService{Labels: map[string]*string{names.LabelInstance: nil, names.LabelName: &bad, "label1": nil}}
	all, err := machine.Objects(vm, managerSettings())
	if err != nil {
		t.Fatal(err)
	}
	want := objects.InstanceLabels("test-vm")
	want["mine"] = "x"
	if diff := cmp.Diff(want, find[*corev1.PersistentVolumeClaim](t, all, "test-vm-system-disk").Labels); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	delete(want, "mine")
	want["label2"] = "toBeReplaced"
	if diff := cmp.Diff(want, find[*corev1.Service](t, all, "test-vm").Labels); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}
}

func TestRunnerImageReplacesTheDefaultOnly(t *testing.T) {
	s := objects.Settings{RunnerImage: "registry.example.org/vmop/runner:1"}
	for _, c := range []struct {
		image *spec.RunnerImage
		want  string
	}{
		{nil, "registry.example.org/vmop/runner:1"},
		{&spec.RunnerImage{Source: "mine:2"}, "mine:2"},
		{&spec.RunnerImage{Repository: "ghcr.io", Path: "a/b"}, "ghcr.io/a/b"},
		{&spec.RunnerImage{Repository: "ghcr.io", Path: "a/b", Version: "3"}, "ghcr.io/a/b:3"},
	} {
		vm := fixture.Load(t, "basic-vm.yaml")
		vm.Spec.Image = c.image
		objects, err := machine.Objects(vm, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := find[*corev1.Pod](t, objects, "test-vm").Spec.Containers[0].Image; got != c.want {
			t.Errorf("%v gave the image %q, want %q", c.image, got, c.want)
		}
	}
}

// Callers validate, but a machine that nobody has looked at is no reason to
// crash.
func TestAnEmptyMachineIsNoPanic(t *testing.T) {
	empty := &spec.VirtualMachine{}
	if got := changes.Between(empty, empty, changes.Options{}); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if _, err := machine.Objects(empty, objects.Settings{}); err == nil || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("objects of a machine without a name: %v", err)
	}
	if _, err := machineconfig.ForHost(empty, machineconfig.Host{}); err == nil {
		t.Error("a machine without directories has a configuration")
	}
}
