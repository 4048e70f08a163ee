//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// told is vmop-cli for the machines of the node, which logs what it is asked and
// answers.
type told struct {
	t       *testing.T
	program string
}

// run asks for something that succeeds, and returns what was printed.
func (c told) run(args ...string) string {
	c.t.Helper()
	out, err := c.exec(args...)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// refused asks for something that fails, with a text and exit code 1.
func (c told) refused(text string, args ...string) {
	c.t.Helper()
	out, err := c.exec(args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, text) {
		c.t.Errorf("%v, want exit code 1 and %q:\n%s", err, text, out)
	}
}

func (c told) exec(args ...string) (string, error) {
	c.t.Helper()
	cmd := exec.CommandContext(withPatience(c.t), c.program, append(args, "--cluster", "-n", namespace)...)
	cmd.Env = kubectlEnv()
	out, err := cmd.CombinedOutput()
	code := ""
	if err != nil {
		code = fmt.Sprintf("(%v)\n", err)
	}
	c.t.Logf("$ vmop-cli %s --cluster\n%s%s", strings.Join(args, " "), out, code)
	return string(out), err
}

// podUID is that of the pod of the machine; empty if there is none.
func podUID(t *testing.T) string {
	t.Helper()
	return kubectl(t, "get", "pod", "-n", namespace, "tiny", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
}

// awaitOtherPod waits until the machine runs in another pod than the one before.
func awaitOtherPod(t *testing.T, before string) {
	t.Helper()
	eventually(t, "the machine runs in a new pod", func() error {
		phase := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.status.phase}")
		if uid := podUID(t); uid == "" || uid == before || phase != "Running" {
			return fmt.Errorf("pod %q, phase %s", uid, phase)
		}
		return nil
	})
}

// policy sets the run policy of the machine.
func policy(t *testing.T, p string) {
	t.Helper()
	t.Logf("$ kubectl patch vm tiny --type=merge -p '{\"spec\":{\"runPolicy\":\"%s\"}}'", p)
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"runPolicy":"`+p+`"}}`)
	awaitField(t, "power.policy", p)
}

// powerOff has the guest power itself off.
func powerOff(t *testing.T) {
	t.Helper()
	c := console(t, "tiny")
	if err := c.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	t.Log("the guest powers itself off")
}

// stoppedByGuest waits until the machine has stopped because of that, and is not started
// again: of one that is about to be the phase is another one.
func stoppedByGuest(t *testing.T) {
	t.Helper()
	awaitField(t, "phase", "Stopped")
	gone(t, "pod/tiny")
	show(t, "get", "vm", "tiny")
	const cause = "jsonpath={.status.lastEnd.cause}"
	if got := show(t, "get", "vm", "tiny", "-o", cause); got != string(runnerconfig.CauseGuestShutdown) {
		t.Errorf("it ended by %s", got)
	}
}

// identityOf is what the guest knows its machine by: its UUID, its type, the serial
// numbers of its disks, its MAC and its PCI addresses.
func identityOf(t *testing.T, c *tinyguest.Console) string {
	t.Helper()
	var all []string
	for _, command := range []string{"uuid", "dmi", "disks", "mac", "ls /sys/bus/pci/devices"} {
		out := say(t, c, command)
		if strings.TrimSpace(out) == "" || strings.Contains(out, "error: ") {
			t.Errorf("%s: %q", command, out)
		}
		all = append(all, out)
	}
	return strings.Join(all, "\n")
}

// What a user does with a machine whose run policy he changes: operations that are
// done, refused and superseded, a guest that powers itself off, a change that waits
// for a restart and is gone after it, with a real guest.
func TestOperations(t *testing.T) {
	explainOnFailure(t)
	install(t)
	c := told{t, buildCLI(t)}
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}

	// Manual: it is made and stays stopped.
	apply(t, strings.Replace(string(manifest), "  vm:\n", "  runPolicy: Manual\n  vm:\n", 1))
	awaitField(t, "phase", "Stopped")
	c.run("start", "tiny")
	c.run("start", "tiny") // it runs already
	first, identity := podUID(t), identityOf(t, console(t, "tiny"))
	kubectl(t, "create", "-f", operationFile(t, "move", "Migrate"))
	kubectl(t, "wait", "-n", namespace, "vmop/move", "--for=jsonpath={.status.phase}=Failed", "--timeout="+patience.String())

	// What needs a restart, and is not needed any more after it.
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":{"maximumCpus":3}}}`)
	awaitCondition(t, "AwaitingRestartToApplyConfiguration")
	needsRestart(t, "True")
	if out := c.run("changes", "tiny"); !strings.Contains(out, "spec.vm.maximumCpus") {
		t.Error("the change is not shown")
	}
	c.run("restart", "tiny")
	if podUID(t) == first {
		t.Error("the machine was not restarted")
	}
	awaitCondition(t, "AwaitingRestartToApplyConfiguration=false")
	needsRestart(t, "False")
	c.run("changes", "tiny")
	guest := console(t, "tiny")
	if got := say(t, guest, "cpus"); !strings.Contains(got, "possible 0-2") {
		t.Errorf("the guest's CPUs after the restart: %s", got)
	}
	if now := identityOf(t, guest); now != identity {
		t.Errorf("the guest sees another machine after the restart:\n%s\nbefore:\n%s", now, identity)
	}

	// AlwaysOn: nobody stops it, and its guest neither.
	policy(t, "AlwaysOn")
	c.refused("spec.runPolicy is AlwaysOn", "stop", "tiny")
	before := podUID(t)
	powerOff(t)
	awaitOtherPod(t, before)

	// Manual and AlwaysOnUnlessStoppedManually: whoever stops it, it stays so.
	policy(t, "Manual")
	powerOff(t)
	stoppedByGuest(t)
	c.run("start", "tiny")
	console(t, "tiny") // its guest reacts
	c.run("stop", "tiny")
	show(t, "get", "vm", "tiny")
	policy(t, "AlwaysOnUnlessStoppedManually")
	c.run("start", "tiny")
	powerOff(t)
	stoppedByGuest(t)
	c.run("start", "tiny")

	// AlwaysOff stops it, and nobody starts it.
	policy(t, "AlwaysOff")
	awaitField(t, "phase", "Stopped")
	c.refused("spec.runPolicy is AlwaysOff", "start", "tiny")
	policy(t, "AlwaysOnUnlessStoppedManually")
	awaitField(t, "phase", "Running")
	c.run("stop", "tiny", "--force")

	// One that no node takes is stopped, too, which ends its start.
	policy(t, "Manual")
	kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"nodeSelector":{"vmop.test/nowhere":"true"}}}`)
	c.run("start", "tiny", "--no-wait")
	awaitField(t, "phase", "Pending")
	c.run("stop", "tiny")
	t.Logf("$ kubectl get vmop -n %s --sort-by=.metadata.creationTimestamp\n%s", namespace,
		kubectl(t, "get", "vmop", "-n", namespace, "--sort-by=.metadata.creationTimestamp"))
	if out := kubectl(t, "get", "vmop", "-n", namespace, "-o", "jsonpath={.items[*].status.phase}"); !strings.Contains(out, "Superseded") {
		t.Errorf("the start of a machine that no node takes was not superseded: %s", out)
	}
	gone(t, "pod/tiny")
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
}

// operationFile is an operation on the machine, in a file.
func operationFile(t *testing.T, name, kind string) string {
	t.Helper()
	file := t.TempDir() + "/operation.yaml"
	text := fmt.Sprintf("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachineOperation\nmetadata: {name: %s, namespace: %s}\nspec: {type: %s, virtualMachineName: tiny}\n", name, namespace, kind)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
