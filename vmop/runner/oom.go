package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// cgroupRoot is where control groups of version 2 are. A container sees its own
// there.
const cgroupRoot = "/sys/fs/cgroup"

// ownCgroup is the directory of this process's control group.
func ownCgroup() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroupRoot
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join(cgroupRoot, path)
		}
	}
	return cgroupRoot
}

// memoryEvents is how often the kernel has killed a process of a control group
// because there was no memory left, of the group's or of the host's.
type memoryEvents struct{ kills int64 }

func readMemoryEvents(dir string) memoryEvents {
	data, err := os.ReadFile(filepath.Join(dir, "memory.events"))
	if err != nil {
		return memoryEvents{} // version 1, or no controller: nothing is known
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == "oom_kill" {
			n, err := strconv.ParseInt(value, 10, 64)
			if err == nil {
				return memoryEvents{kills: n}
			}
		}
	}
	return memoryEvents{}
}

// explain says why a process of the group was killed since then; empty if not for
// lack of memory.
func (before memoryEvents) explain(dir string) string {
	if readMemoryEvents(dir).kills <= before.kills {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(dir, "memory.max"))
	limit, perr := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || perr != nil { // "max"
		return "the kernel killed it because the host has run out of memory: give the machine less, or the host more"
	}
	return fmt.Sprintf("the kernel killed it because its memory limit of %s was used up: QEMU needs more than the guest's RAM; raise the limit (in a cluster spec.resources or the namespace's LimitRange), or give the machine less", runnerconfig.Bytes(limit))
}
