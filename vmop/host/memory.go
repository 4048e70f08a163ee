package host

import (
	"fmt"
	"os"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
)

// MemoryNotes report that a machine may get more memory than this host has, which does not prevent
// its start: QEMU only takes what the guest writes to.
func MemoryNotes(vm *spec.VirtualMachine) []string {
	if vm == nil {
		return nil
	}
	ram := vm.Spec.VM.MaximumRAM
	data, err := os.ReadFile("/proc/meminfo")
	if ram == nil || err != nil {
		return nil
	}
	if total := meminfo(string(data), "MemTotal"); total > 0 && spec.Bytes(*ram) > int64(total) {
		return []string{fmt.Sprintf("spec.vm.maximumRam: %s is more than the %s that this host has: a guest that uses it all is stopped by the kernel, or makes this host swap", ram, mebibytes(total))}
	}
	return nil
}

func meminfo(text, name string) uint64 {
	for line := range strings.Lines(text) {
		var kib uint64
		if _, err := fmt.Sscanf(line, name+": %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

func mebibytes(n uint64) string { return fmt.Sprintf("%d MiB", n>>20) }
