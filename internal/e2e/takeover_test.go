//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// formerUUID is the machine's from under VM-Operator.
const formerUUID = "4a5c5f0c-9a52-4a0b-8f0e-1d9c4a7b6e21"

// formerData makes the files that VM-Operator's runner, which is root, leaves on the
// volumes of a machine.
func formerData(t *testing.T) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	data, disk := filepath.Join(dir, "data"), filepath.Join(dir, "disk")
	for _, d := range []string{data, disk} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	vars, err := os.ReadFile(qemucmd.GenericHost().Firmware[0].Vars)
	if err != nil {
		t.Fatal(err)
	}
	image := make([]byte, 64<<20)
	copy(image[guestOffset:], "written under VM-Operator")
	for path, content := range map[string][]byte{
		data + "/uuid.txt": []byte(formerUUID + "\n"), data + "/fw-vars.fd": vars, disk + "/disk.img": image,
	} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	// A TPM that was started once.
	ctx := withPatience(t)
	swtpm := exec.CommandContext(ctx, "swtpm", "socket", "--tpm2", "--tpmstate", "dir="+data, "--ctrl", "type=unixio,path="+filepath.Join(dir, "tpm"), "--flags", "not-need-init,startup-clear")
	if err := swtpm.Start(); err != nil {
		t.Fatal(err)
	}
	state := data + "/tpm2-00.permall"
	eventually(t, "the TPM has a state", func() error { _, err := os.Stat(state); return err })
	_ = swtpm.Process.Signal(syscall.SIGTERM)
	_ = swtpm.Wait()
	for _, path := range append(files, data, disk, state) {
		if got := owner(t, path); got != 0 {
			t.Fatalf("%s is user %d's", path, got)
		}
	}
	return dir, append(files, state, data, disk)
}

func owner(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// A machine of VM-Operator's with a tap network, on volumes that are root's, is
// taken over: it boots with its UUID, its UEFI variables, its TPM and its disk, and
// reaches what is on the bridge. Without the setting it says what there is to do; and
// root has no part in its later starts.
func TestTakeOver(t *testing.T) {
	explainOnFailure(t)
	prepareNode(t)
	onNode(t, "ip", "link", "add", "br0", "type", "bridge")
	t.Cleanup(func() { onNode(t, "ip", "link", "del", "br0") })
	onNode(t, "ip", "link", "set", "br0", "up")
	onNode(t, "ip", "addr", "add", "10.77.0.1/24", "dev", "br0")
	dir, files := formerData(t)
	kubectl(t, "apply", "-k", filepath.Join("..", "..", "deploy", "access"))
	kubectl(t, "apply", "-k", filepath.Join("..", "..", "deploy", "definitions"))
	kubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout="+patience.String())
	manifest, err := os.ReadFile("former.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, strings.NewReplacer("DIRECTORY", dir, "COMMANDLINE", tinyguest.CommandLine).Replace(string(manifest)))
	t.Cleanup(func() {
		kubectl(t, "delete", "namespace", namespace, "--wait=true")
		kubectl(t, "delete", "pv", "former-runner-data", "former-system-disk")
	})
	netguestIn(t)
	install := func(more string) {
		t.Helper()
		kustomize(t, fmt.Sprintf(`
namespace: machines
resources: [DEPLOY/takeover]
images:
- {name: ghcr.io/vmop/operator, newName: vmop.test/operator, newTag: "1"}
configMapGenerator:
- name: vmop-operator-settings
  namespace: qemu-vms # that of deploy/takeover
  behavior: merge
  literals: [VMOP_RUNNER_IMAGE=vmop.test/runner:1, VMOP_RUNNER_PULL_POLICY=Never%s]
`, more))
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, err := theNode.Kubectl(context.Background(), "logs", "-n", namespace, "deployment/vmop-operator", "--tail=200")
			t.Logf("the operator: %v\n%s", err, out)
		}
	})

	install(", VMOP_TAKE_OVER_DATA=false")
	eventually(t, "the machine says what there is to do", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "vm", "-n", namespace, "former", "-o", `jsonpath={.status.conditions[?(@.type=="PodReady")].message}`)
		if err == nil && (!strings.Contains(out, fmt.Sprintf("chown %d:%[1]d %s", objects.RunnerUser, filepath.Join(dir, "data"))) || !strings.Contains(out, "VMOP_TAKE_OVER_DATA=true")) {
			err = errors.New(out)
		}
		return err
	})
	t.Logf("without the setting:\n%s", kubectl(t, "get", "vm", "-n", namespace, "former", "-o", `jsonpath={.status.conditions[?(@.type=="PodReady")].message}`))

	install("") // as deploy/takeover has it
	awaitInitContainers(t, objects.TakeOverContainer+" "+objects.TapContainer)
	kubectl(t, "wait", "-n", namespace, "pod/former", "--for=condition=Ready", "--timeout="+patience.String())
	c := console(t, "former")
	for command, want := range map[string]string{
		"efi": "efi", "tpm": "2", fmt.Sprintf("read vda %d 25", guestOffset): "written under VM-Operator",
	} {
		if got := say(t, c, command); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	say(t, c, fmt.Sprintf("write vda %d written under vmop....... ", guestOffset))
	netguest(t, c, "address eth0 10.77.0.11")
	netguest(t, c, "reach 10.77.0.1 1000")
	if got := netguest(t, c, "mtu eth0"); !strings.Contains(got, "mac 52:54:00:12:34:56") { // QEMU's default
		t.Errorf("the guest's interface: %s", got)
	}
	for _, path := range files {
		if got := owner(t, path); got != objects.RunnerUser {
			t.Errorf("%s is user %d's", path, got)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "data", "uuid.txt")); err != nil || strings.TrimSpace(string(data)) != formerUUID {
		t.Errorf("the UUID is %s, %v", data, err)
	}
	_ = c.Close()
	eventually(t, "the operator remembers it", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "configmap", "-n", namespace, "former", "-o", "yaml")
		if err == nil && !strings.Contains(out, fmt.Sprintf("%s: %q", names.AnnotationDataOwner, fmt.Sprint(objects.RunnerUser))) {
			err = errors.New(out)
		}
		return err
	})

	begin := time.Now()
	kubectl(t, "patch", "vm", "-n", namespace, "former", "--type=merge", "-p", `{"spec":{"vm":{"state":"Stopped"}}}`)
	gone(t, "pod/former")
	kubectl(t, "patch", "vm", "-n", namespace, "former", "--type=merge", "-p", `{"spec":{"vm":{"state":"Running"}}}`)
	awaitInitContainers(t, objects.TapContainer)
	kubectl(t, "wait", "-n", namespace, "pod/former", "--for=condition=Ready", "--timeout="+patience.String())
	c = console(t, "former")
	t.Logf("the second start took %s", time.Since(begin))
	if got := say(t, c, fmt.Sprintf("read vda %d 25", guestOffset)); !strings.Contains(got, "written under vmop") {
		t.Errorf("the disk: %s", got)
	}
	_ = c.Close()
	kubectl(t, "delete", "vm", "-n", namespace, "former", "--wait=true")
}

// awaitInitContainers waits until the pod of the machine has been made with these
// containers before its runner.
func awaitInitContainers(t *testing.T, want string) {
	t.Helper()
	eventually(t, "the machine's pod has the containers "+want, func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "pod", "-n", namespace, "former", "-o", "jsonpath={.spec.initContainers[*].name}")
		if err == nil && out != want {
			err = errors.New(out)
		}
		return err
	})
}
