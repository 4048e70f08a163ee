//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A machine whose claim is gone does not begin with an empty disk before somebody has
// asked for it.
func claimGone(t *testing.T, cli told) {
	mark(t, ready(t), "a lost one")
	cli.run("stop", "tiny")
	gone(t, "pod/tiny")
	kubectl(t, "delete", "pvc", "-n", namespace, "tiny-system-disk", "--wait=true")
	patch(t, `{"vm":{"state":"Running"}}`)
	awaitMessage(t, "tiny", "BlockDevicesReady", "ClaimGone", "claim tiny-system-disk of ")
	awaitEvent(t, "ClaimGone", "--new-disk system-disk")
	if got := claims(t); strings.Contains(got, "system-disk") || podUID(t) != "" {
		t.Errorf("nobody has asked for a new disk, and there are the claims %s and the pod %q", got, podUID(t))
	}
	cli.run("start", "tiny", "--new-disk", "system-disk")
	c := ready(t)
	if got := say(t, c, fmt.Sprintf("read vda %d 10", guestOffset)); strings.Contains(got, "a lost one") {
		t.Error("the new disk is the one that was deleted")
	}
}

// A definition is deleted by nobody who does not say that he means it. It takes its
// machines with it, whose guests shut down and whose disks stay; the operator finds the
// definition that is made again, and the machine, without being started anew.
func definitionDeleted(t *testing.T) {
	const definition = "vms.vmoperator.jdrupes.org"
	c := ready(t)
	mark(t, c, "still here")
	before, operator := podUID(t), operatorPods(t)
	out, err := theNode.Kubectl(withPatience(t), "delete", "crd", definition)
	if err == nil || !strings.Contains(err.Error(), "vmoperator.jdrupes.org/destroy=yes") {
		t.Fatalf("the deletion of the definition: %v\n%s", err, out)
	}
	t.Logf("$ kubectl delete crd %s\n%v", definition, err)
	if podUID(t) != before {
		t.Error("the machine has another pod")
	}

	kubectl(t, "annotate", "crd", definition, "vmoperator.jdrupes.org/destroy=yes")
	kubectl(t, "delete", "crd", definition, "--wait=true", "--timeout="+patience.String())
	if _, err := c.Expect(withPatience(t), "power button, shutting down"); err != nil {
		t.Errorf("the guest was not asked to shut down: %v", err)
	}
	gone(t, "pod/tiny")
	kubectl(t, "apply", "-k", filepath.Join("..", "..", "deploy", "definitions"))
	kubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout="+patience.String())
	apply(t, trialMachine(t))
	marked(t, ready(t), "still here")
	if now := operatorPods(t); now != operator {
		t.Errorf("the operator was %s and is %s", operator, now)
	}
}

// operatorPods are the operator's pods, and how often they were started.
func operatorPods(t *testing.T) string {
	t.Helper()
	return kubectl(t, "get", "pods", "-n", "vmop-system", "-o", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount};{end}")
}
