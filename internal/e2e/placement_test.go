//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// show runs kubectl for the machines of the namespace, and logs what its user types
// and sees.
func show(t *testing.T, args ...string) string {
	t.Helper()
	out := kubectl(t, append(args, "-n", namespace)...)
	t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), out)
	return out
}

// awaitMessage waits until a condition of a machine says something, and logs it.
func awaitMessage(t *testing.T, machine, condition, reason, text string) {
	t.Helper()
	query := `jsonpath={.status.conditions[?(@.type=="` + condition + `")]['reason','message']}`
	var said string
	eventually(t, fmt.Sprintf("the condition %s of %s says %q", condition, machine, text), func() error {
		said = kubectl(t, "get", "vm", "-n", namespace, machine, "-o", query)
		if !strings.HasPrefix(said, reason+" ") || !strings.Contains(said, text) {
			return errors.New(said)
		}
		return nil
	})
	t.Logf("$ kubectl get vm %s -o %s\n%s", machine, query, said)
}

// The walk-through of a machine that waits for a Secret, is reached by a Service that
// was made before, is on no node with another one, and is deleted without its pod and
// made again: its guest goes on and is reported about. The other machine waits for a
// node that has its label, and then for one that has no such machine.
func TestPlacementAndOrphans(t *testing.T) {
	explainOnFailure(t)
	install(t)
	c := told{t, buildCLI(t)}
	manifest, err := os.ReadFile("placed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tiny, other, _ := strings.Cut(strings.ReplaceAll(string(manifest), "COMMANDLINE", tinyguest.CommandLine+" "+tinyguest.WordGuestAgent), "---\n")
	netguestIn(t)

	// It waits for its Secret, and starts by itself.
	apply(t, tiny)
	awaitMessage(t, "tiny", "ProvisioningReady", "ProvisioningNotReady", "does not exist")
	show(t, "get", "vm", "tiny")
	c.run("expose", "tiny", "--port", "80", "--target-port", "8080")
	const secret = "--from-literal=userData=#cloud-config"
	show(t, "create", "secret", "generic", "tiny-init", secret)
	awaitMessage(t, "tiny", "ProvisioningReady", "ProvisioningNotReady", "has another type than vmoperator.jdrupes.org/cloud-init")
	if podUID(t) != "" {
		t.Error("there is a pod without the Secret")
	}
	show(t, "delete", "secret", "tiny-init")
	show(t, "create", "secret", "generic", "tiny-init", "--type=vmoperator.jdrupes.org/cloud-init", secret)
	awaitField(t, "phase", "Running")
	show(t, "get", "vm", "tiny")
	guest := console(t, "tiny")
	say(t, guest, "mount vda /seed")
	if got := say(t, guest, "cat /seed/user-data"); strings.TrimSpace(got) != "#cloud-config" {
		t.Errorf("the guest reads %q", got)
	}

	// The Service leads to the guest.
	netguest(t, guest, "address eth0 192.168.127.15")
	netguest(t, guest, "gateway 192.168.127.2")
	netguest(t, guest, "serve 80")
	// What the program says may follow the prompt: the next command needs another one.
	if err := guest.Send(""); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.Expect(withPatience(t), "> "); err != nil {
		t.Fatal(err)
	}
	visit := func() {
		t.Helper()
		address := kubectl(t, "get", "service", "-n", namespace, "tiny-80", "-o", "jsonpath={.spec.clusterIP}")
		eventually(t, "the guest answers at its Service", func() error {
			// As curl does, which not every host has.
			out, err := theNode.Run(t.Context(), "timeout", "20", "bash", "-c", `exec 3<>/dev/tcp/$0/80 && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && cat <&3`, address)
			if err == nil && !strings.HasSuffix(out, "\r\n\r\nthe guest answers\n") {
				err = fmt.Errorf("%q", out)
			}
			return err
		})
	}
	visit()
	show(t, "get", "endpointslices", "-l", "kubernetes.io/service-name=tiny-80")

	// Another machine waits for a node with its label, and then for one without this
	// machine.
	kubectl(t, "label", "node", "--all", "example.org/rack-")
	apply(t, other)
	awaitMessage(t, "other", "PodReady", "Unschedulable", "didn't match Pod's node affinity/selector")
	kubectl(t, "label", "node", "--all", "example.org/rack=a")
	awaitMessage(t, "other", "PodReady", "Unschedulable", "didn't match pod anti-affinity rules")
	show(t, "get", "vm")

	status := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "yaml")
	t.Logf("of kubectl get vm tiny -o yaml\n%s", regexp.MustCompile(`(?m)^  stats:\n(    .*\n)*`).FindString(status))
	// Labels reach the pod that runs; made again, the machine has the same guest.
	before, boot := podUID(t), say(t, guest, "cat /proc/sys/kernel/random/boot_id")
	kubectl(t, "label", "vm", "-n", namespace, "tiny", "tier=first")
	eventually(t, "the label reaches the pod", func() error {
		if out := kubectl(t, "get", "pod", "-n", namespace, "-l", "tier=first", "-o", "name"); !strings.Contains(out, "pod/tiny") {
			return fmt.Errorf("pods %q", out)
		}
		return nil
	})
	show(t, "delete", "vm", "tiny", "--cascade=orphan")
	if uid := podUID(t); uid != before {
		t.Fatalf("pod %s instead of %s", uid, before)
	}
	apply(t, tiny)
	eventually(t, "the machine has the pod of the former one", func() error {
		owner := kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.ownerReferences[0].uid}")
		if uid := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.uid}"); owner != uid {
			return fmt.Errorf("owner %q, machine %q", owner, uid)
		}
		return nil
	})
	awaitField(t, "phase", "Running")
	if uid := podUID(t); uid != before {
		t.Fatalf("pod %s instead of %s: the machine was restarted", uid, before)
	}
	if now := say(t, guest, "cat /proc/sys/kernel/random/boot_id"); now != boot {
		t.Errorf("the guest was restarted: its boot is %s instead of %s", now, boot)
	}
	show(t, "get", "vm")
	show(t, "get", "events", "--field-selector", "reason=PodAdopted")
	visit()

	// When it is gone, the other one has room.
	show(t, "delete", "vm", "tiny", "--wait=true")
	kubectl(t, "wait", "-n", namespace, "vm/other", "--for=jsonpath={.status.phase}=Running", "--timeout="+patience.String())
	show(t, "get", "vm")
}
