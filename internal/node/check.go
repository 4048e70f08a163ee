package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// cniDir is where Debian has the network plugins.
const cniDir = "/usr/lib/cni"

// ErrRequirements reports that a node cannot run here; the message says what is missing and what
// helps.
var ErrRequirements = errors.New("a Kubernetes node cannot run here")

// Check reports what a node lacks on this host, or nil.
func Check() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root: run \"sudo make test-e2e\"", ErrRequirements)
	}
	var missing []error
	for _, program := range []string{"containerd", "ctr", "runc", "ip", "iptables", "conntrack", "losetup", "nsenter", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, err)
		}
	}
	if _, err := os.Stat(cniDir + "/bridge"); err != nil {
		missing = append(missing, err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: run \"make deps-e2e\": %w", ErrRequirements, errors.Join(missing...))
	}
	return nil
}
