//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxRunner is what a runner may have resident while its machine idles, in KiB.
const maxRunner = 16 << 10

// checkRunnerMemory measures the runners on this host, of which the node's are
// some: its processes are this host's.
func checkRunnerMemory(t *testing.T) {
	t.Helper()
	found := 0
	processes, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, comm := range processes {
		name, err := os.ReadFile(comm)
		if err != nil || strings.TrimSpace(string(name)) != "vmop-runner" {
			continue
		}
		kib, err := resident(filepath.Join(filepath.Dir(comm), "status"))
		if err != nil {
			continue // it has ended
		}
		found++
		t.Logf("a runner has %d KiB resident", kib)
		if kib > maxRunner {
			t.Errorf("a runner has %d KiB resident, want at most %d", kib, maxRunner)
		}
	}
	if found == 0 {
		t.Error("no runner was found")
	}
}

// resident is the resident memory of a process, in KiB.
func resident(status string) (int, error) {
	f, err := os.Open(status)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int
		if _, err := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kib); err == nil {
			return kib, nil
		}
	}
	return 0, fmt.Errorf("%s: no VmRSS", status)
}
