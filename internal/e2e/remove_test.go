//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// A machine notices neither that the operator is removed nor that it comes back,
// and is looked after again; and then everything is removed, step by step.
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
	removeEverything(t)
}

// aDisk exists by itself.
const aDisk = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {namespace: machines, name: data}
spec: {persistentVolumeClaim: {size: 16Mi}}
`

// removeEverything runs the commands of docs/install.md, and sees that each destroys what
// it is said to, and nothing else.
func removeEverything(t *testing.T) {
	apply(t, aDisk)
	kubectl(t, "wait", "vd", "-n", namespace, "data", "--for=jsonpath={.status.target.persistentVolumeClaimUID}", "--timeout="+patience.String())
	there := func() (claims []string) {
		return strings.Fields(kubectl(t, "get", "pvc", "-n", namespace, "-l", "app.kubernetes.io/name=vm-runner", "-o", "jsonpath={.items[*].metadata.name}"))
	}
	all := there()
	steps := removing(t)
	for i, step := range steps {
		for _, command := range step {
			words := strings.Fields(command)[1:]
			for j, word := range words {
				switch word {
				case "NAMESPACE":
					words[j] = namespace
				case "deploy":
					words[j] = kustomization(t, theOperator)
				case "deploy/access", "deploy/definitions":
					words[j] = "../../" + word
				}
			}
			if words[len(words)-1] == "-k" { // of each namespace
				words = append(words, kustomization(t, "namespace: "+namespace+"\nresources: [DEPLOY/runner, DEPLOY/image-repository]\n"))
			}
			t.Logf("$ %s\n%s", command, kubectl(t, words...))
		}
		left := there()
		switch i {
		case 0:
			gone(t, "pod/tiny")
			eventually(t, "the disk's claim is gone, and no other", func() error {
				if left = there(); len(left) != len(all)-1 || slices.Contains(left, "data-vd") {
					return fmt.Errorf("of %v there are %v", all, left)
				}
				return nil
			})
		case 1:
			kubectl(t, "get", "crd", "vms.vmoperator.jdrupes.org")
			if len(left) != len(all)-1 {
				t.Errorf("of %v there are %v without the operator", all, left)
			}
		case 2:
			if len(left) > 0 {
				t.Errorf("there are %v", left)
			}
		case 3:
			if account := kubectl(t, "get", "serviceaccounts", "-n", namespace, "-o", "name"); strings.Contains(account, "vm-runner") {
				t.Error(account)
			}
		}
	}
	for _, kind := range []string{"crd", "clusterroles", "clusterrolebindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "namespaces"} {
		if left := kubectl(t, "get", kind, "-o", "name"); strings.Contains(left, "vmop") || strings.Contains(left, "vmoperator") {
			t.Errorf("there still are\n%s", left)
		}
	}
}

// removing are the commands of each step by which docs/install.md destroys everything.
func removing(t *testing.T) (steps [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Removing\n")
	commands := regexp.MustCompile("`(kubectl [^`]*)`")
	for line := range strings.Lines(section) {
		if n, rest, ok := strings.Cut(line, ". "); ok && n == strconv.Itoa(len(steps)+1) {
			var step []string
			for _, found := range commands.FindAllStringSubmatch(rest, -1) {
				step = append(step, found[1])
			}
			steps = append(steps, step)
		}
	}
	if len(steps) != 6 {
		t.Fatalf("%d steps: %q", len(steps), steps)
	}
	return steps
}
