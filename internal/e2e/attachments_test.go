//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// attachment attaches the disk that exists by itself to a machine.
func attachment(t *testing.T, name, machine string) {
	t.Helper()
	apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachineBlockDeviceAttachment
metadata: {name: %s, namespace: %s}
spec: {virtualMachineName: %s, blockDeviceRef: {kind: VirtualDisk, name: files}}
`, name, namespace, machine))
}

// awaitAttachment waits until an attachment has a phase.
func awaitAttachment(t *testing.T, name, phase string) {
	t.Helper()
	kubectl(t, "wait", "-n", namespace, "vmbda/"+name, "--for=jsonpath={.status.phase}="+phase, "--timeout="+patience.String())
}

// runs waits until a machine runs.
func runs(t *testing.T, machine string) {
	t.Helper()
	kubectl(t, "wait", "-n", namespace, "vm/"+machine, "--for=jsonpath={.status.phase}=Running", "--timeout="+patience.String())
}

// awaitDisks waits until a guest has a disk, or has it no more.
func awaitDisks(t *testing.T, c *tinyguest.Console, disk string, there bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("the guest has %s: %v", disk, there), func() error {
		if got := say(t, c, "disks"); strings.Contains(got, disk) != there {
			return errors.New(got)
		}
		return nil
	})
}

// attachedDisk is what a guest says of vdb.
func attachedDisk(t *testing.T, c *tinyguest.Console) string {
	t.Helper()
	for line := range strings.Lines(say(t, c, "disks")) {
		if strings.HasPrefix(line, "vdb ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// A disk that machines have while they run: one has it, its exporter is killed, and what
// was written is there for the machine that gets it next, whose next pod has the volume
// itself; and for a third one, when that pod has ended.
func TestAttachments(t *testing.T) {
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
	apply(t, strings.Replace(string(manifest), "name: tiny\n", "name: other\n", 1))
	attachment(t, "first", "tiny")
	runs(t, "tiny")
	tiny := console(t, "tiny")
	awaitAttachment(t, "first", "Attached")
	awaitDisks(t, tiny, "vdb 33554432 bytes", true)
	say(t, tiny, fmt.Sprintf("write vdb %d of tiny", dataOffset))
	t.Logf("$ kubectl get vmbda\n%s", kubectl(t, "get", "vmbda", "-n", namespace))
	eventually(t, "the disk says who has it", func() error {
		if got := kubectl(t, "get", "vd", "-n", namespace, "files", "-o", "jsonpath={.status.attachedToVirtualMachines[*].name}"); got != "tiny" {
			return errors.New(got)
		}
		return nil
	})

	// Nobody else gets it.
	attachment(t, "second", "other")
	awaitAttachment(t, "second", "Failed")
	if got := kubectl(t, "get", "vmbda", "-n", namespace, "second", "-o", `jsonpath={.status.conditions[?(@.type=="Attached")].message}`); !strings.Contains(got, "attachment first has the disk, for machine tiny") {
		t.Errorf("the other machine is told: %s", got)
	}

	// The exporter is killed, and the guest waits for its next life.
	key := kubectl(t, "get", "vmbda", "-n", namespace, "first", "-o", "jsonpath={.status.connection.key}")
	if len(key) != 64 {
		t.Fatalf("key %q", key)
	}
	// The pattern is not in the command line of who looks for it.
	pid := strings.Fields(onNode(t, "pgrep", "-f", "^[^ ]*vmop-runner export .*client="+key[:1]+"["+key[1:2]+"]"+key[2:]))
	if len(pid) != 1 {
		t.Fatalf("exporters: %v", pid)
	}
	onNode(t, "kill", "-KILL", pid[0])
	if got := say(t, tiny, fmt.Sprintf("read vdb %d 7", dataOffset)); !strings.Contains(got, "of tiny") {
		t.Errorf("after the exporter was killed the guest reads %s", got)
	}
	say(t, tiny, fmt.Sprintf("write vdb %d and more", dataOffset+512))
	eventually(t, "the exporter was killed", func() error {
		if got := kubectl(t, "get", "pod", "-n", namespace, "first-vmbda", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"); got == "0" {
			return errors.New("it was not restarted")
		}
		return nil
	})

	// It goes to the machine that waits for it.
	kubectl(t, "delete", "vmbda", "-n", namespace, "first", "--wait=true", "--timeout="+patience.String())
	awaitDisks(t, tiny, "vdb", false)
	runs(t, "other")
	other := console(t, "other")
	awaitAttachment(t, "second", "Attached")
	awaitDisks(t, other, "vdb 33554432 bytes", true)
	for offset, want := range map[int]string{dataOffset: "of tiny", dataOffset + 512: "and more"} {
		if got := say(t, other, fmt.Sprintf("read vdb %d 8", offset)); !strings.Contains(got, want) {
			t.Errorf("the other machine reads %s, want %q", got, want)
		}
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")

	// The machine's next pod has the volume itself: the guest finds the same disk when it
	// boots, and there is no exporter.
	was := attachedDisk(t, other)
	before := kubectl(t, "get", "vmbda", "-n", namespace, "second", "-o", "jsonpath={.status.connection.podUID}")
	kubectl(t, "delete", "pod", "-n", namespace, "other", "--wait=true")
	eventually(t, "the next pod has the volume", func() error {
		got := kubectl(t, "get", "vmbda", "-n", namespace, "second", "-o", "jsonpath={.status.phase} {.status.connection.direct} {.status.connection.podUID}")
		if pod, is := strings.CutPrefix(got, "Attached true "); !is || pod == before {
			return errors.New(got)
		}
		return nil
	})
	gone(t, "pod/second-vmbda")
	runs(t, "other")
	other = console(t, "other")
	if got := attachedDisk(t, other); got != was || !strings.Contains(got, "serial second") {
		t.Errorf("the guest has %q, and had %q", got, was)
	}
	for offset, want := range map[int]string{dataOffset: "of tiny", dataOffset + 512: "and more"} {
		if got := say(t, other, fmt.Sprintf("read vdb %d 8", offset)); !strings.Contains(got, want) {
			t.Errorf("after its restart the other machine reads %s, want %q", got, want)
		}
	}
	say(t, other, fmt.Sprintf("write vdb %d directly", dataOffset+1024))
	t.Logf("$ kubectl get vmbda\n%s", kubectl(t, "get", "vmbda", "-n", namespace, "-o", "wide"))

	// It is taken from the guest while its pod has the volume, which nobody else gets before
	// that has ended; the machine itself has it again at once.
	kubectl(t, "delete", "vmbda", "-n", namespace, "second", "--wait=true", "--timeout="+patience.String())
	awaitDisks(t, other, "vdb", false)
	apply(t, strings.Replace(string(manifest), "name: tiny\n", "name: third\n", 1))
	runs(t, "third")
	attachment(t, "third", "third")
	awaitAttachment(t, "third", "Failed")
	if got := kubectl(t, "get", "vmbda", "-n", namespace, "third", "-o", `jsonpath={.status.conditions[?(@.type=="Attached")].message}`); !strings.Contains(got, "restart machine other to free it") {
		t.Errorf("the third machine is told: %s", got)
	}
	kubectl(t, "delete", "vmbda", "-n", namespace, "third", "--wait=true", "--timeout="+patience.String())
	attachment(t, "second", "other")
	awaitAttachment(t, "second", "Attached")
	awaitDisks(t, other, "vdb 33554432 bytes", true)
	if got := say(t, other, fmt.Sprintf("read vdb %d 8", dataOffset+1024)); !strings.Contains(got, "directly") {
		t.Errorf("it reads %s", got)
	}
	kubectl(t, "delete", "vmbda", "-n", namespace, "second", "--wait=true", "--timeout="+patience.String())

	// Its next pod has nothing of the volume, and the third machine gets it.
	attachment(t, "third", "third")
	kubectl(t, "delete", "pod", "-n", namespace, "other", "--wait=true")
	awaitAttachment(t, "third", "Attached")
	third := console(t, "third")
	awaitDisks(t, third, "vdb 33554432 bytes", true)
	if got := say(t, third, fmt.Sprintf("read vdb %d 8", dataOffset+1024)); !strings.Contains(got, "directly") {
		t.Errorf("the third machine reads %s", got)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "other", "--wait=true")

	// A machine that is deleted leaves nothing behind but the disk.
	kubectl(t, "delete", "vm", "-n", namespace, "third", "--wait=true")
	gone(t, "pod/third-vmbda")
	awaitAttachment(t, "third", "Pending")
	kubectl(t, "delete", "vmbda", "-n", namespace, "third", "--wait=true", "--timeout="+patience.String())
	gone(t, "secret/third-vmbda")
	kubectl(t, "delete", "vd", "-n", namespace, "files", "--wait=true", "--timeout="+patience.String())
}
