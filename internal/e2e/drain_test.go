//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// A node is drained of machines with the flags that people give: the guest shuts
// down, the machine waits, and runs again with its disk when there is a node.
func TestDrain(t *testing.T) {
	explainOnFailure(t)
	install(t)
	kubectl(t, "apply", "-f", "machine.yaml")
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	say(t, c, fmt.Sprintf("write vda %d still here", guestOffset))
	name := strings.TrimSpace(kubectl(t, "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"))
	t.Cleanup(func() { kubectl(t, "uncordon", name) })
	kubectl(t, "drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout="+patience.String(),
		"--pod-selector=app.kubernetes.io/name=vm-runner")
	awaitCondition(t, "PodReady=false")
	kubectl(t, "uncordon", name)
	awaitField(t, "phase", "Running")
	awaitLog(t, tinyguest.Ready)
	c = console(t, "tiny")
	if got := say(t, c, fmt.Sprintf("read vda %d 10", guestOffset)); !strings.Contains(got, "still here") {
		t.Errorf("the disk after the drain: %s", got)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
}
