//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// maxRunner is what a runner may have resident while its machine idles, in KiB.
const maxRunner = 16 << 10

// checkRunnerMemory measures the runner of a pod, which is its first process.
func checkRunnerMemory(t *testing.T, pod string) {
	t.Helper()
	status := kubectl(t, "exec", "-n", namespace, pod, "--", "cat", "/proc/1/status")
	if !strings.HasPrefix(status, "Name:\tvmop-runner\n") {
		t.Fatalf("the first process of the pod is not the runner:\n%s", status)
	}
	for line := range strings.Lines(status) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			t.Logf("the runner has %d KiB resident", kib)
			if kib > maxRunner {
				t.Errorf("the runner has %d KiB resident, want at most %d", kib, maxRunner)
			}
			return
		}
	}
	t.Fatalf("no VmRSS:\n%s", status)
}
