//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop"
)

// netguestIn puts the kernel of the tiny guest, also as firmware starts it, and an initial file system with
// netguest into the machines' image repository.
func netguestIn(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(withPatience(t), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "netguest"), "../netguest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "netguest"))
	if err != nil {
		t.Fatal(err)
	}
	guest, err := testbin.TinyGuest(t).WithFiles(dir, tinyguest.File{Name: "/bin/netguest", Mode: 0o755, Data: program})
	if err != nil {
		t.Fatal(err)
	}
	var volume string
	eventually(t, "the image repository has a volume", func() (err error) {
		volume, err = theNode.Kubectl(t.Context(), "get", "pvc", "-n", namespace, "vmop-image-repository", "-o", "jsonpath={.spec.volumeName}")
		if err == nil && volume == "" {
			err = errors.New("none yet")
		}
		return err
	})
	repository := kubectl(t, "get", "pv", volume, "-o", "jsonpath={.spec.local.path}")
	for name, from := range map[string]string{"vmlinux": guest.Kernel, "vmlinuz": guest.BzImage, "initrd.cpio": guest.Initrd} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(repository, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// onNode runs a command in the node's namespaces.
func onNode(t *testing.T, args ...string) string {
	t.Helper()
	out, err := theNode.Run(withPatience(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tapMachine is the n-th machine of tap.yaml. Its display has no secret: one that
// was rendered has no password, for which a pod would wait.
func tapMachine(t *testing.T, n int) *vmop.VirtualMachine {
	t.Helper()
	data, err := os.ReadFile("tap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("NAME", fmt.Sprintf("tap%d", n), "COMMANDLINE", tinyguest.CommandLine, ":0N", fmt.Sprintf(":0%d", n), "590N", fmt.Sprintf("590%d", n)).Replace(string(data))
	file := filepath.Join(t.TempDir(), "tap.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return machine(t, file, nil)
}

// netguest runs a command of netguest in a machine.
func netguest(t *testing.T, c *tinyguest.Console, args string) string {
	t.Helper()
	if err := c.Send("exec /bin/netguest " + args); err != nil {
		t.Fatal(err)
	}
	var said [2]string
	for i, end := range []string{"netguest: ", "\n"} {
		var err error
		if said[i], err = c.Expect(withPatience(t), end); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(said[1], "done") {
		t.Errorf("netguest %s: %s", args, said[1])
	}
	return said[0]
}

// Machines with tap networks run in pods: what makes their interfaces on the
// node's bridge has ended before, and neither the runner nor QEMU has a
// capability. They reach the node and each other, and leave nothing behind.
func TestTapInPods(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	// The pods are in the node's network, which only this level admits.
	kubectl(t, "label", "namespace", namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	netguestIn(t)

	// Without a bridge the pod says so.
	applyObjects(t, tapMachine(t, 1), nil)
	eventually(t, "the pod says that there is no bridge", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "pod", "-n", namespace, "tap1", "-o", "jsonpath={.status.phase} {.status.initContainerStatuses[0].state.terminated.message}")
		if err == nil && (!strings.HasPrefix(out, "Failed") || !strings.Contains(out, "interface br0: no such device")) {
			err = errors.New(out)
		}
		return err
	})
	kubectl(t, "delete", "pod", "-n", namespace, "tap1", "--wait=true")

	const size = 1400
	for _, line := range []string{"link add br0 type bridge", fmt.Sprintf("link set br0 mtu %d up", size), "addr add 10.77.0.1/24 dev br0"} {
		onNode(t, append([]string{"ip"}, strings.Fields(line)...)...)
	}
	t.Cleanup(func() { onNode(t, "ip", "link", "del", "br0") })
	consoles := map[int]*tinyguest.Console{}
	for n := 1; n <= 2; n++ {
		applyObjects(t, tapMachine(t, n), nil)
		kubectl(t, "wait", "-n", namespace, fmt.Sprintf("pod/tap%d", n), "--for=condition=Ready", "--timeout="+patience.String())
		consoles[n] = console(t, fmt.Sprintf("tap%d", n))
		netguest(t, consoles[n], fmt.Sprintf("address eth0 10.77.0.1%d", n))
	}
	links := onNode(t, "ip", "-o", "link", "show", "master", "br0")
	t.Logf("the ports of the bridge:\n%s", links)
	if got := strings.Count(links, "\n"); got != 2 || strings.Count(links, fmt.Sprintf("mtu %d", size)) != 2 {
		t.Errorf("%d ports of the bridge", got)
	}
	for n, c := range consoles {
		if got, want := netguest(t, c, "mtu eth0"), fmt.Sprintf("mtu %d mac 52:54:00:00:00:0%d", size, n); !strings.Contains(got, want) {
			t.Errorf("machine %d: %s, want %s", n, got, want)
		}
		for _, address := range []string{"10.77.0.1", fmt.Sprintf("10.77.0.1%d", 3-n)} {
			netguest(t, c, fmt.Sprintf("reach %s %d", address, size-28))
		}
	}
	checkNoPrivileges(t)
	kubectl(t, "delete", "pod", "-n", namespace, "tap1", "--wait=true")
	kubectl(t, "delete", "pod", "-n", namespace, "tap2", "--grace-period=1", "--wait=true")
	eventually(t, "the bridge has no ports", func() error {
		out, err := theNode.Run(t.Context(), "ip", "-o", "link", "show", "master", "br0")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
}

// checkNoPrivileges looks at the capabilities of what runs in the machines' pods.
func checkNoPrivileges(t *testing.T) {
	t.Helper()
	found := 0
	for _, file := range strings.Fields(onNode(t, "sh", "-c", "grep -lE '^Name:.(qemu-system|vmop-runner)' /proc/[0-9]*/status")) {
		status := onNode(t, "cat", file)
		found++
		for _, want := range []string{"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Uid:\t65532\t65532"} {
			if !strings.Contains(status, want) {
				t.Errorf("%s has no %q:\n%s", file, want, status)
			}
		}
	}
	if found < 4 { // and those that show the consoles
		t.Errorf("%d processes of two machines", found)
	}
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(kubectl(t, "get", "pod", "-n", namespace, "tap1", "-o", "json")), &pod); err != nil {
		t.Fatal(err)
	}
	if s := pod.Status.InitContainerStatuses; len(s) != 1 || s[0].State.Terminated == nil || s[0].State.Terminated.ExitCode != 0 {
		t.Errorf("the container that makes interfaces: %+v", s)
	}
}
