//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/node"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/names"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A node is drained of machines with the flags that people give, which evict pods
// through policy/v1, and a machine makes room for a pod of a higher priority: the
// guest shuts down, the machine says who ended it and waits, and runs again with its
// disk when there is a node.
func TestDrain(t *testing.T) {
	explainOnFailure(t)
	install(t)
	kubectl(t, "apply", "-f", "machine.yaml")
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	say(t, c, fmt.Sprintf("write vda %d still here", guestOffset))
	// again waits until the machine runs again, with its disk.
	again := func() {
		t.Helper()
		awaitField(t, "phase", "Running")
		awaitLog(t, tinyguest.Ready)
		if got := say(t, console(t, "tiny"), fmt.Sprintf("read vda %d 10", guestOffset)); !strings.Contains(got, "still here") {
			t.Errorf("the disk: %s", got)
		}
	}
	name := strings.TrimSpace(kubectl(t, "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"))
	t.Cleanup(func() { kubectl(t, "uncordon", name) })
	drain := func(more ...string) (evicted string) {
		t.Helper()
		begin := time.Now()
		evicted = kubectl(t, append([]string{"drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=" + patience.String()}, more...)...)
		t.Logf("kubectl drain %s took %s:\n%s", strings.Join(more, " "), time.Since(begin).Round(time.Second), evicted)
		return evicted
	}

	// The operator is on the node, too, and is evicted with the machine.
	before := podUID(t)
	if evicted := drain(); !strings.Contains(evicted, "pod/vmop-operator-") || !strings.Contains(evicted, "pod/tiny evicted") {
		t.Errorf("evicted were:\n%s", evicted)
	}
	kubectl(t, "uncordon", name)
	awaitOtherPod(t, before)
	again()

	// As if the operator were on another node, it is left there.
	c = console(t, "tiny")
	drain("--pod-selector=app.kubernetes.io/name=vm-runner")
	if _, err := c.Expect(withPatience(t), "power button, shutting down"); err != nil {
		t.Errorf("the guest was not asked to shut down: %v", err)
	}
	awaitField(t, "lastEnd.cause", "EvictionByEvictionAPI")
	awaitCondition(t, "PodReady=false")
	kubectl(t, "uncordon", name)
	again()

	remove := urgentPod(t, name)
	awaitField(t, "lastEnd.cause", "PreemptionByScheduler")
	awaitCondition(t, "PodReady=false")
	t.Logf("beside a pod of a higher priority:\n%s", kubectl(t, "get", "vm", "-n", namespace, "-o", "wide"))
	remove()
	again()
	events := kubectl(t, "get", "events", "-n", namespace, "--field-selector=involvedObject.kind=VirtualMachine")
	t.Logf("who ended the machine:\n%s", events)
	for _, reason := range []string{"EvictionByEvictionAPI", "PreemptionByScheduler"} {
		if !strings.Contains(events, reason) {
			t.Errorf("no event tells of %s", reason)
		}
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
	hurry(t)
}

// urgentPod makes a pod for which the node has room only without the machine, and
// which comes before it.
func urgentPod(t *testing.T, nodeName string) (remove func()) {
	t.Helper()
	cpu := resource.MustParse(strings.TrimSpace(kubectl(t, "get", "node", nodeName, "-o", "jsonpath={.status.allocatable.cpu}")))
	// The machine asks for half a CPU, and what else runs there for less.
	request := resource.NewMilliQuantity(cpu.MilliValue()-400, resource.DecimalSI)
	apply(t, fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: urgent, namespace: default}
spec:
  priorityClassName: urgent
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  containers:
  - name: urgent
    image: vmop.test/runner:1
    imagePullPolicy: Never
    resources: {requests: {cpu: %s}}
`, request))
	remove = func() {
		kubectl(t, "delete", "pod", "-n", "default", "urgent", "--ignore-not-found", "--force", "--wait=true")
		kubectl(t, "delete", "priorityclass", "urgent", "--ignore-not-found")
	}
	t.Cleanup(remove)
	return remove
}

// hurry has a machine whose guest does not react to the power button, and which gives
// it an hour to do so: nobody has to wait that long, or to delete its pod by force.
func hurry(t *testing.T) {
	disk := filepath.Join(scratch, "deaf.img")
	if err := testbin.TinyGuest(t).WriteDisk(withPatience(t), disk, tinyguest.WordIgnorePowerButton); err != nil {
		t.Fatal(err)
	}
	if err := theNode.AddStorageClass(withPatience(t), node.StorageClass{Name: "deaf-guest", Image: disk}); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "delete", "pvc", "-n", namespace, "-l", names.LabelInstance+"=tiny", "--wait=true")
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, strings.NewReplacer("storageClassName: tiny-guest", "storageClassName: deaf-guest", "powerdownTimeout: 60", "powerdownTimeout: 3600").Replace(string(manifest)))
	awaitLog(t, tinyguest.Ready)
	awaitField(t, "phase", "Running")
	c := console(t, "tiny")
	say(t, c, fmt.Sprintf("write vda %d still here", guestOffset))
	ignores := func() {
		t.Helper()
		if _, err := c.Expect(withPatience(t), "power button, ignored"); err != nil {
			t.Fatal(err)
		}
	}

	// It is being stopped, and has less time then.
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":{"state":"Stopped"}}}`)
	ignores()
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":{"powerdownTimeout":3}}}`)
	gone(t, "pod/tiny")
	awaitField(t, "phase", "Stopped")

	// It is being deleted, and nobody wants to wait for its guest.
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":{"state":"Running","powerdownTimeout":3600}}}`)
	awaitLog(t, tinyguest.Ready)
	awaitField(t, "phase", "Running")
	c = console(t, "tiny")
	if got := say(t, c, fmt.Sprintf("read vda %d 10", guestOffset)); !strings.Contains(got, "still here") {
		t.Errorf("the disk of a guest that was not waited for: %s", got)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=false")
	ignores()
	awaitField(t, "phase", "Terminating")
	t.Logf("while it is being deleted:\n%s", kubectl(t, "get", "vm,pod", "-n", namespace))
	if out, err := exec.CommandContext(withPatience(t), buildCLI(t), "stop", "--kubeconfig", theNode.Kubeconfig(), "-n", namespace, "--force", "tiny").CombinedOutput(); err != nil {
		t.Errorf("vmop-cli stop --force: %v\n%s", err, out)
	}
	gone(t, "vm/tiny")
	// The machine goes when its QEMU has ended; Kubernetes removes the pod after it.
	if state := kubectl(t, "get", "pod", "-n", namespace, "tiny", "--ignore-not-found", "-o", "jsonpath={.status.containerStatuses[*].state.running}"); state != "" {
		t.Errorf("the machine is gone, and its pod runs: %s", state)
	}
	gone(t, "pod/tiny")
}
