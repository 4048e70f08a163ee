//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// A machine that no node takes says so, and runs when a node has the label; its own
// labels reach its pod; deleted without its pod and made again it has the same guest,
// which goes on and is reported about.
func TestPlacementAndOrphans(t *testing.T) {
	explainOnFailure(t)
	install(t)
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	placed := strings.Replace(string(manifest), "  vm:\n", "  nodeSelector: {example.org/rack: a}\n  vm:\n", 1)
	apply(t, placed)
	eventually(t, "no node takes the machine", func() error {
		out := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", `jsonpath={.status.conditions[?(@.type=="PodReady")].reason}`)
		if out != "Unschedulable" {
			return fmt.Errorf("reason %q", out)
		}
		return nil
	})
	t.Logf("$ kubectl get vm\n%s", kubectl(t, "get", "vm", "-n", namespace))
	kubectl(t, "label", "node", "--all", "example.org/rack=a", "--overwrite")
	awaitField(t, "phase", "Running")
	console(t, "tiny")
	before := podUID(t)

	kubectl(t, "label", "vm", "-n", namespace, "tiny", "app=tiny")
	eventually(t, "the label reaches the pod", func() error {
		if out := kubectl(t, "get", "pod", "-n", namespace, "-l", "app=tiny", "-o", "name"); !strings.Contains(out, "pod/tiny") {
			return fmt.Errorf("pods %q", out)
		}
		return nil
	})

	t.Logf("$ kubectl delete vm tiny --cascade=orphan\n%s", kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--cascade=orphan"))
	if uid := podUID(t); uid != before {
		t.Fatalf("pod %s instead of %s", uid, before)
	}
	apply(t, placed)
	eventually(t, "the machine has the pod of the former one", func() error {
		owner := kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.ownerReferences[0].uid}")
		if uid := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.uid}"); owner != uid {
			return fmt.Errorf("owner %q, machine %q", owner, uid)
		}
		return nil
	})
	awaitField(t, "phase", "Running")
	if uid := podUID(t); uid != before {
		t.Fatalf("pod %s instead of %s: the machine was restarted", uid, before)
	}
	t.Logf("$ kubectl get vm\n%s", kubectl(t, "get", "vm", "-n", namespace))
	t.Logf("$ kubectl get events --field-selector reason=PodAdopted\n%s", kubectl(t, "get", "events", "-n", namespace, "--field-selector", "reason=PodAdopted"))
}
