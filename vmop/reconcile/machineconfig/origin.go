package machineconfig

import (
	"fmt"
	"net"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Origin is the program that created a machine. It determines parts of what its guest sees, from
// the first start on, and never changes.
type Origin string

const (
	// OriginVMOP is a machine that vmop created. Its interfaces have addresses of their own, and
	// none exist that the manifest does not ask for.
	OriginVMOP Origin = "vmop"
	// OriginVMOperator is one that was taken over: its guest has QEMU's default addresses where
	// the manifest gives none, and QEMU's default interface where the manifest has no network.
	// Where it gives no boot index, its firmware decides what it boots from. Its CPUs are plugged
	// into the highest slots first.
	OriginVMOperator Origin = "vm-operator"
)

const formerNIC = "e1000e"

// formerMAC is QEMU's default address of the n-th interface without one.
func formerMAC(n int) string { return fmt.Sprintf("52:54:00:12:34:%02x", 0x56+n) }

// former makes the networks those of VM-Operator's guests. Its QEMU numbered the interfaces
// without an address from 52:54:00:12:34:56 on, skipping given addresses, and had a default
// interface where there was no network.
func (o Origin) former(networks []runnerconfig.Network) []runnerconfig.Network {
	if o != OriginVMOperator {
		return networks
	}
	if len(networks) == 0 {
		networks = []runnerconfig.Network{{Type: runnerconfig.NetworkUser, Device: formerNIC}}
	}
	given := map[string]bool{}
	for i := range networks {
		if mac, err := net.ParseMAC(networks[i].MAC); err == nil {
			given[mac.String()] = true
		}
	}
	next := 0
	for i := range networks {
		if networks[i].MAC != "" {
			continue
		}
		for given[formerMAC(next)] {
			next++
		}
		networks[i].MAC = formerMAC(next)
		next++
	}
	return networks
}
