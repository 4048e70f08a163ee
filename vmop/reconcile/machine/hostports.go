package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// noFreePorts is the message of the scheduler's plugin NodePorts.
const noFreePorts = "didn't have free ports for the requested pod ports"

// HostPorts returns the distinct ports of its node that a pod takes, as texts.
func HostPorts(pod *corev1.Pod) []string {
	var out []string
	for _, p := range hostPorts(pod) {
		if port := strconv.Itoa(int(p.HostPort)); !slices.Contains(out, port) {
			out = append(out, port)
		}
	}
	return out
}

// ContendedPorts returns a pod's [HostPorts] if they keep it from being scheduled. The pods that
// take any of these belong in a [Snapshot].
func ContendedPorts(pod *corev1.Pod) []string {
	if pod == nil || pod.Spec.NodeName != "" {
		return nil
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, noFreePorts) {
			return HostPorts(pod)
		}
	}
	return nil
}

// hostPorts returns the container ports of a pod that are ports of its node: the API server sets
// them for a pod in the node's network.
func hostPorts(pod *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort != 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

// contention describes which ports keep a pod from its node, the fields they come from, and their
// holders as far as known. Machines of other namespaces are not named. It is empty if ports do
// not keep it.
func contention(pod *corev1.Pod, others []corev1.Pod) string {
	if len(ContendedPorts(pod)) == 0 {
		return ""
	}
	var texts []string
	for _, p := range hostPorts(pod) {
		text := fmt.Sprintf("port %d of %s is a port of the node", p.HostPort, portField(p))
		if holders := holders(pod, p, others); len(holders) > 0 {
			text += " and taken by " + strings.Join(holders, ", ")
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ") + "; choose another port where it is taken, or let another node take the machine"
}

func holders(pod *corev1.Pod, port corev1.ContainerPort, others []corev1.Pod) []string {
	var out []string
	for i := range others {
		o := &others[i]
		if o.Spec.NodeName == "" || finished(o) || o.UID == pod.UID {
			continue
		}
		for _, p := range hostPorts(o) {
			if p.HostPort != port.HostPort {
				continue
			}
			who := "a machine of another namespace"
			if o.Namespace == pod.Namespace {
				who = portField(p) + " of machine " + o.Name
			}
			if who += " on node " + o.Spec.NodeName; !slices.Contains(out, who) {
				out = append(out, who)
			}
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxHolders)]
}

const maxHolders = 5

func portField(p corev1.ContainerPort) string {
	if field := spec.DisplayPortField(p.Name); field != "" {
		return field
	}
	return "the pod's " + p.Name
}
