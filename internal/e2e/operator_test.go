//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/names"
)

// kustomize applies a kustomization that stands on folders of deploy/.
func kustomize(t *testing.T, text string) {
	t.Helper()
	kubectl(t, "apply", "-k", kustomization(t, text))
}

// kustomization is the folder of one.
func kustomization(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	deploy, err := filepath.Abs(filepath.Join("..", "..", "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	// An absolute path is refused.
	if deploy, err = filepath.Rel(dir, deploy); err != nil {
		t.Fatal(err)
	}
	text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + strings.ReplaceAll(text, "DEPLOY", deploy)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// install installs the operator as its users do, and what machines of the
// namespace need.
func install(t *testing.T) {
	t.Helper()
	prepareNode(t)
	kubectl(t, "apply", "-k", filepath.Join("..", "..", "deploy", "access"))
	kubectl(t, "apply", "-k", filepath.Join("..", "..", "deploy", "definitions"))
	kubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout="+patience.String())
	kustomize(t, theOperator)
	t.Cleanup(func() {
		if t.Failed() {
			out, err := theNode.Kubectl(context.Background(), "logs", "-n", "vmop-system", "deployment/vmop-operator", "--tail=200")
			t.Logf("the operator: %v\n%s", err, out)
		}
	})
	kubectl(t, "wait", "-n", "vmop-system", "--for=condition=Available", "deployment/vmop-operator", "--timeout="+patience.String())
	apply(t, `
apiVersion: v1
kind: Namespace
metadata:
  name: machines
  labels: {pod-security.kubernetes.io/enforce: restricted}
`)
	t.Cleanup(func() { kubectl(t, "delete", "namespace", namespace, "--wait=true") })
	kustomize(t, `
namespace: machines
resources: [DEPLOY/runner, DEPLOY/image-repository]
`)
	heldFromCreation(t)
}

// theOperator is a user's kustomization, with the images of the node.
const theOperator = `
resources: [DEPLOY]
images:
- {name: ghcr.io/vmop/operator, newName: vmop.test/operator, newTag: "1"}
configMapGenerator:
- name: vmop-operator-settings
  namespace: vmop-system
  behavior: merge
  literals: [VMOP_RUNNER_IMAGE=vmop.test/runner:1, VMOP_RUNNER_PULL_POLICY=Never, "VMOP_CLONING_PROVISIONERS=vmop.test/local,csi.vmop.test"]
`

// awaitCondition waits until a condition of the machine is as it should be.
func awaitCondition(t *testing.T, condition string) {
	t.Helper()
	kubectl(t, "wait", "-n", namespace, "vm/tiny", "--for=condition="+condition, "--timeout="+patience.String())
}

// awaitField waits until a field of the machine's status has a value.
func awaitField(t *testing.T, field, value string) {
	t.Helper()
	kubectl(t, "wait", "-n", namespace, "vm/tiny", "--for=jsonpath={.status."+field+"}="+value, "--timeout="+patience.String())
}

// gone waits until there is no object of a name.
func gone(t *testing.T, object string) {
	t.Helper()
	kubectl(t, "wait", "-n", namespace, object, "--for=delete", "--timeout="+patience.String())
}

// claims lists the volume claims of the machine.
func claims(t *testing.T) string {
	t.Helper()
	return kubectl(t, "get", "pvc", "-n", namespace, "-l", names.LabelInstance+"=tiny", "-o", "jsonpath={.items[*].metadata.name}")
}

// heldFromCreation waits until the API server adds the finalizer to machines that are created. It
// refuses them for some seconds after the definitions are new, until it has read them.
func heldFromCreation(t *testing.T) {
	t.Helper()
	began := time.Now()
	eventually(t, "machines are held from their creation", func() error {
		got, err := theNode.Kubectl(t.Context(), "create", "--dry-run=server", "-f", "machine.yaml", "-o", "jsonpath={.metadata.finalizers}")
		if err == nil && !strings.Contains(got, names.FinalizerMachine) {
			err = fmt.Errorf("the finalizers are %q", got)
		}
		if err != nil {
			t.Logf("after %s: %v", time.Since(began), err)
		}
		return err
	})
}

// The life of a machine in a cluster, as its user sees it: applied, booted,
// changed while it runs, stopped, started again with its disk, deleted.
func TestOperator(t *testing.T) {
	explainOnFailure(t)
	install(t)

	kubectl(t, "apply", "-f", "machine.yaml")
	awaitLog(t, tinyguest.Ready)
	awaitCondition(t, "PodReady")
	awaitCondition(t, "Running")
	awaitField(t, "phase", "Running")
	emulatedAndToldSo(t)
	t.Logf("the machine runs:\n%s", kubectl(t, "get", "vm", "-n", namespace, "-o", "wide"))
	c := console(t, "tiny")
	say(t, c, fmt.Sprintf("write vda %d still here", guestOffset))

	begin := time.Now()
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":{"currentCpus":2}}}`)
	if _, err := c.Expect(withPatience(t), "cpu 1 online"); err != nil {
		t.Error(err)
	}
	t.Logf("from the patch to the guest's second processor: %s", time.Since(begin))
	awaitField(t, "cpus", "2")

	kubectl(t, "annotate", "vm", "-n", namespace, "tiny", names.AnnotationResetRequest+"=once")
	if _, err := c.Expect(withPatience(t), tinyguest.Ready); err != nil {
		t.Errorf("the guest was not reset: %v", err)
	}
	checkRunnerMemory(t, "tiny")

	begin = time.Now()
	checkVNC(t)
	t.Logf("the display took %s", time.Since(begin))
	checkRunnerMemory(t, "tiny")

	// Without a run policy the state of the machine is what says whether it runs.
	cli := told{t, buildCLI(t)}
	state := func(want string) {
		t.Helper()
		if got := show(t, "get", "vm", "tiny", "-o", "jsonpath={.spec.vm.state}"); got != want {
			t.Errorf("the manifest says %s, want %s", got, want)
		}
	}
	cli.run("stop", "tiny")
	state("Stopped")
	gone(t, "pod/tiny")
	awaitCondition(t, "PodReady=false")
	awaitCondition(t, "Running=false")
	awaitField(t, "phase", "Stopped")
	t.Logf("the machine has stopped:\n%s\n%s", kubectl(t, "describe", "vm", "-n", namespace, "tiny"),
		kubectl(t, "get", "events", "-n", namespace, "--field-selector=involvedObject.kind=VirtualMachine"))

	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":{"display":{"vnc":{"unixSocket":true}}}}}`)
	cli.run("start", "tiny")
	state("Running")
	awaitLog(t, tinyguest.Ready)
	c = console(t, "tiny")
	if got := say(t, c, fmt.Sprintf("read vda %d 10", guestOffset)); !strings.Contains(got, "still here") {
		t.Errorf("the disk after a restart: %s", got)
	}
	if got := say(t, c, "cpus"); !strings.Contains(got, "online 0-1") {
		t.Errorf("the guest's CPUs: %s", got)
	}
	begin = time.Now()
	checkVNCSocket(t)
	t.Logf("the display on a socket took %s", time.Since(begin))

	before := claims(t)
	if before != "tiny-runner-data tiny-system-disk" {
		t.Errorf("the machine has the claims %q", before)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
	gone(t, "configmap/tiny")
	if after := claims(t); after != before {
		t.Errorf("of the claims %q are left: %q", before, after)
	}
}

// What is missing is said where users look, with the command that makes it.
func TestImageRepositoryThatIsMissing(t *testing.T) {
	explainOnFailure(t)
	install(t)
	kubectl(t, "delete", "pvc", "-n", namespace, names.ImageRepositoryClaim, "--wait=true")
	machine, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, string(machine)+`    - cdrom:
        image: install.iso
`)
	eventually(t, "the machine says what it waits for", func() error {
		out, err := theNode.Kubectl(t.Context(), "describe", "vm", "-n", namespace, "tiny")
		if err == nil && !strings.Contains(out, "kubectl apply -n "+namespace+" -k github.com/vmop/sdk/deploy/image-repository") {
			err = errors.New(out)
		}
		return err
	})
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
}
