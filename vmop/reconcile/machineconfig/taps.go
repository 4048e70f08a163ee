package machineconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// PreparedTaps returns the tap interfaces of the machine, which must have its defaults, under
// names that are unique on every node.
func PreparedTaps(vm *spec.VirtualMachine) []runnerconfig.PreparedTap {
	if vm == nil {
		return nil
	}
	var taps []runnerconfig.PreparedTap
	networks := vm.Spec.VM.Networks
	if !slices.ContainsFunc(networks, func(n spec.Network) bool { return n.Tap != nil }) {
		return nil
	}
	// Problems are reported by the configuration itself.
	config := machineConfig(vm, "", "", Options{}, &problems{})
	sum := sha256.Sum256([]byte(vm.Namespace + "/" + vm.Name))
	prefix := "vm" + hex.EncodeToString(sum[:])[:10] // 15 bytes with the number, Linux's maximum
	for i, n := range networks {
		if n.Tap != nil {
			taps = append(taps, runnerconfig.PreparedTap{
				Network: i, Name: fmt.Sprintf("%s-%d", prefix, i), Bridge: n.Tap.Bridge, Queues: config.Runner.VM.TapQueues(i),
			})
		}
	}
	return taps
}
