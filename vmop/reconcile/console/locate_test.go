package console_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/spec"
)

func TestLocate(t *testing.T) {
	pod := func(edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "spice", ContainerPort: 5910}, {Name: "vnc", ContainerPort: 5901}}}}},
			Status: corev1.PodStatus{
				PodIP: "10.0.0.7", PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}},
				HostIP: "192.0.2.1", HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}},
			},
		}
		if edit != nil {
			edit(p)
		}
		return p
	}
	ports := func(p ...corev1.ContainerPort) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports = p }
	}
	port := int32(5910)
	display := func(edit func(*spec.Display)) *spec.VirtualMachine {
		return machine(func(vm *spec.VirtualMachine) {
			vm.Spec.VM.Display = &spec.Display{Spice: &spec.Spice{Port: &port}, VNC: &spec.VNC{}}
			if edit != nil {
				edit(vm.Spec.VM.Display)
			}
		})
	}
	for _, c := range []struct {
		name     string
		vm       *spec.VirtualMachine
		pod      *corev1.Pod
		protocol console.Protocol
		prefer   console.Family
		want     console.Place
	}{
		{"a pod", display(nil), pod(nil), console.SPICE, "", console.Place{Protocol: console.SPICE, Host: "10.0.0.7", Port: 5910, Tunnel: true, PodPort: 5910}},
		{"its other family", display(nil), pod(nil), console.VNC, console.IPv6, console.Place{Protocol: console.VNC, Host: "fd00::7", Port: 5901, Tunnel: true, PodPort: 5901}},
		{
			"a port of the node", display(nil), pod(ports(corev1.ContainerPort{Name: "spice", ContainerPort: 5910, HostPort: 5911})), console.SPICE, console.IPv6,
			console.Place{Protocol: console.SPICE, Host: "2001:db8::1", Port: 5911, PodPort: 5910},
		},
		{
			"VM-Operator's pod", display(nil), pod(func(p *corev1.Pod) {
				p.Spec.HostNetwork, p.Status.HostIP, p.Status.HostIPs = true, "", nil
			}), console.SPICE, "", console.Place{Protocol: console.SPICE, Host: "10.0.0.7", Port: 5910, PodPort: 5910},
		},
		{
			"a server", display(func(d *spec.Display) { d.Spice.Server = "desk.example.org" }), pod(nil), console.SPICE, console.IPv6,
			console.Place{Protocol: console.SPICE, Host: "desk.example.org", Port: 5910, PodPort: 5910},
		},
		{
			"a proxy", display(func(d *spec.Display) { d.Spice.ProxyURL = "http://squid:3128" }), pod(nil), console.SPICE, "",
			console.Place{Protocol: console.SPICE, Host: "10.0.0.7", Port: 5910, Proxy: "http://squid:3128", Tunnel: true, PodPort: 5910},
		},
		{"the server is SPICE's", display(func(d *spec.Display) { d.Spice.Server = "desk.example.org" }), pod(nil), console.VNC, "", console.Place{Protocol: console.VNC, Host: "10.0.0.7", Port: 5901, Tunnel: true, PodPort: 5901}},
		{
			"TLS", display(func(d *spec.Display) { d.TLS = &spec.DisplayTLS{SecretName: "desk-tls"} }), pod(nil), console.SPICE, "",
			console.Place{Protocol: console.SPICE, Host: "10.0.0.7", Port: 5910, Tunnel: true, PodPort: 5910, TLSSecret: "desk-tls"},
		},
		{"no password", display(nil), pod(ports()), console.SPICE, "", console.Place{Protocol: console.SPICE, Host: "127.0.0.1", Port: 5910, Tunnel: true, PodPort: 5910}},
		{
			"another port since it was started", display(nil), pod(ports(corev1.ContainerPort{Name: "spice", ContainerPort: 5900})), console.SPICE, "",
			console.Place{Protocol: console.SPICE, Host: "10.0.0.7", Port: 5900, Tunnel: true, PodPort: 5900},
		},
	} {
		if got, err := console.Locate(c.vm, c.pod, c.protocol, c.prefer); got != c.want || err != nil {
			t.Errorf("%s: %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
	moved := func(vm *spec.VirtualMachine) *spec.VirtualMachine {
		vm.Status.VirtualMachinePods = []spec.VirtualMachinePod{{Name: "desk", UID: "1"}, {Name: "desk-7", UID: "2", Active: true}}
		return vm
	}
	for want, c := range map[string]struct {
		vm       *spec.VirtualMachine
		pod      *corev1.Pod
		protocol console.Protocol
	}{
		"its manifest has no spec.vm.display.vnc":                 {display(func(d *spec.Display) { d.VNC = nil }), pod(nil), console.VNC},
		"kubectl exec -i -n lab desk -- vmop-runner -vnc leads":   {display(func(d *spec.Display) { d.VNC.UnixSocket = true }), pod(nil), console.VNC},
		"kubectl exec -i -n lab desk-7 -- vmop-runner -vnc leads": {moved(display(func(d *spec.Display) { d.VNC.UnixSocket = true })), pod(nil), console.VNC},
		"its pod has no address yet":                              {display(nil), pod(func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }), console.SPICE},
	} {
		if _, err := console.Locate(c.vm, c.pod, c.protocol, ""); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, console.ErrNoDisplay) == strings.Contains(want, "address") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
