package machine_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
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

// A machine whose port is taken on all nodes says which field of which machine has
// it, and names no machine of another namespace.
func TestTakenHostPortsAreNamed(t *testing.T) {
	const port = 5910
	pod := func(namespace, name, node string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
				{Name: "spice", ContainerPort: port, HostPort: port},
				{Name: "vnc", ContainerPort: 5901},
			}}}},
		}
	}
	done := pod("lab", "done", "n3")
	done.Status.Phase = corev1.PodSucceeded
	mine := pod("lab", "web", "")
	mine.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports. preemption: not eligible.",
	}}}
	w := running(t, nil)
	_, got := said(w.decided(func(s *machine.Snapshot) {
		s.Pod().Spec.NodeName, s.Pod().Spec.Containers, s.Pod().Status = "", mine.Spec.Containers, mine.Status
		s.PortPods = []corev1.Pod{*s.Pod(), pod(s.Pod().Namespace, "desk", "n1"), pod("secret", "project-x", "n2"), done}
	}), spec.ConditionPodReady)
	want := "no node takes pod web: 0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports. preemption: not eligible; " +
		"port 5910 of spec.vm.display.spice.port is a port of the node and taken by a machine of another namespace on node n2, spec.vm.display.spice.port of machine desk on node n1; " +
		"choose another port where it is taken, or let another node take the machine"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if ports := machine.ContendedPorts(&mine); strings.Join(ports, " ") != "5910" {
		t.Errorf("contended: %v", ports)
	}
	mine.Status.Conditions[0].Message = "0/2 nodes are available: 2 Insufficient memory."
	if ports := machine.ContendedPorts(&mine); ports != nil {
		t.Errorf("contended for lack of memory: %v", ports)
	}
}
