//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A container runtime that is killed and started again changes nothing for the guest.
func runtimeKilled(t *testing.T) {
	mark(t, ready(t), "no container runtime")
	before, qemu := podUID(t), theQEMU(t)
	if err := theNode.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	if now := theQEMU(t); now != qemu {
		t.Errorf("QEMU %s executes without containerd, and did %s", now, qemu)
	}
	if err := theNode.StartContainerd(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	undisturbed(t, "no container runtime", before, qemu)
}

// A guest runs on while there is no API server. A change that is made right after that
// is said to be under way until the guest has it, however late its node is told.
func serverAway(t *testing.T) {
	before := podUID(t)
	patch(t, `{"vm":{"currentCpus":1}}`)
	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
	awaitOtherPod(t, before)
	mark(t, ready(t), "no API server")
	applied(t)
	before, qemu := podUID(t), theQEMU(t)
	theNode.StopAPIServer()
	time.Sleep(15 * time.Second)
	now := theQEMU(t)
	if err := theNode.StartAPIServer(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	if now != qemu {
		t.Errorf("QEMU %s executes without an API server, and did %s", now, qemu)
	}

	begin := time.Now()
	patch(t, `{"vm":{"currentCpus":2}}`)
	said := map[string]bool{}
	eventually(t, "the guest has another processor", func() error {
		out := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", `jsonpath={.status.cpus} {.metadata.generation} `+
			`{range .status.conditions[?(@.type=="ConfigurationApplied")]}{.observedGeneration} {.status} {.reason} {.message}{end}`)
		f := strings.Fields(out)
		if len(f) < 5 {
			return errors.New(out)
		}
		if text := strings.Join(f[3:], " "); f[1] == f[2] && !said[text] {
			said[text] = true
			t.Logf("after %s: %s processors, ConfigurationApplied %s", time.Since(begin).Round(time.Second), f[0], text)
		}
		if f[0] != "2" {
			if f[1] == f[2] && f[3] == "True" {
				t.Errorf("a change that the guest does not have is said to be applied: %s", out)
			}
			return errors.New(out)
		}
		return nil
	})
	t.Logf("the guest has it %s after the change", time.Since(begin).Round(time.Second))
	applied(t)
	undisturbed(t, "no API server", before, qemu)
}

// When all processes of a node end at once, the operator among them, the machine runs
// again when the node is back, with its disk, and says what has happened.
func powerCut(t *testing.T) {
	mark(t, ready(t), "power cut!")
	before := podUID(t)
	if err := theNode.CutPower(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	neverTwo(t)
	if left := qemus(t); len(left) > 0 {
		t.Errorf("QEMU %s has outlived it", left)
	}
	begin := time.Now()
	if err := theNode.RestorePower(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s after it was started, the node is ready", time.Since(begin).Round(time.Second))
	awaitOtherPod(t, before)
	marked(t, ready(t), "power cut!")
	t.Logf("%s after the node was started, the guest answers", time.Since(begin).Round(time.Second))
	const unknown = "its node does not know how the runner ended, as when it has lost its power or was restarted"
	lastEnd(t, "ContainerStatusUnknown", unknown)
	awaitEvent(t, "ContainerStatusUnknown", unknown+"; the machine is started again at ")
}
