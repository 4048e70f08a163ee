package runner

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
)

const kvmDevice = "/dev/kvm"

// maxDeviceGroups is more than a machine's devices have on any node.
const maxDeviceGroups = 16

// deviceGroups returns the groups for the machine's next pod: those that may use its block devices
// and /dev/kvm, unless all users may. Their numbers differ between distributions, and a device node
// in a container keeps its node's.
func (e *Engine) deviceGroups() []int {
	vm := &e.o.Config.Runner.VM
	var paths []string
	if vm.Accelerator != string(qemucmd.AcceleratorTCG) {
		paths = append(paths, kvmDevice)
	}
	for _, d := range vm.Drives {
		if d.Device != "" {
			paths = append(paths, d.Device)
		}
	}
	var groups []int
	for _, path := range paths {
		var s unix.Stat_t
		if unix.Stat(path, &s) == nil {
			if g := groupFor(&s); g != 0 && !slices.Contains(groups, g) && len(groups) < maxDeviceGroups {
				groups = append(groups, g)
			}
		}
	}
	slices.Sort(groups)
	return groups
}

// groupFor returns the group whose members may read and write a device that others may not; 0 if
// there is none. Root's group does not count: membership in it gives access to more than devices.
func groupFor(s *unix.Stat_t) int {
	const group, others = 0o060, 0o006
	device := s.Mode&syscall.S_IFMT == syscall.S_IFBLK || s.Mode&syscall.S_IFMT == syscall.S_IFCHR
	if !device || s.Mode&group != group || s.Mode&others == others {
		return 0
	}
	return int(s.Gid)
}
