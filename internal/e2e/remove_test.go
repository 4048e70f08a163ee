//go:build e2e

package e2e

import (
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// A machine notices neither that the operator is removed nor that it comes back,
// and is looked after again.
func TestRemovingTheOperator(t *testing.T) {
	explainOnFailure(t)
	install(t)
	kubectl(t, "apply", "-f", "machine.yaml")
	awaitLog(t, tinyguest.Ready)
	awaitField(t, "phase", "Running")
	c := console(t, "tiny")
	uid := func() string {
		return kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.uid} {.status.phase}")
	}
	before := uid()

	kubectl(t, "delete", "-k", kustomization(t, theOperator), "--wait=true")
	kubectl(t, "wait", "--for=delete", "pod", "-n", "vmop-system", "-l", "app.kubernetes.io/name=vmop-operator", "--timeout="+patience.String())
	if after := uid(); after != before {
		t.Errorf("the pod was %q and is %q", before, after)
	}
	say(t, c, "cpus")
	// Its runner reports on without an operator.
	kubectl(t, "get", "vm", "-n", namespace, "tiny")

	kustomize(t, theOperator)
	kubectl(t, "wait", "-n", "vmop-system", "--for=condition=Available", "deployment/vmop-operator", "--timeout="+patience.String())
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":{"currentCpus":2}}}`)
	awaitField(t, "cpus", "2")
	if after := uid(); after != before {
		t.Errorf("the pod was %q and is %q after the operator came back", before, after)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
}
