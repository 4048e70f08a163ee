package machine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// The ports of the display are those of the pod and of the load balancer, and
// either protocol asks for the one secret. No port leads to VNC without a
// password, which other hosts do not reach.
func TestDisplayPorts(t *testing.T) {
	port := func(p int32) *int32 { return &p }
	no := false
	mine := []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: objects.InstanceLabels("web")}}}
	for _, tt := range []struct {
		name    string
		display spec.Display
		secrets []corev1.Secret
		ports   string
		secret  string
	}{
		{"SPICE alone", spec.Display{Spice: &spec.Spice{}}, nil, "spice 5900 ", "web-display-secret"},
		{"VNC alone", spec.Display{VNC: &spec.VNC{}}, nil, "vnc 5901 ", "web-display-secret"},
		{"both", spec.Display{Spice: &spec.Spice{GenerateSecret: &no}, VNC: &spec.VNC{Websocket: port(5700)}}, nil, "spice 5900 vnc 5901 vnc-websocket 5700 ", "web-display-secret"},
		{"VNC with SPICE's secret", spec.Display{Spice: &spec.Spice{}, VNC: &spec.VNC{GenerateSecret: &no}}, nil, "spice 5900 vnc 5901 ", "web-display-secret"},
		{"a secret that somebody has made", spec.Display{VNC: &spec.VNC{GenerateSecret: &no, Websocket: port(5700)}}, mine, "vnc 5901 vnc-websocket 5700 ", "mine"},
		{"SPICE without a secret", spec.Display{Spice: &spec.Spice{GenerateSecret: &no}}, nil, "", ""},
		{"VNC without a secret", spec.Display{VNC: &spec.VNC{GenerateSecret: &no, Websocket: port(5700)}}, nil, "", ""},
		{"both without a secret", spec.Display{Spice: &spec.Spice{GenerateSecret: &no}, VNC: &spec.VNC{GenerateSecret: &no}}, nil, "", ""},
		{"VNC on a socket", spec.Display{VNC: &spec.VNC{UnixSocket: true}}, nil, "", "web-display-secret"},
		{"VNC on a socket beside SPICE", spec.Display{Spice: &spec.Spice{}, VNC: &spec.VNC{UnixSocket: true}}, nil, "spice 5900 ", "web-display-secret"},
		{"not served", spec.Display{}, mine, "", "mine"},
	} {
		cpus := int32(1)
		vm := &spec.VirtualMachine{Spec: spec.VirtualMachineSpec{VM: spec.Machine{MaximumCPUs: &cpus, Display: &tt.display}}}
		vm.Name = "web"
		spec.Default(vm)
		if problems := spec.Validate(vm); problems != nil {
			t.Errorf("%s: %v", tt.name, problems)
		}
		secret := objects.UsedDisplaySecret(vm, tt.secrets)
		served, declared := "", ""
		if s := objects.Service(vm, objects.Settings{LoadBalancer: &objects.LoadBalancer{}}, secret); s != nil {
			for _, p := range s.Spec.Ports {
				served += fmt.Sprintf("%s %d ", p.Name, p.Port)
				if p.TargetPort.StrVal != p.Name {
					t.Errorf("%s: port %s leads to %v", tt.name, p.Name, p.TargetPort)
				}
			}
		}
		for _, p := range objects.Pod(vm, objects.Settings{}, objects.PodInput{DisplaySecret: secret}).Spec.Containers[0].Ports {
			declared += fmt.Sprintf("%s %d ", p.Name, p.ContainerPort)
		}
		want := tt.ports
		if secret == "" {
			want = "" // nobody would be asked for a password
		}
		if served != want || declared != tt.ports || secret != tt.secret {
			t.Errorf("%s: ports %q, of the pod %q, secret %q", tt.name, served, declared, secret)
		}
	}
}

// What a cluster gets for a display by both protocols, and for one that is reached
// from inside of its pod only.
func TestObjectsOfVNC(t *testing.T) {
	for file, display := range map[string]string{
		"vnc.objects.yaml":        "{outputs: 2, spice: {streamingVideo: filter, usbRedirects: 3}, vnc: {websocket: 5701}}",
		"vnc-socket.objects.yaml": "{vnc: {unixSocket: true}}",
	} {
		vm := fixture.Parse(t, "vnc.yaml", `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: desk, namespace: lab}
spec:
  vm:
    maximumCpus: 2
    networks: [{user: {}}]
    disks: []
    display: `+display+"\n")
		objects, err := machine.Objects(vm, objects.Settings{LoadBalancer: &objects.LoadBalancer{}})
		if err != nil {
			t.Fatal(err)
		}
		fixture.Golden(t, file, yamlOf(t, objects))
	}
}

// A VNC server that was asked to be on a socket is never on a port, in a cluster
// or on one host, with a password or without.
func TestVNCOnASocketHasNoPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.Spec.VirtualMachineClassName, vm.Spec.VM.Shares = "", nil // of which one host has none
		vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{
			UnixSocket: true, GenerateSecret: rapid.Ptr(rapid.Bool(), true).Draw(t, "generateSecret"),
		}}
		if errs := spec.Validate(vm); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		cluster, err := machineconfig.ForCluster(vm, machineconfig.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := machineconfig.Host{
			DataDir: "/srv/vm", RuntimeDir: "/run/vm", ImageRepository: "/srv/images", Disks: map[string]string{},
			ExplicitPorts: rapid.SliceOfN(rapid.Just("vnc"), 0, 1).Draw(t, "explicit"), DisplayPassword: rapid.Bool().Draw(t, "local password"),
		}
		for _, d := range machineconfig.Disks(vm) {
			if !d.IsCD() {
				l.Disks[d.Name] = "/images/" + d.Name
			}
		}
		host, err := machineconfig.ForHost(vm, l)
		if err != nil {
			t.Fatal(err)
		}
		for dir, c := range map[string]runnerconfig.Config{machineconfig.RuntimeDir(vm.Name): cluster, "/run/vm": host} {
			runnerconfig.Default(&c) // as the runner completes it
			if diff := cmp.Diff(&runnerconfig.VNC{Socket: dir + "/" + qemucmd.SocketVNC.FileName()}, c.Runner.VM.Display.VNC); diff != "" {
				t.Errorf("the server (-want +got):\n%s", diff)
			}
		}
		spec.Default(vm)
		secret := rapid.SampledFrom([]string{"", "secret"}).Draw(t, "secret")
		if s := objects.Service(vm, objects.Settings{LoadBalancer: &objects.LoadBalancer{}}, secret); s != nil {
			t.Errorf("a load balancer with %v", s.Spec.Ports)
		}
		if ports := objects.Pod(vm, objects.Settings{}, objects.PodInput{DisplaySecret: secret}).Spec.Containers[0].Ports; len(ports) > 0 {
			t.Errorf("the pod has %v", ports)
		}
	})
}

// Where the server is, is decided when the machine starts.
func TestVNCMovesWithARestart(t *testing.T) {
	vm := func(vnc spec.VNC) *spec.VirtualMachine {
		return &spec.VirtualMachine{Spec: spec.VirtualMachineSpec{VM: spec.Machine{
			MaximumCPUs: new(int32(1)), Display: &spec.Display{VNC: &vnc},
		}}}
	}
	for _, tt := range []struct {
		old, new spec.VNC
		want     string
	}{
		{spec.VNC{}, spec.VNC{Port: new(int32(5901))}, ""},
		{spec.VNC{}, spec.VNC{UnixSocket: true}, "remove spec.vm.display.vnc.port restart, replace spec.vm.display.vnc.unixSocket restart, "},
		{spec.VNC{UnixSocket: true}, spec.VNC{}, "add spec.vm.display.vnc.port restart, replace spec.vm.display.vnc.unixSocket restart, "},
	} {
		got := ""
		for _, c := range changes.Between(vm(tt.old), vm(tt.new), changes.Options{}) {
			got += fmt.Sprintf("%s %s %s, ", c.Operation, c.Path, c.Applied)
		}
		if got != tt.want {
			t.Errorf("%+v to %+v: %q, want %q", tt.old, tt.new, got, tt.want)
		}
	}
}
