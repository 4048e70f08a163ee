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
	t.Logf("$ kubectl %s\n%s", typed(args), out)
	return out
}

// typed is what a user types in a shell for these arguments.
func typed(args []string) string {
	var words []string
	for _, arg := range args {
		if name, value, is := strings.Cut(arg, "={"); is { // as people write it
			arg = name + "='{" + value + "'"
		} else if strings.ContainsAny(arg, " {[\"") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// awaitMessage waits until a condition of a machine says something, and logs it.
func awaitMessage(t *testing.T, machine, condition, reason, text string) {
	t.Helper()
	query := func(field string) string {
		return `jsonpath={.status.conditions[?(@.type=="` + condition + `")].` + field + `}`
	}
	var said string
	eventually(t, fmt.Sprintf("the condition %s of %s says %q", condition, machine, text), func() error {
		said = kubectl(t, "get", "vm", "-n", namespace, machine, "-o", query("message"))
		if why := kubectl(t, "get", "vm", "-n", namespace, machine, "-o", query("reason")); why != reason || !strings.Contains(said, text) {
			return errors.New(why + ": " + said)
		}
		return nil
	})
	t.Logf("$ kubectl get vm %s -o %s\n%s", machine, typed([]string{query("message")}), said)
}

// cell is what kubectl printed in a column of the first row of a table.
func cell(t *testing.T, table, column string) string {
	t.Helper()
	head, rows, _ := strings.Cut(table, "\n")
	row, _, _ := strings.Cut(rows, "\n")
	from := strings.Index(head, column)
	if from < 0 || len(row) < from {
		t.Fatalf("no column %s in\n%s", column, table)
	}
	width := len(column) + len(head[from+len(column):]) - len(strings.TrimLeft(head[from+len(column):], " "))
	return strings.TrimSpace(row[from:min(from+width, len(row))])
}

// needsRestart holds the column for changes that wait against what it is to say.
func needsRestart(t *testing.T, want string) {
	t.Helper()
	if got := cell(t, show(t, "get", "vm", "tiny", "-o", "wide"), "NEED RESTART"); got != want {
		t.Errorf("NEED RESTART is %q, want %q", got, want)
	}
}

// The walk-through of a machine that waits for a Secret, is reached by a Service that
// was made before, is on no node with another one, and is deleted without its pod and
// made again: its guest goes on and is reported about. The other machine waits for a
// node that has its label, and then for one that has no such machine; a third one for
// a node by its affinity, for a place that its spreading allows, and for a machine
// beside it. The Secret gets another content, which waits for the pod to be deleted.
func TestPlacementAndOrphans(t *testing.T) {
	explainOnFailure(t)
	install(t)
	c := told{t, buildCLI(t)}
	manifest, err := os.ReadFile("placed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := strings.Split(strings.ReplaceAll(string(manifest), "COMMANDLINE", tinyguest.CommandLine+" "+tinyguest.WordGuestAgent), "---\n")
	tiny, other, beside := manifests[0], manifests[1], manifests[2]
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
	show(t, "get", "--raw", "/api/v1/namespaces/"+namespace+"/services/tiny-80:80/proxy/")

	// Another machine waits for a node with its label, and then for one without this
	// machine; a third one for what its affinity and its spreading ask for.
	kubectl(t, "label", "node", "--all", "example.org/rack-")
	apply(t, other)
	apply(t, beside)
	awaitMessage(t, "other", "PodReady", "Unschedulable", "didn't match Pod's node affinity/selector")
	awaitMessage(t, "beside", "PodReady", "Unschedulable", "didn't match Pod's node affinity/selector")
	show(t, "label", "node", "--all", "example.org/rack=a")
	awaitMessage(t, "other", "PodReady", "Unschedulable", "didn't match pod anti-affinity rules")
	awaitMessage(t, "beside", "PodReady", "Unschedulable", "didn't match pod topology spread constraints")
	show(t, "patch", "vm", "beside", "--type=json", "-p", `[{"op":"replace","path":"/spec/topologySpreadConstraints/0/maxSkew","value":2}]`)
	awaitMessage(t, "beside", "PodReady", "Unschedulable", "didn't match pod affinity rules")
	show(t, "get", "vm")

	status := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "yaml")
	t.Logf("of kubectl get vm tiny -o yaml\n%s", regexp.MustCompile(`(?m)^  stats:\n(    .*\n)*`).FindString(status))
	// A label reaches the pod that runs, and the third machine is where it is. With the
	// label the kubelet looks at the Secret, too.
	before, boot := podUID(t), say(t, guest, "cat /proc/sys/kernel/random/boot_id")
	const renamed = "hostname: another-name"
	show(t, "patch", "secret", "tiny-init", "-p", `{"stringData":{"userData":"#cloud-config\n`+renamed+`"}}`)
	show(t, "label", "vm", "tiny", "role=cache")
	eventually(t, "the label reaches the pod", func() error {
		if out := kubectl(t, "get", "pod", "-n", namespace, "-l", "role=cache", "-o", "name"); !strings.Contains(out, "pod/tiny") {
			return fmt.Errorf("pods %q", out)
		}
		return nil
	})
	kubectl(t, "wait", "-n", namespace, "vm/beside", "--for=jsonpath={.status.phase}=Running", "--timeout="+patience.String())
	show(t, "get", "vm")
	show(t, "get", "pod", "beside", "-o", "jsonpath={.spec.affinity}")
	show(t, "get", "pod", "beside", "-o", "jsonpath={.spec.topologySpreadConstraints}")
	console(t, "beside") // its guest reacts
	kubectl(t, "delete", "vm", "-n", namespace, "beside", "--wait=true")

	// The Secret's content waits for a restart, and is shown to nobody.
	awaitCondition(t, "AwaitingRestartToApplyConfiguration")
	needsRestart(t, "True")
	if out := c.run("changes", "tiny"); !strings.Contains(out, "spec.provisioning.userDataRef") {
		t.Error("the change is not shown")
	}
	for _, args := range [][]string{{"get", "vm,configmap,pod,event", "-o", "yaml"}, {"logs", "tiny"}} {
		if out := kubectl(t, append(args, "-n", namespace)...); strings.Contains(out, renamed) {
			t.Errorf("kubectl %s shows the Secret:\n%s", strings.Join(args, " "), out)
		}
	}

	// Made again, the machine has the same guest.
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

	// Whoever deletes its pod restarts it, and it has what waited.
	awaitCondition(t, "AwaitingRestartToApplyConfiguration")
	run := func(policy string) {
		t.Helper()
		kubectl(t, "patch", "vm", "-n", namespace, "other", "--type=merge", "-p", `{"spec":{"runPolicy":"`+policy+`"}}`)
	}
	run("AlwaysOff") // it waits for this pod's place
	gone(t, "pod/other")
	show(t, "delete", "pod", "tiny")
	awaitOtherPod(t, before)
	awaitCondition(t, "AwaitingRestartToApplyConfiguration=false")
	needsRestart(t, "False")
	guest = console(t, "tiny")
	say(t, guest, "mount vda /seed")
	if got := say(t, guest, "cat /seed/user-data"); !strings.Contains(got, renamed) {
		t.Errorf("the guest reads %q", got)
	}

	// When it is gone, the other one has room.
	run("AlwaysOnUnlessStoppedManually")
	awaitMessage(t, "other", "PodReady", "Unschedulable", "didn't match pod anti-affinity rules")
	show(t, "delete", "vm", "tiny", "--wait=true")
	kubectl(t, "wait", "-n", namespace, "vm/other", "--for=jsonpath={.status.phase}=Running", "--timeout="+patience.String())
	show(t, "get", "vm")
}
