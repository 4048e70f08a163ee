//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/node"
)

// steadyOperator is the operator, with no part in what a taint does to the pods of a
// node.
const steadyOperator = theOperator + `
patches:
- target: {kind: Deployment, name: vmop-operator}
  patch: '[{"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]}]'
`

// renewedOperator has another image for runners, and ports of displays that are ports of
// nodes.
var renewedOperator = strings.NewReplacer(
	"vmop.test/runner:1", "vmop.test/runner:2",
	"literals: [", "literals: [VMOP_DISPLAY_HOST_PORTS=5910-5999, ",
).Replace(steadyOperator)

// operate changes the operator, and waits until the new one acts.
func operate(t *testing.T, operator string) {
	t.Helper()
	kustomize(t, operator)
	kubectl(t, "rollout", "status", "-n", "vmop-system", "deployment/vmop-operator", "--timeout="+patience.String())
}

// A runner that may not report is told of, with the command that lets it; meanwhile the
// operator gets other settings: a machine that runs is shown to have another image than
// its next start, and two machines with one port of their node are told of each other.
func rightsPortsImages(t *testing.T) {
	ready(t)
	allow := func() {
		kustomize(t, "namespace: "+namespace+"\nresources: [DEPLOY/runner, DEPLOY/image-repository]\n")
	}
	t.Cleanup(allow)
	kubectl(t, "delete", "rolebinding", "-n", namespace, "vmop-machines-runner")
	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
	eventually(t, "the machine has a new pod", func() error {
		if podUID(t) == "" {
			return errors.New("none")
		}
		return nil
	})
	operate(t, renewedOperator)
	portsTaken(t)
	awaitMessage(t, "tiny", "PodReady", "RunnerNotReporting", "has not reported: it may not, ")
	awaitEvent(t, "RunnerNotReporting", "to let it: kubectl create rolebinding vmop-machines-runner -n "+namespace)
	theQEMU(t) // the guest runs all the same

	allow()
	ready(t)
	awaitMessage(t, "tiny", "RunnerUpToDate", "OtherImage", "its next start has vmop.test/runner:2")
	if got := cell(t, show(t, "get", "vm", "tiny", "-o", "wide"), "UP TO DATE"); got != "False" {
		t.Errorf("UP TO DATE is %q", got)
	}
}

// portsTaken has two machines with one port of the node.
func portsTaken(t *testing.T) {
	t.Helper()
	const ports = "ports"
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ports+"}\n")
	t.Cleanup(func() { kubectl(t, "delete", "namespace", ports, "--wait=true") })
	kustomize(t, "namespace: "+ports+"\nresources: [DEPLOY/runner]\n")
	of := func(name string) string {
		return strings.NewReplacer("namespace: machines", "namespace: "+ports, "name: tiny", "name: "+name, "vnc: {}", "vnc: {port: 5910}").Replace(trialMachine(t))
	}
	apply(t, of("first"))
	kubectl(t, "wait", "-n", ports, "pod/first", "--for=create", "--timeout="+patience.String())
	kubectl(t, "wait", "-n", ports, "pod/first", "--for=condition=PodScheduled", "--timeout="+patience.String())
	apply(t, of("second"))
	var said string
	eventually(t, "the second machine says who has its port", func() error {
		said = kubectl(t, "get", "vm", "-n", ports, "second", "-o", `jsonpath={.status.conditions[?(@.type=="PodReady")].message}`)
		if !strings.Contains(said, "port 5910 of spec.vm.display.vnc.port is a port of the node and taken by spec.vm.display.vnc.port of machine first on node "+node.Name) {
			return errors.New(said)
		}
		return nil
	})
	t.Logf("the second machine: %s", said)
	kubectl(t, "delete", "vm", "-n", ports, "--all", "--wait=true")
}

// undisturbed waits until the pod of the machine can be entered, and holds it to be the one
// of before, with its QEMU and what the guest has written.
func undisturbed(t *testing.T, words, pod, qemu string) {
	t.Helper()
	eventually(t, "the pod can be entered", func() error {
		_, err := theNode.Kubectl(withPatience(t), "exec", "-n", namespace, "tiny", "--", "vmop-runner", "-version")
		return err
	})
	marked(t, ready(t), words)
	if podUID(t) != pod || theQEMU(t) != qemu {
		t.Errorf("the machine has pod %s and QEMU %s, had %s and %s", podUID(t), theQEMU(t), pod, qemu)
	}
}

// The pod of a machine that a taint ends, on a node that does not report any more, may
// run: the machine says so, runs on nowhere else, and runs again, with its disk, when
// the node is back. A kubelet that only ends and begins anew changes nothing.
func nodeSilent(t *testing.T) {
	operate(t, steadyOperator)
	mark(t, ready(t), "cut off!!!")
	before, qemu := podUID(t), theQEMU(t)
	running := true
	start := func() {
		if !running {
			if err := theNode.StartKubelet(withPatience(t)); err != nil {
				t.Error(err)
			}
		}
		running = true
	}
	t.Cleanup(start)
	stop := func() {
		if err := theNode.StopKubelet(); err != nil {
			t.Fatal(err)
		}
		running = false
	}
	stop()
	start()
	undisturbed(t, "cut off!!!", before, qemu)

	begin := time.Now()
	stop()
	kubectl(t, "taint", "node", node.Name, "vmop.test/out=:NoExecute")
	lastEnd(t, "DeletionByTaintManager", "")
	kubectl(t, "taint", "node", node.Name, "vmop.test/out:NoExecute-")
	awaitMessage(t, "tiny", "Ready", "NodeLost", "node "+node.Name+" does not report about pod tiny, which ")
	t.Logf("%s after the kubelet was killed:\n%s", time.Since(begin).Round(time.Second), show(t, "get", "vm", "tiny", "-o", "wide"))
	awaitCondition(t, "Ready=unknown")
	awaitCondition(t, "Running=unknown")
	awaitCondition(t, "GuestExecuting=unknown")
	show(t, "get", "vm", "tiny", "-o", `jsonpath={range .status.conditions[*]}{.type} {.status} {.reason}: {.message}{"\n"}{end}`)
	if podUID(t) != before || theQEMU(t) != qemu {
		t.Errorf("the machine has pod %s and QEMU %s, had %s and %s", podUID(t), theQEMU(t), before, qemu)
	}

	begin = time.Now()
	start()
	awaitOtherPod(t, before)
	marked(t, ready(t), "cut off!!!")
	t.Logf("%s after the kubelet was started, the guest answers", time.Since(begin).Round(time.Second))
	show(t, "get", "vm", "tiny", "-o", "jsonpath={.status.lastEnd}")
}
