//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// sharing is a machine of a cluster with shared folders.
const sharing = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {namespace: machines, name: NAME}
spec:
  vm:
    state: Running
    maximumCpus: 1
    maximumRam: 512Mi
    networks: []
    disks:
    - volumeClaimTemplate:
        metadata: {name: system}
        spec:
          storageClassName: generic-guest
          resources: {requests: {storage: 64Mi}}
    shares: SHARES
    display: {}
`

// A folder of the cluster is for the machines of a namespace when the operator's
// administrator names its claim, which a machine that waits for it is told. Its guest
// reads and writes it then. A folder of a node nobody can have.
func TestSharesOfTheOperator(t *testing.T) {
	explainOnFailure(t)
	install(t)
	if err := theNode.ImportArchive(withPatience(t), archive(newRunnerImage)); err != nil {
		t.Fatal(err)
	}
	folder := sharedFolder(t)
	addGenericGuest(t)
	machine := func(name, shares string) {
		apply(t, strings.NewReplacer("NAME", name, "SHARES", shares).Replace(sharing))
		t.Cleanup(func() { kubectl(t, "delete", "vm", "-n", namespace, name, "--wait=true") })
	}
	refused := func(name string, why ...string) {
		t.Helper()
		eventually(t, name+" is refused", func() error {
			out, err := theNode.Kubectl(t.Context(), "describe", "vm", "-n", namespace, name)
			for _, w := range why {
				if err == nil && !strings.Contains(out, w) {
					err = errors.New(out)
				}
			}
			return err
		})
		if pods := show(t, "get", "pods", "-l", "app.kubernetes.io/instance="+name, "-o", "name"); pods != "" {
			t.Errorf("%s has %s", name, pods)
		}
	}
	machine("tiny", `[{tag: src, persistentVolumeClaim: {claimName: folder}}, {tag: docs, persistentVolumeClaim: {claimName: folder}, readOnly: true}]`)
	refused("tiny", "spec.vm.shares[0].persistentVolumeClaim", "the claim folder is not for shared folders", "allowedShares")
	machine("node", `[{tag: src, hostPath: /etc}]`)
	refused("node", "spec.vm.shares[0].hostPath", "is for machines of one host", "share a persistentVolumeClaim")

	// The runner of the newer distribution has a virtiofsd that needs no root.
	kustomize(t, strings.NewReplacer(
		"vmop.test/runner:1", newRunnerImage, "VMOP_RUNNER_PULL_POLICY=Never", `VMOP_RUNNER_PULL_POLICY=Never, "VMOP_ALLOWED_SHARES=fold*"`,
	).Replace(theOperator))
	t.Cleanup(func() { kustomize(t, theOperator) }) // of tests to come
	kubectl(t, "rollout", "status", "-n", "vmop-system", "deployment/vmop-operator", "--timeout="+patience.String())
	awaitLog(t, tinyguest.Ready)
	awaitCondition(t, "Running")
	checkShares(t, console(t, "tiny"), folder, "virtiofs", "rw")
	refused("node", "spec.vm.shares[0].hostPath")
	eventually(t, "the machine says that its folders are served", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "vm", "-n", namespace, "tiny", "-o", `jsonpath={.status.conditions[?(@.type=="SharesServed")].status}`)
		if err == nil && out != "True" {
			err = errors.New("SharesServed is " + out)
		}
		return err
	})
}
