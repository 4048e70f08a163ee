package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrNoDisplay is the error of [Locate] for a machine that does not serve its display by the
// protocol.
var ErrNoDisplay = errors.New("it has no such display")

// Place is where the display of a machine is.
type Place struct {
	Protocol Protocol
	// Host and Port are what a viewer connects to.
	Host string
	Port int
	// Proxy is the URL of a proxy that viewers go through; empty without one.
	Proxy string
	// Tunnel is true if Host is an address of the pod, which is reachable only inside of the
	// cluster, or only from within the pod. A viewer elsewhere uses Proxy if there is one, and
	// else needs a tunnel to PodPort.
	Tunnel bool
	// PodPort is the port in the pod.
	PodPort int
	// TLSSecret is the name of the Secret with the certificate of the display, which then accepts
	// only TLS; empty without one. See [Certificate].
	TLSSecret string
}

// Locate returns where a display of a machine with a running pod is:
//
//   - at the server that the manifest names (spec.vm.display.spice.server),
//   - or at the node, if the port of the display is one of the node's,
//   - or at the pod, see [Place.Tunnel].
//
// Of several addresses of a node or pod the first of the preferred family is used, [IPv4] if it
// is empty, else the first. These are VM-Operator's rules, whose pods are all in the network of
// their nodes.
func Locate(vm *spec.VirtualMachine, pod *corev1.Pod, protocol Protocol, prefer Family) (Place, error) {
	stored := vm
	vm = manifest.Defaulted(vm) // without a status
	p := Place{Protocol: protocol}
	display := vm.Spec.VM.Display
	servers := display.Servers()
	n := slices.IndexFunc(servers, func(s spec.DisplayServer) bool { return s.Protocol == string(protocol) })
	switch {
	case n < 0:
		return Place{}, fmt.Errorf("machine %s/%s: %w: its manifest has no spec.vm.display.%s", vm.Namespace, vm.Name, ErrNoDisplay, protocol)
	case len(servers[n].Ports) == 0:
		return Place{}, fmt.Errorf("machine %s/%s: %w: its %s server is on a UNIX socket, to which kubectl exec -i -n %[1]s %[6]s -- vmop-runner -%[5]s leads",
			vm.Namespace, vm.Name, ErrNoDisplay, strings.ToUpper(string(protocol)), protocol, objects.PodOf(stored))
	}
	name, server := servers[n].Ports[0].Name, ""
	p.PodPort = int(servers[n].Ports[0].Port)
	if protocol == SPICE {
		server, p.Proxy = display.Spice.Server, display.Spice.ProxyURL
	}
	if display.TLS != nil {
		p.TLSSecret = display.TLS.SecretName
		if display.TLS.GenerateSecret {
			if p.TLSSecret = pod.Annotations[names.AnnotationCertificate]; p.TLSSecret == "" {
				p.TLSSecret = objects.DisplayCertificateName(vm.Name)
			}
		}
	}
	port := podPort(pod, name)
	if port != nil {
		p.PodPort = int(port.ContainerPort) // the manifest may have changed since
	}
	p.Port = p.PodPort
	onNode := port != nil && (pod.Spec.HostNetwork || port.HostPort != 0)
	switch {
	case server != "":
		p.Host = server
	case onNode:
		p.Host = Host("", hostIPs(pod), prefer)
		if port.HostPort != 0 {
			p.Port = int(port.HostPort)
		}
	case port == nil: // such a display listens for its own pod only
		p.Host, p.Tunnel = "127.0.0.1", true
		if pod.Spec.HostNetwork {
			p.PodPort = int(objects.ListeningPort(vm, &objects.Settings{}, spec.DisplayPort{Name: name, Port: int32(p.PodPort)}))
			p.Port = p.PodPort
		}
	default:
		p.Host, p.Tunnel = Host("", podIPs(pod), prefer), true
	}
	if p.Host == "" {
		return Place{}, fmt.Errorf("machine %s/%s: its pod has no address yet", vm.Namespace, vm.Name)
	}
	return p, nil
}

func podPort(pod *corev1.Pod, name string) *corev1.ContainerPort {
	for i := range pod.Spec.Containers {
		ports := pod.Spec.Containers[i].Ports
		if n := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == name }); n >= 0 {
			return &ports[n]
		}
	}
	return nil
}

func podIPs(pod *corev1.Pod) []string {
	out := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		out = append(out, ip.IP)
	}
	return out
}

// hostIPs returns the addresses of a pod's node. An older kubelet reports one; those of a pod in
// the node's network complete them.
func hostIPs(pod *corev1.Pod) []string {
	out := []string{pod.Status.HostIP}
	for _, ip := range pod.Status.HostIPs {
		out = append(out, ip.IP)
	}
	if pod.Spec.HostNetwork {
		out = append(out, podIPs(pod)...)
	}
	return out
}
