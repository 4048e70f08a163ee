package console

import (
	"net/netip"
)

// Family is a version of the Internet protocol.
type Family string

// The families.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Host returns the address or name at which a viewer reaches the display: the server that the
// manifest names, else the first of the pod's addresses of the preferred family ([IPv4] if it is
// empty), else its first address. It is empty if the pod has no address yet.
func Host(server string, podIPs []string, prefer Family) string {
	if server != "" {
		return server
	}
	var first string
	for _, ip := range podIPs {
		a, err := netip.ParseAddr(ip)
		if err != nil {
			continue
		}
		if first == "" {
			first = ip
		}
		if a.Unmap().Is6() == (prefer == IPv6) {
			return ip
		}
	}
	return first
}
