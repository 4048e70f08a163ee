package machinetest

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
