package machine_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// A port of the pod leads to each server that listens for others, and to no other.
// Whoever is not asked for a password is in the pod, or the administrator lets
// everybody in. Ports of the node are those that the administrator names.
func TestPortsLeadToServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.Namespace = "lab"
		s := objects.Settings{Allowed: objects.Allowed{OpenDisplays: rapid.Bool().Draw(t, "open")}}
		if rapid.Bool().Draw(t, "host ports") {
			s.DisplayHostPorts = objects.PortRange{First: 5901, Last: 6000}
		}
		made, err := machine.Objects(vm, s)
		if err != nil {
			t.Fatal(err)
		}
		var pod *corev1.Pod
		var config runnerconfig.Config
		secret := false
		for _, o := range made {
			switch o := o.(type) {
			case *corev1.Pod:
				pod = o
			case *corev1.Secret:
				secret = secret || o.Labels[names.LabelComponent] == names.ComponentDisplaySecret
			case *corev1.ConfigMap:
				if o.Name != vm.Name {
					continue // that of the user data
				}
				if config, _, err = runnerconfig.Parse([]byte(o.Data["config.yaml"])); err != nil {
					t.Fatal(err)
				}
			}
		}
		runnerconfig.Default(&config)
		m, err := runnerconfig.Machine(&config, runnerconfig.Facts{Drives: make([]runnerconfig.DriveFacts, len(config.Runner.VM.Drives)), DisplayPassword: secret})
		if err != nil {
			t.Fatal(err)
		}
		listening := map[int32]bool{}
		if d := m.Display; d != nil && d.SPICE != nil && d.SPICE.Address == "" {
			listening[int32(d.SPICE.Port)] = true
			if !d.SPICE.Ticketing && !s.Allowed.OpenDisplays {
				t.Fatalf("SPICE lets everybody in: %+v", d.SPICE)
			}
		}
		if d := m.Display; d != nil && d.VNC != nil && d.VNC.Address == "" {
			if d.VNC.Socket == "" {
				listening[int32(d.VNC.Port)] = true
			}
			if d.VNC.Websocket != 0 {
				listening[int32(d.VNC.Websocket)] = true
			}
			if !d.VNC.Password && d.VNC.Socket == "" {
				t.Fatalf("VNC lets everybody in: %+v", d.VNC)
			}
		}
		ports := pod.Spec.Containers[0].Ports
		for _, p := range ports {
			if !listening[p.ContainerPort] {
				t.Errorf("port %d leads nowhere", p.ContainerPort)
			}
			if (p.HostPort != 0) != s.DisplayHostPorts.Has(p.ContainerPort) || p.HostPort != 0 && p.HostPort != p.ContainerPort {
				t.Errorf("port %d is %d of the node", p.ContainerPort, p.HostPort)
			}
		}
		if len(ports) != len(listening) {
			t.Errorf("ports %v for servers %v", ports, listening)
		}
	})
}
