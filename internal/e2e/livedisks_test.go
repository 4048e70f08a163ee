//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The manifest of a machine that runs gains a disk, and loses it: the guest has the disk and
// has it no more, in the pod that it is in. What it has written is there when the disk comes
// again, and in the next pod, which has the volume itself, by the same serial number.
func TestDisksOfARunningMachine(t *testing.T) {
	explainOnFailure(t)
	install(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kubectl(t, "get", "vmbda,pods,vd", "-n", namespace, "-o", "wide"))
			t.Log(kubectl(t, "get", "vmbda", "-n", namespace, "-o", "yaml"))
			t.Log(kubectl(t, "logs", "-n", namespace, "-l", "vmoperator.jdrupes.org/attachment", "--tail=50"))
		}
	})
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: files, namespace: %s}
spec:
  persistentVolumeClaim: {size: 32Mi, storageClassName: local, volumeMode: Filesystem}
`, namespace))
	apply(t, string(manifest))
	runs(t, "tiny")
	tiny := console(t, "tiny")
	podUID := func() string {
		t.Helper()
		return kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.uid}")
	}
	refer := func(refs string) {
		t.Helper()
		kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"blockDeviceRefs":`+refs+`}}`)
	}
	attachments := func(want string) {
		t.Helper()
		eventually(t, "the machine has attachments: "+want, func() error {
			if got := kubectl(t, "get", "vmbda", "-n", namespace, "-o", "jsonpath={.items[*].status.phase}"); got != want {
				return errors.New(got)
			}
			return nil
		})
	}
	const data = `[{"kind":"VirtualDisk","name":"files"}]`
	first := podUID()

	refer(data)
	awaitDisks(t, tiny, "vdb 33554432 bytes", true)
	attachments("Attached")
	if got := attachedDisk(t, tiny); !strings.Contains(got, "serial files-vd-claim") {
		t.Errorf("the guest has %q", got)
	}
	say(t, tiny, fmt.Sprintf("write vdb %d while it ran", dataOffset))
	eventually(t, "the machine says what its guest has", func() error {
		got := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.status.blockDeviceRefs[*].name} {.status.blockDeviceRefs[*].attached} {.status.blockDeviceRefs[*].hotplugged} {.status.restartAwaitingChanges}")
		if strings.TrimSpace(got) != "files true true" {
			return errors.New(got)
		}
		return nil
	})
	t.Logf("$ kubectl get vmbda\n%s", kubectl(t, "get", "vmbda", "-n", namespace))

	refer("null")
	awaitDisks(t, tiny, "vdb", false)
	attachments("")
	if got := podUID(); got != first {
		t.Fatalf("pod %s has taken the place of %s", got, first)
	}

	refer(data)
	awaitDisks(t, tiny, "vdb 33554432 bytes", true)
	if got := say(t, tiny, fmt.Sprintf("read vdb %d 12", dataOffset)); !strings.Contains(got, "while it ran") {
		t.Errorf("the guest reads %s", got)
	}
	attachments("Attached")
	if got := podUID(); got != first {
		t.Fatalf("pod %s has taken the place of %s", got, first)
	}

	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
	eventually(t, "there is another pod", func() error {
		got := kubectl(t, "get", "pod", "-n", namespace, "--ignore-not-found", "tiny", "-o", "jsonpath={.metadata.uid} {.spec.volumes[*].persistentVolumeClaim.claimName}")
		if strings.Contains(got, first) || !strings.Contains(got, "files-vd") {
			return errors.New(got)
		}
		return nil
	})
	runs(t, "tiny")
	tiny = console(t, "tiny")
	attachments("")
	if got := attachedDisk(t, tiny); !strings.Contains(got, "serial files-vd-claim") {
		t.Errorf("the guest has %q", got)
	}
	if got := say(t, tiny, fmt.Sprintf("read vdb %d 12", dataOffset)); !strings.Contains(got, "while it ran") {
		t.Errorf("after its restart the guest reads %s", got)
	}

	// What a pod was started with is not taken from it.
	refer("null")
	eventually(t, "the change waits", func() error {
		if got := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.status.restartAwaitingChanges[*].path}"); got != "spec.blockDeviceRefs[0]" {
			return errors.New(got)
		}
		return nil
	})
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	kubectl(t, "delete", "vd", "-n", namespace, "files", "--wait=true", "--timeout="+patience.String())
}
