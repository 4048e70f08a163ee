package vmop_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to make it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

func basicVM(t testing.TB) *vmop.VirtualMachine {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("spec", "testdata", "basic-vm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	vms, err := vmop.Load("basic-vm.yaml", data)
	if err != nil || len(vms) != 1 {
		t.Fatal(len(vms), err)
	}
	return vms[0]
}

func checkRender(t *rapid.T) {
	vm := spectest.VirtualMachine().Draw(t, "vm")
	var o vmop.RenderOptions
	if rapid.Bool().Draw(t, "local") {
		vm = spectest.OneHost().Draw(t, "vm of one host")
		o.Local = &vmop.Local{DataDir: "/srv/vm", RuntimeDir: "/run/vm", ImageRepository: "/srv/images", ShareBase: "/home/me", Disks: map[string]string{}}
		for _, d := range machineconfig.Disks(vm) {
			if !d.IsCD() {
				o.Local.Disks[d.Name] = "/images/" + d.Name
			}
		}
		for _, s := range vm.Spec.VM.Shares {
			if s.PersistentVolumeClaim != nil {
				o.Local.Shares = append(o.Local.Shares, machineconfig.LocalShare{Tag: s.Tag, Dir: "/folders/" + s.Tag})
			}
		}
		vm.Spec.VirtualMachineClassName = "" // which one host has none of
	}
	if vm.Spec.RunnerTemplate != nil {
		vm.Spec.RunnerTemplate.Source = ""
	}
	before := vm.DeepCopy()
	out, err := vmop.Render(vm, o)
	if !reflect.DeepEqual(before, vm) {
		t.Fatal("the argument was changed")
	}
	if err != nil && strings.Contains(err.Error(), "is more than the machine type") {
		t.Skip("how many CPUs there can be only the host's QEMU knows")
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := vmop.Render(vm, o)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(out)
	b, errB := json.Marshal(again)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Fatalf("the second result differs: %v %v", errA, errB)
	}
	if (out.CloudInit != nil) != (vm.Spec.HasSeed()) || (len(out.Objects) == 0) != (o.Local != nil) {
		t.Errorf("cloud-init: %v, objects: %d", out.CloudInit != nil, len(out.Objects))
	}
}

func TestRenderEveryValidMachine(t *testing.T) { rapid.Check(t, checkRender) }

func FuzzRender(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkRender)) }

func TestRenderVMOperatorsTestMachine(t *testing.T) {
	out, err := vmop.Render(basicVM(t), vmop.RenderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// What VM-Operator's machine is known to have; the rest is tested where
	// command lines are made.
	command := strings.Join(out.Command.Args(), "\n")
	for _, want := range []string{
		"guest=test-vm,debug-threads=on", "4294967296", "\n4096\n", "maxcpus=4", "/var/local/vm-data/fw-vars.fd",
		"/run/vmop/vmrunner/test-vm/monitor.sock", "https://test.com/test.iso", "/var/local/vmop-image-repository/image.iso",
		"/dev/system-disk", "/dev/disk-1", "/run/vmop/vmrunner/test-vm/cloud-init.img", "port=5812,disable-ticketing=off",
	} {
		if !strings.Contains(command, want) {
			t.Errorf("%q is not in\n%s", want, command)
		}
	}
	golden(t, "basic-vm.user-data", string(out.CloudInit.UserData))
	golden(t, "basic-vm.meta-data", string(out.CloudInit.MetaData))
	if len(out.Assumptions) != 3 {
		t.Errorf("assumptions: %q", out.Assumptions)
	}
	again, err := vmop.Render(basicVM(t), vmop.RenderOptions{UUID: "7a1c0e52-33a7-4f9e-9a52-0b8f6a1f2d3c", Host: new(qemucmd.GenericHost())})
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Assumptions) != 1 || !strings.Contains(again.Command.Shell(), "7a1c0e52-33a7-4f9e-9a52-0b8f6a1f2d3c") {
		t.Errorf("assumptions: %q", again.Assumptions)
	}
}

func TestRenderTemplates(t *testing.T) {
	vm := basicVM(t)
	vm.Spec.RunnerTemplate.Source = "mine.tpl"
	if _, err := vmop.Render(vm, vmop.RenderOptions{}); !errors.Is(err, vmop.ErrTemplate) {
		t.Errorf("without the text: %v", err)
	}
	out, err := vmop.Render(vm, vmop.RenderOptions{Template: qemucmd.Template("{{standard}}\n-name\nother")})
	if err != nil {
		t.Fatal(err)
	}
	if args := out.Command.Args(); args[len(args)-1] != "other" {
		t.Errorf("%q", args)
	}
	vm.Spec.RunnerTemplate.Source = "mine.ftl.yaml"
	if _, err := vmop.Render(vm, vmop.RenderOptions{Template: qemucmd.Template("x")}); err == nil || !strings.Contains(err.Error(), "FreeMarker") {
		t.Errorf("a FreeMarker template: %v", err)
	}
	vm.Spec.RunnerTemplate.Source = "Standard-VM-latest.ftl.yaml"
	if _, err := vmop.Render(vm, vmop.RenderOptions{}); err != nil {
		t.Errorf("the standard template: %v", err)
	}
}

func TestLoadReportsEverything(t *testing.T) {
	vms, err := vmop.Load("vm.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm:
    maximumCpu: 4
    stat: Running
`))
	var le *spec.LoadError
	if !errors.As(err, &le) || len(le.Problems) < 2 || vms != nil {
		t.Errorf("%v %v", vms, err)
	}
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
	for text, want := range map[string]string{
		"":                    "vm.yaml: no VirtualMachine: it has no document",
		"# nothing\n---\n":    "vm.yaml: no VirtualMachine: it has no document",
		configMap + configMap: "vm.yaml: no VirtualMachine, but ConfigMap of v1; want apiVersion vmoperator.jdrupes.org/v1 and kind VirtualMachine",
	} {
		if vms, err = vmop.Load("vm.yaml", []byte(text)); len(vms) != 0 || !errors.Is(err, vmop.ErrNoMachine) || err.Error() != want {
			t.Errorf("%q: %v, %v; want %s", text, vms, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	vm := basicVM(t)
	if err := vmop.Validate(vm); err != nil {
		t.Error(err)
	}
	vm.Spec.VM.Firmware = "coreboot"
	var fe *field.Error
	if err := vmop.Validate(vm); !errors.As(err, &fe) || fe.Field != "spec.vm.firmware" {
		t.Errorf("%v", err)
	}
}

// A machine without a name is called so, and the field that misses it is said.
func TestAMachineWithoutAName(t *testing.T) {
	vm := basicVM(t)
	vm.Name = ""
	_, onHost := vmop.Render(vm, vmop.RenderOptions{Local: &vmop.Local{DataDir: "/srv/vm", RuntimeDir: "/run/vm", ImageRepository: "/srv/images"}})
	_, inCluster := vmop.Render(vm, vmop.RenderOptions{})
	for what, err := range map[string]error{"Validate": vmop.Validate(vm), "Render on a host": onHost, "Render in a cluster": inCluster} {
		if err == nil || !strings.HasPrefix(err.Error(), "virtual machine without a name: metadata.name: ") || !strings.Contains(err.Error(), "a machine needs a name") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	vm := basicVM(b)
	host := qemucmd.GenericHost()
	b.Run("cluster", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := vmop.Render(vm, vmop.RenderOptions{Host: &host}); err != nil {
				b.Fatal(err)
			}
		}
	})
	local := &vmop.Local{DataDir: "/srv/vm", RuntimeDir: "/run/vm", ImageRepository: "/srv/images"}
	b.Run("local", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := vmop.Render(vm, vmop.RenderOptions{Host: &host, Local: local}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkChanges(b *testing.B) {
	vm := basicVM(b)
	other := vm.DeepCopy()
	other.Spec.VM.Firmware = spec.FirmwareBIOS
	other.Spec.VM.Disks = other.Spec.VM.Disks[:3]
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if len(vmop.Changes(vm, vm)) > 0 {
				b.Fatal("a machine differs from itself")
			}
		}
	})
	b.Run("two", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if len(vmop.Changes(vm, other)) != 2 {
				b.Fatal("want two changes")
			}
		}
	})
}

// What a program wrote as a literal, without a kind, is a manifest when it was marshalled.
func TestLoadOfALiteral(t *testing.T) {
	ram, cpus := resource.MustParse("1Gi"), int32(2)
	vm := vmop.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec.VirtualMachineSpec{VM: spec.Machine{MaximumRAM: &ram, MaximumCPUs: &cpus}}}
	data, err := yaml.Marshal(vm)
	if err != nil {
		t.Fatal(err)
	}
	vms, err := vmop.Load("web.yaml", data)
	if err != nil || len(vms) != 1 || vms[0].Name != "web" || vms[0].Kind != spec.KindVirtualMachine {
		t.Errorf("%+v, %v\n%s", vms, err, data)
	}
}
