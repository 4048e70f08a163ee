package runner

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

const cgroupRoot = "/sys/fs/cgroup"

// unlimited is the value of a group without a limit in version 1: the largest number of whole
// pages.
const unlimited = math.MaxInt64 &^ (1<<16 - 1)

func ownCgroup() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroupRoot
	}
	return cgroupOf(cgroupRoot, string(data))
}

// cgroupOf returns the directory of the control group in the text of a /proc/PID/cgroup: of version
// 2, or of version 1's memory controller. A container sees its own at the root of the latter,
// whatever its path.
func cgroupOf(root, text string) string {
	dir := root
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			controller := filepath.Join(root, "memory")
			if own := filepath.Join(controller, f[2]); isDir(own) {
				return own
			}
			return controller
		case f[0] == "0" && f[1] == "":
			dir = filepath.Join(root, f[2])
		}
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// memoryEvents counts the processes of a control group that the kernel has killed for lack of
// memory.
type memoryEvents struct{ kills int64 }

func readMemoryEvents(dir string) memoryEvents {
	data, err := os.ReadFile(filepath.Join(dir, "memory.events"))
	if err != nil { // version 1
		data, err = os.ReadFile(filepath.Join(dir, "memory.oom_control"))
	}
	if err != nil {
		return memoryEvents{} // no controller
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

func (before memoryEvents) explain(dir string) string {
	if readMemoryEvents(dir).kills <= before.kills {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(dir, "memory.max"))
	if err != nil {
		data, err = os.ReadFile(filepath.Join(dir, "memory.limit_in_bytes"))
	}
	limit, perr := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || perr != nil || limit >= unlimited { // "max"
		return "the kernel killed it because the host has run out of memory: give the machine less, or the host more"
	}
	return fmt.Sprintf("the kernel killed it because its memory limit of %s was used up: QEMU needs more than the guest's RAM; raise the limit (in a cluster spec.resources or the namespace's LimitRange), or give the machine less", runnerconfig.Bytes(limit))
}
