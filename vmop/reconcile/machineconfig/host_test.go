package machineconfig_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func TestForHostOfEveryValidMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.Spec.VirtualMachineClassName = "" // which one host has none of
		var protocols []string
		for _, p := range limits.DisplayProtocols() {
			protocols = append(protocols, p.Name)
		}
		l := machineconfig.Host{
			DataDir: "/srv/vm", RuntimeDir: "/run/vm", ImageRepository: "/srv/images", Disks: map[string]string{},
			ExplicitPorts:   rapid.SliceOfDistinct(rapid.SampledFrom(protocols), rapid.ID).Draw(t, "ports"),
			DisplayPassword: rapid.Bool().Draw(t, "password"),
			Accelerator:     rapid.SampledFrom([]spec.Accelerator{"", spec.AcceleratorTCG}).Draw(t, "accelerator"),
		}
		for _, d := range machineconfig.Disks(vm) {
			needs := d.Entry.PersistentVolumeClaim != nil
			if c := d.Entry.VolumeClaimTemplate; c != nil {
				needs = needs || c.Spec.DataSource != nil || c.Spec.DataSourceRef != nil
			}
			if needs || !d.IsCD() && rapid.Bool().Draw(t, "override") {
				l.Disks[d.Name] = "/images/" + d.Name
			}
		}
		for _, s := range vm.Spec.VM.Shares {
			l.Shares = append(l.Shares, machineconfig.LocalShare{Tag: s.Tag, Dir: "/folders/" + s.Tag})
		}
		c, err := machineconfig.ForHost(vm, l)
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, c)
		for _, d := range c.Runner.VM.Drives {
			if strings.HasPrefix(d.Where(), "/dev/") || strings.HasPrefix(d.Where(), "/var/local/") {
				t.Errorf("a path of the cluster: %+v", d)
			}
		}
		if l.Accelerator != "" && c.Runner.VM.Accelerator != string(l.Accelerator) {
			t.Errorf("accelerator %q", c.Runner.VM.Accelerator)
		}
		encrypted := vm.Spec.VM.Display != nil && vm.Spec.VM.Display.TLS != nil
		onSocket := map[string]bool{}
		for _, s := range vm.Spec.VM.Display.Servers() {
			onSocket[s.Protocol] = s.OnSocket
		}
		for _, s := range c.Runner.VM.Display.Servers() {
			explicit := slices.Contains(l.ExplicitPorts, string(s.Protocol))
			if want := !explicit || onSocket[string(s.Protocol)]; want != (s.Socket != "") {
				t.Errorf("explicit %v: %+v", l.ExplicitPorts, s)
			}
			open := len(s.Ports) > 0 && s.Address != "127.0.0.1"
			if open && (!l.DisplayPassword || encrypted) {
				t.Errorf("the display is open to all: %+v", s)
			}
		}
		for i, n := range vm.Spec.VM.Networks {
			for j := range c.Runner.VM.Network[i].HostForwards {
				if n.User.HostForwards[j].HostAddress == "" && c.Runner.VM.Network[i].HostForwards[j].HostAddress != "127.0.0.1" {
					t.Errorf("a port is open to all: %+v", c.Runner.VM.Network[i])
				}
			}
		}
		if c.Runner.VM.Display.TLS != nil {
			t.Error("TLS with certificates that this host does not have")
		}
		// It is the machine of the cluster, apart from where things are.
		cluster, err := machineconfig.ForCluster(vm, machineconfig.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []*runnerconfig.VM{&c.Runner.VM, &cluster.Runner.VM} {
			v.Drives, v.KernelBoot, v.Accelerator = nil, nil, ""
			for i := range v.Shares {
				v.Shares[i].Dir = ""
			}
			v.Display = &runnerconfig.Display{Outputs: v.Display.Outputs, LoggedInUser: v.Display.LoggedInUser}
			for _, n := range v.Network {
				for i := range n.HostForwards {
					n.HostForwards[i].HostAddress = ""
				}
			}
		}
		a, _ := runnerconfig.Marshal(runnerconfig.Config{Runner: runnerconfig.Runner{VM: c.Runner.VM}})
		b, _ := runnerconfig.Marshal(runnerconfig.Config{Runner: runnerconfig.Runner{VM: cluster.Runner.VM}})
		if string(a) != string(b) {
			t.Errorf("another machine:\n%s\nin the cluster:\n%s", a, b)
		}
	})
}

// What is of one host only is had there, and is why a cluster refuses a machine.
func TestForHostOfEveryMachineOfOneHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.OneHost().Draw(t, "vm")
		vm.Spec.VirtualMachineClassName = ""
		l := machineconfig.Host{
			DataDir: "/srv/vm", RuntimeDir: "/run/vm", ImageRepository: "/srv/images", ShareBase: "/home/me", Disks: map[string]string{},
		}
		here := len(vm.Spec.VM.USBDevices) > 0
		for _, d := range machineconfig.Disks(vm) {
			im, c := d.Entry.Image, d.Entry.ContainerDisk
			copied := im != nil || c != nil
			here = here || im != nil && limits.LocalImage(im.Source) ||
				c != nil && (limits.LocalImage(limits.ContainerSource(c.Image)) || c.PullPolicy == corev1.PullNever)
			if !d.IsCD() && !copied {
				l.Disks[d.Name] = "/images/" + d.Name
			}
		}
		for _, s := range vm.Spec.VM.Shares {
			here = here || s.HostPath != ""
			if s.HostPath == "" {
				l.Shares = append(l.Shares, machineconfig.LocalShare{Tag: s.Tag, Dir: "/folders/" + s.Tag})
			}
		}
		c, err := machineconfig.ForHost(vm, l)
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, c)
		if n := len(c.Runner.VM.USBDevices); n != len(vm.Spec.VM.USBDevices) {
			t.Errorf("%d USB devices", n)
		}
		for _, s := range c.Runner.VM.Shares {
			if !path.IsAbs(s.Dir) {
				t.Errorf("the share %s is at %q", s.Tag, s.Dir)
			}
		}
		for _, d := range c.Runner.VM.Drives {
			if d.Image == nil || !limits.LocalImage(d.Image.Source) {
				continue
			}
			if file, _ := limits.LocalPath(d.Image.Source); !path.IsAbs(file) {
				t.Errorf("the image of %s is at %q", d.Name, file)
			}
		}
		if _, err := machineconfig.ForCluster(vm, machineconfig.Options{}); (err != nil) != here {
			t.Errorf("it has what only one host has: %v; the cluster says %v", here, err)
		}
	})
}

const localDisks = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm:
    maximumCpus: 1
    disks:
    - cdrom: {image: cd.iso}
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {resources: {requests: {storage: 10Gi}}}
    - volumeClaimTemplate:
        spec: {resources: {requests: {storage: 1G}}}
    - persistentVolumeClaim: {claimName: data}
`

func TestLocalDisks(t *testing.T) {
	vm := fixture.Parse(t, "vm.yaml", localDisks)
	c, err := machineconfig.ForHost(vm, machineconfig.Host{
		DataDir: "/srv/web", RuntimeDir: "/run/web", ImageRepository: "/srv/images",
		Disks: map[string]string{"system": "/images/debian.qcow2", "data": "/dev/vg/data"},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := runnerconfig.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "local.config.yaml", string(data))
}

func TestLocalProblemsSayWhatToDo(t *testing.T) {
	base := machineconfig.Host{DataDir: "/d", RuntimeDir: "/r", ImageRepository: "/i"}
	for _, c := range []struct {
		name  string
		disks map[string]string
		edit  func(*spec.VirtualMachine, *machineconfig.Host)
		want  []string
	}{
		{"a claim", nil, nil, []string{`spec.vm.disks[3].persistentVolumeClaim: the claim "data"`, "data-claim=PATH"}},
		{"an unknown disk", map[string]string{"data": "/x", "sytem": "/y"}, nil, []string{`there is no disk "sytem": the machine has system-disk, disk-1, data-claim`}},
		{"the same disk twice", map[string]string{"data": "/x", "data-claim": "/y"}, nil, []string{`"data" and "data-claim" are the same disk`}},
		{"an empty path", map[string]string{"data": ""}, nil, []string{`the path of "data" is empty`}},
		{"no size", map[string]string{"data": "/x"}, func(vm *spec.VirtualMachine, _ *machineconfig.Host) {
			vm.Spec.VM.Disks[1].VolumeClaimTemplate.Spec.Resources.Requests = nil
		}, []string{"spec.vm.disks[1].volumeClaimTemplate.spec.resources.requests.storage: is missing: add", "system-disk=PATH"}},
		{"an ambiguous name", map[string]string{"data": "/x"}, func(vm *spec.VirtualMachine, _ *machineconfig.Host) {
			vm.Spec.VM.Disks[1].VolumeClaimTemplate.Metadata.Name = "data"
		}, []string{`"data" could be data-disk or data-claim`}},
		{"no directories", map[string]string{"data": "/x"}, func(_ *spec.VirtualMachine, l *machineconfig.Host) { *l = machineconfig.Host{} },
			[]string{"local.dataDir: is missing", "local.runtimeDir: is missing", `"cd.iso" is relative to an image repository`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm, l := fixture.Parse(t, "vm.yaml", localDisks), base
			if c.edit != nil {
				c.edit(vm, &l)
			}
			l.Disks = c.disks
			_, err := machineconfig.ForHost(vm, l)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}
