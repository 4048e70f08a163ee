package main

import (
	"testing"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// The list has the addresses at which somebody else may reach the guest.
func TestGuestAddresses(t *testing.T) {
	g := runner.Guest{Interfaces: []runner.GuestInterface{
		{Name: "lo", Addresses: []string{"127.0.0.1/8", "::1/128"}},
		{Name: "eth0", Addresses: []string{"10.0.2.15/24", "fe80::1/64", "2001:db8::5/64", "no address"}},
		{Name: "eth1"},
	}}
	if got, want := guestAddresses(&g), "10.0.2.15, 2001:db8::5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPorts(t *testing.T) {
	vm := spec.NewVirtualMachine("", "web")
	if got := ports(vm, ""); got != "" {
		t.Errorf("%q without a network", got)
	}
	vm.Spec.VM.Networks = []spec.Network{
		{User: &spec.UserNetwork{HostForwards: []spec.HostForward{{HostPort: 8080, GuestPort: 80}, {HostPort: 53, GuestPort: 53, Protocol: spec.ForwardUDP}}}},
		{User: &spec.UserNetwork{}},
		{User: &spec.UserNetwork{HostForwards: []spec.HostForward{{HostAddress: "10.0.0.1", HostPort: 2222, GuestPort: 22}}}},
	}
	if got, want := ports(vm, "127.0.0.1"), "127.0.0.1:8080->80, 127.0.0.1:53->53/udp, 10.0.0.1:2222->22"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
