package runner

import (
	"net"
	"testing"
)

// An address is a host's own if one of its interfaces has it, or if all or none have.
func TestOwnAddresses(t *testing.T) {
	interfaces := []net.Addr{
		&net.IPNet{IP: net.IPv4(192, 0, 2, 7), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("2001:db8::7"), Mask: net.CIDRMask(64, 128)},
		&net.UnixAddr{Name: "other"},
	}
	for address, want := range map[string]bool{
		"192.0.2.7": true, "2001:db8::7": true, "2001:db8:0::7": true,
		"192.0.2.8": false, "2001:db8::8": false, "10.0.0.1": false,
		"": true, "0.0.0.0": true, "::": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"host.example.org": true,
	} {
		if got := isOwn(address, interfaces); got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
}
