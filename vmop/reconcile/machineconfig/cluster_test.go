package machineconfig_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// checkConfig asserts what holds for every configuration that this package
// makes: it is valid, and its file says the same.
func checkConfig(t *rapid.T, c runnerconfig.Config) {
	data, err := runnerconfig.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	back, warnings, err := runnerconfig.Parse(data)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v in\n%s", err, warnings, data)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Fatalf("reading the file back (-made +read):\n%s\n%s", diff, data)
	}
	runnerconfig.Default(&back)
	if err := runnerconfig.Validate(&back); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
}

func TestRunnerConfigOfEveryValidMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		before := vm.DeepCopy()
		o := machineconfig.Options{
			ResetCounter: rapid.Ptr(rapid.Int64Min(0), true).Draw(t, "resets"),
			LoginUser:    rapid.SampledFrom([]string{"", "alice"}).Draw(t, "login"),
			VolumeModes:  map[string]corev1.PersistentVolumeMode{},
		}
		for _, d := range vm.Spec.VM.Disks {
			if c := d.PersistentVolumeClaim; c != nil && rapid.Bool().Draw(t, "filesystem") {
				o.VolumeModes[c.ClaimName] = corev1.PersistentVolumeFilesystem
			}
		}
		c, err := machineconfig.ForCluster(vm, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, vm); diff != "" {
			t.Fatalf("the argument was changed: %s", diff)
		}
		checkConfig(t, c)
		again, err := machineconfig.ForCluster(vm, o)
		if err != nil || !cmp.Equal(c, again) {
			t.Fatalf("the second result differs: %v", err)
		}
		for i, d := range c.Runner.VM.Drives {
			if d.Type == runnerconfig.DriveCD && !strings.Contains(d.File, "://") && d.File != "" && !strings.HasPrefix(d.File, "/") {
				t.Errorf("drive %d has the relative path %q", i, d.File)
			}
		}
	})
}

// The asserted facts of VM-Operator's own test and the worked example.
func TestRunnerConfigOfVMOperatorsTestMachine(t *testing.T) {
	c, err := machineconfig.ForCluster(fixture.Load(t, "basic-vm.yaml"), machineconfig.Options{ResetCounter: new(int64(0))})
	if err != nil {
		t.Fatal(err)
	}
	data, err := runnerconfig.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "basic-vm.config.yaml", string(data))

	vm := c.Runner.VM
	if vm.MaximumRAM.String() != "4 GiB" || vm.CurrentRAM.String() != "2 GiB" || vm.MaximumCPUs != 4 || vm.CurrentCPUs != 2 || *vm.PowerdownTimeout != 1 {
		t.Errorf("sizes: %+v", vm)
	}
	if c.Runner.GuestShutdownStops || c.Runner.DataDir != "/var/local/vm-data" || c.Runner.RuntimeDir != "" {
		t.Errorf("runner: %+v", c.Runner)
	}
	if ci := c.Runner.CloudInit; ci.MetaData["instance-id"] == "" || ci.MetaData["local-hostname"] != "test-vm" || string(ci.UserData) != "{}" || ci.NetworkConfig != nil {
		t.Errorf("cloud-init: %+v", ci)
	}
	want := []runnerconfig.Drive{
		{Type: "ide-cd", File: "https://test.com/test.iso", BootIndex: new(0)},
		{Type: "ide-cd", File: "/var/local/vmop-image-repository/image.iso"},
		{Type: "raw", Resource: "/dev/system-disk"},
		{Type: "raw", Resource: "/dev/disk-1"},
	}
	if diff := cmp.Diff(want, vm.Drives); diff != "" {
		t.Errorf("drives (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]runnerconfig.Network{{Type: "user", Device: "virtio-net"}}, vm.Network); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	if d := vm.Display; d.Outputs != 2 || *d.SPICE.Port != 5812 || *d.SPICE.USBRedirects != 2 {
		t.Errorf("display: %+v", d)
	}
}

func TestRunnerConfigOptions(t *testing.T) {
	vm := fixture.Parse(t, "vm.yaml", `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web, namespace: prod}
spec:
  runnerTemplate: {source: mine.tpl, update: false}
  cloudInit:
    userData: {b: 1.0, a: "<&>", big: 9007199254740993}
    networkConfig: {version: 2}
  vm:
    cpuTopology: {sockets: 2, coresPerDie: 4}
    panicDevice: pvpanic
    accelerator: tcg
    serial: {enabled: false}
    kernelBoot: {kernel: linux/vmlinuz, initrd: /boot/initrd, args: "console=ttyS0"}
    display: {loggedInUser: carol, spice: {streamingVideo: filter}}
    networks:
    - tap: {mac: "52:54:00:00:00:01"}
    disks:
    - persistentVolumeClaim: {claimName: imported}
    - persistentVolumeClaim: {claimName: on.files}
    - volumeClaimTemplate:
        spec: {volumeMode: Filesystem, resources: {requests: {storage: 10Gi}}}
    - cdrom: {image: ""}
`)
	c, err := machineconfig.ForCluster(vm, machineconfig.Options{
		LoginUser:   "alice",
		InstanceID:  "v7",
		VolumeModes: map[string]corev1.PersistentVolumeMode{"on.files": corev1.PersistentVolumeFilesystem},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := runnerconfig.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "options.config.yaml", string(data))
}

func TestInstanceIDDoesNotFollowTheGeneration(t *testing.T) {
	vm := fixture.Load(t, "basic-vm.yaml")
	instance := func() string {
		c, err := machineconfig.ForCluster(vm, machineconfig.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c.Runner.CloudInit.MetaData["instance-id"]
	}
	vm.Generation = 1
	first := instance()
	vm.Generation, vm.UID = 2, "another"
	vm.Spec.VM.CurrentCPUs = new(int32(1))
	if second := instance(); second != first {
		t.Errorf("instance-id went from %q to %q", first, second)
	}
	vm.Spec.CloudInit.MetaData = map[string]string{"instance-id": "mine"}
	if got := instance(); got != "mine" {
		t.Errorf("the manifest's instance-id became %q", got)
	}
}

func TestRunnerConfigReportsAllProblems(t *testing.T) {
	vm := &spec.VirtualMachine{}
	vm.Name = "bad"
	vm.Spec.CloudInit = &spec.CloudInit{UserData: &runtime.RawExtension{Raw: json.RawMessage(`[1]`)}, NetworkConfig: &runtime.RawExtension{Raw: json.RawMessage(`{"a":1,"a":2}`)}}
	vm.Spec.VM.KernelBoot = &spec.KernelBoot{Kernel: "http://host/vmlinuz"}
	vm.Spec.VM.Disks = []spec.Disk{{Cdrom: &spec.Cdrom{Image: "../secret"}}, {Cdrom: &spec.Cdrom{Image: "ftp://host/cd.iso"}}, {}, {
		Cdrom: &spec.Cdrom{}, PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "a"},
	}}
	vm.Spec.VM.Networks = []spec.Network{{}, {Tap: &spec.TapNetwork{}, User: &spec.UserNetwork{}}}
	_, err := machineconfig.ForCluster(vm, machineconfig.Options{})
	_, localErr := machineconfig.ForHost(vm, machineconfig.Host{DataDir: "/d", RuntimeDir: "/r"})
	for _, field := range []string{
		"spec.cloudInit.userData", "spec.cloudInit.networkConfig", "spec.vm.kernelBoot.kernel",
		"spec.vm.disks[0].cdrom.image", "spec.vm.disks[1].cdrom.image", "spec.vm.disks[2]", "spec.vm.disks[3]",
		"spec.vm.networks[0]", "spec.vm.networks[1]",
	} {
		for _, err := range []error{err, localErr} {
			if err == nil || !strings.Contains(err.Error(), field+": ") {
				t.Errorf("%s is not in: %v", field, err)
			}
		}
	}
	var e *machineconfig.Error
	if !errors.As(err, &e) {
		t.Errorf("no *Error in %v", err)
	}
}

// A manifest that leaves the namespace out means the namespace default, and its
// guest must not take itself for another one.
func TestInstanceIDWithoutNamespace(t *testing.T) {
	for namespace, want := range map[string]string{"": "default.test-vm", "default": "default.test-vm", "lab": "lab.test-vm"} {
		vm := fixture.Load(t, "basic-vm.yaml")
		vm.Namespace = namespace
		c, err := machineconfig.ForCluster(vm, machineconfig.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Runner.CloudInit.MetaData["instance-id"]; got != want {
			t.Errorf("namespace %q: %q, want %q", namespace, got, want)
		}
	}
}

// The runner reports for which generation of the manifest its status holds; a
// manifest that no cluster has seen has none.
func TestRunnerConfigHasTheGeneration(t *testing.T) {
	vm := fixture.Load(t, "basic-vm.yaml")
	for _, generation := range []int64{0, 7} {
		vm.Generation = generation
		c, err := machineconfig.ForCluster(vm, machineconfig.Options{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := runnerconfig.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if c.Runner.Generation != generation || strings.Contains(string(data), "generation") != (generation > 0) {
			t.Errorf("generation %d became %d in\n%s", generation, c.Runner.Generation, data)
		}
	}
}
