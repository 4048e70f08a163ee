//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/imagebuild"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/names"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What an owner of a cluster has met on a real node, by hand, is met again: by one
// machine after the other of one name, each with the disk that the one before has left.
// docs/trial.md has the points, and which test is for which.
func TestTrial(t *testing.T) {
	install(t)
	t.Cleanup(func() { operate(t, theOperator) })
	end := neverTwo(t)
	apply(t, trialMachine(t))
	program := buildCLI(t)
	run := func(name string, part func(*testing.T)) {
		t.Helper()
		// What follows would wait for a machine that the part may have left in any state.
		if !t.Run(name, func(t *testing.T) {
			explainOnFailure(t)
			part(t)
		}) {
			t.Fatalf("what comes after %q was not tried", name)
		}
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"an ordinary life", ordinaryLife},
		{"what has no room", noRoom},
		{"killed processes", killedProcesses},
		{"a QEMU that hangs", func(t *testing.T) { qemuHangs(t, told{t, program}) }},
		{"a pod deleted by force", forceDeleted},
		{"a guest that panics", guestPanics},
		{"a quota that grows", func(t *testing.T) { quotaGrows(t, told{t, program}) }},
		{"restarts", func(t *testing.T) { restarts(t, told{t, program}) }},
		{"a claim that is gone", func(t *testing.T) { claimGone(t, told{t, program}) }},
		{"too little memory", func(t *testing.T) { outOfMemory(t, told{t, program}) }},
		{"a definition deleted", definitionDeleted},
		{"rights and settings", rightsPortsImages},
		{"a node that does not report", nodeSilent},
		{"a container runtime that is killed", runtimeKilled},
		{"an API server that is away", serverAway},
	} {
		run(part.name, part.run)
	}
	end() // whoever watches is on the node
	run("a power cut", powerCut)
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
	t.Run("a machine that takes its disks with it", disksGo)
}

// trialMachine is the machine of machine.yaml, which has the operator's image.
func trialMachine(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), "  image:\n")
	_, after, _ := strings.Cut(rest, "  vm:\n")
	if !found || after == "" {
		t.Fatalf("machine.yaml names no image:\n%s", data)
	}
	return before + "  vm:\n" + strings.Replace(after, "maximumRam: 256Mi", "maximumRam: 512Mi\n    currentRam: 256Mi\n    panicDevice: pvpanic-pci", 1)
}

// patch changes the specification of the machine.
func patch(t *testing.T, spec string) {
	t.Helper()
	t.Logf("$ kubectl patch vm tiny --type=merge -p '{\"spec\":%s}'", spec)
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":`+spec+`}`)
}

// ready waits until the machine is, as users wait, and its guest answers.
func ready(t *testing.T) *tinyguest.Console {
	t.Helper()
	kubectl(t, "wait", "-n", namespace, "vm/tiny", "--for=condition=Ready", "--timeout="+patience.String())
	return console(t, "tiny")
}

// mark has the guest write a few words, and marked holds its disk against them. Where one pod's
// guest is asked several times, they are of different lengths: a console begins with what was
// said before, and so with the answers to the same questions.
func mark(t *testing.T, c *tinyguest.Console, words string) {
	t.Helper()
	say(t, c, fmt.Sprintf("write vda %d %s", guestOffset, words))
}

func marked(t *testing.T, c *tinyguest.Console, words string) {
	t.Helper()
	if got := say(t, c, fmt.Sprintf("read vda %d %d", guestOffset, len(words))); !strings.Contains(got, words) {
		t.Errorf("the guest's disk has %q, want %q", got, words)
	}
}

// awaitEvent waits until an event of the machine has a reason and says something.
func awaitEvent(t *testing.T, reason, text string) {
	t.Helper()
	var events string
	eventually(t, fmt.Sprintf("an event %s says %q", reason, text), func() error {
		events = kubectl(t, "get", "events", "-n", namespace, "--field-selector=involvedObject.kind=VirtualMachine,reason="+reason,
			"-o", `jsonpath={range .items[*]}{.type} {.reason}: {.message}{"\n"}{end}`)
		if !strings.Contains(events, text) {
			return errors.New(events)
		}
		return nil
	})
	t.Logf("the events %s:\n%s", reason, events)
}

// lastEnd holds the end of the machine that its status has against what it is to say.
func lastEnd(t *testing.T, cause, text string) {
	t.Helper()
	var said string
	eventually(t, "status.lastEnd has the cause "+cause, func() error {
		said = kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.status.lastEnd.cause}: {.status.lastEnd.message}")
		if !strings.HasPrefix(said, cause+": ") || !strings.Contains(said, text) {
			return errors.New(said)
		}
		return nil
	})
	t.Logf("status.lastEnd: %s", said)
}

// filler makes a pod that leaves the node room for so much of a resource, and no more.
func filler(t *testing.T, name, room string) (remove func()) {
	t.Helper()
	rest := resource.MustParse(kubectl(t, "get", "nodes", "-o", "jsonpath={.items[0].status.allocatable."+name+"}"))
	for _, word := range strings.Fields(kubectl(t, "get", "pods", "-A", "-o", "jsonpath={.items[*].spec.containers[*].resources.requests."+name+"}")) {
		rest.Sub(resource.MustParse(word))
	}
	rest.Sub(resource.MustParse(room))
	apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: filler, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  containers:
  - name: filler
    image: vmop.test/runner:1
    imagePullPolicy: Never
    resources: {requests: {%s: %s}}
`, name, rest.String()))
	remove = func() {
		kubectl(t, "delete", "pod", "-n", "default", "filler", "--ignore-not-found", "--force", "--wait=true")
	}
	t.Cleanup(remove)
	kubectl(t, "wait", "-n", "default", "pod/filler", "--for=condition=PodScheduled", "--timeout="+patience.String())
	return remove
}

// A machine grows while it runs, and its guest reboots for a change that waits and powers
// itself off, on a node that has no room for more than what it has asked for: it always
// runs again, and nothing of that is a warning.
func ordinaryLife(t *testing.T) {
	c := ready(t)
	mark(t, c, "a new disk")
	if got := show(t, "get", "pod", "tiny", "-o", "jsonpath={.status.qosClass}"); got != "Burstable" {
		t.Errorf("the pod is %s", got)
	}
	if got := show(t, "get", "vm", "tiny", "-o", "jsonpath={.status.runnerVersion}"); got != imagebuild.Version {
		t.Errorf("the runner's version is %q, want %q", got, imagebuild.Version)
	}
	patch(t, `{"vm":{"currentCpus":2}}`)
	awaitField(t, "cpus", "2")
	awaitRequest(t, "cpu", "1")
	applied(t)
	remove := filler(t, "cpu", "200m")
	patch(t, `{"vm":{"bootMenu":true}}`)
	awaitCondition(t, "AwaitingRestartToApplyConfiguration")
	awaitLog(t, "a reset by the guest ends the machine from now on")

	before := podUID(t)
	if err := c.Send("reboot"); err != nil {
		t.Fatal(err)
	}
	awaitOtherPod(t, before)
	c = ready(t)
	marked(t, c, "a new disk")
	if got := say(t, c, "cpus"); !strings.Contains(got, "online 0-1") {
		t.Errorf("the guest's CPUs after its reboot: %s", got)
	}
	awaitCondition(t, "AwaitingRestartToApplyConfiguration=false")

	before = podUID(t)
	if err := c.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	awaitOtherPod(t, before)
	lastEnd(t, "guest-shutdown", "")
	marked(t, ready(t), "a new disk")
	remove()
	t.Logf("$ kubectl get events\n%s", kubectl(t, "get", "events", "-n", namespace, "--sort-by=.lastTimestamp"))
	if got := show(t, "get", "events", "--field-selector=type=Warning,involvedObject.kind=VirtualMachine", "-o", "jsonpath={.items[*].message}"); got != "" {
		t.Errorf("there are warnings: %s", got)
	}
}

// A guest that is to grow where its node has no room keeps what it has, also when it
// reboots, and the machine says so; it grows by itself when there is room.
func noRoom(t *testing.T) {
	c := ready(t)
	remove := filler(t, "memory", "100Mi")
	patch(t, `{"vm":{"currentRam":"512Mi","bootMenu":false}}`)
	awaitMessage(t, "tiny", "ConfigurationApplied", "ResizeDeferred", "has no room for 2 CPUs and 512Mi")
	awaitEvent(t, "ResizeDeferred", "the guest keeps 2 CPUs and 256Mi")
	awaitMessage(t, "tiny", "MemoryAdjusted", "PodNotResized", "the guest has 256 MiB, 512 MiB are wanted")
	before := podUID(t)
	if err := c.Send("reboot"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Expect(withPatience(t), tinyguest.Ready); err != nil {
		t.Fatal(err)
	}
	awaitField(t, "ram", "256Mi")
	if podUID(t) != before {
		t.Error("the reboot has made another pod, for which there is no room")
	}
	remove()
	awaitField(t, "ram", "512Mi")
	applied(t)
	if podUID(t) != before {
		t.Error("the machine has another pod")
	}
}

// A pod that a quota of the namespace does not allow is waited for with a reason, and made
// when the quota has grown.
func quotaGrows(t *testing.T, cli told) {
	ready(t)
	cli.run("stop", "tiny")
	gone(t, "pod/tiny")
	quota := func(memory string) {
		apply(t, fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: little, namespace: %s}\nspec: {hard: {requests.memory: %s}}\n", namespace, memory))
	}
	quota("100Mi")
	t.Cleanup(func() { kubectl(t, "delete", "quota", "-n", namespace, "little", "--ignore-not-found") })
	// It counts when the controller manager has looked at it, and nothing is allowed before.
	kubectl(t, "wait", "-n", namespace, "quota/little", "--for=jsonpath={.status.hard}", "--timeout="+patience.String())
	patch(t, `{"vm":{"state":"Running"}}`)
	awaitMessage(t, "tiny", "PodReady", "QuotaExceeded", "raise the quota or free some of it")
	awaitEvent(t, "QuotaExceeded", "exceeded quota: little")
	if podUID(t) != "" {
		t.Error("there is a pod beyond the quota")
	}
	quota("8Gi")
	ready(t)
	kubectl(t, "delete", "quota", "-n", namespace, "little")
}

// A machine that is deleted takes its disks with it where its manifest says so, and the
// owner of the cluster lets the operator do that. Until then it says what it waits for.
func disksGo(t *testing.T) {
	explainOnFailure(t)
	apply(t, strings.Replace(trialMachine(t), "name: tiny\nspec:", "name: brief\nspec:\n  deletionPolicy: Delete", 1))
	kubectl(t, "wait", "-n", namespace, "vm/brief", "--for=condition=Ready", "--timeout="+patience.String())
	left := func() string {
		return kubectl(t, "get", "pvc", "-n", namespace, "-l", names.LabelInstance+"=brief", "-o", "jsonpath={.items[*].metadata.name}")
	}
	before := left()
	if !strings.Contains(before, "brief-system-disk") {
		t.Fatalf("the claims are %s", before)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "brief", "--wait=false")
	gone(t, "pod/brief")
	awaitMessage(t, "brief", "BlockDevicesReady", "NamespaceNotPrepared", "the operator may not; make role binding vmop-claims-operator")
	if now := left(); now != before {
		t.Errorf("nobody lets the operator delete the claims %s, and there are %s", before, now)
	}
	const binding = "vmop-claims-operator"
	kubectl(t, "create", "rolebinding", binding, "-n", namespace, "--clusterrole=vmop-operator-claims", "--serviceaccount=vmop-system:vmop-operator")
	t.Cleanup(func() { kubectl(t, "delete", "rolebinding", "-n", namespace, binding, "--ignore-not-found") })
	gone(t, "vm/brief")
	eventually(t, "the claims of the machine go", func() error {
		if now := left(); now != "" {
			return errors.New(now)
		}
		return nil
	})
}
