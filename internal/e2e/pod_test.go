//go:build e2e

package e2e

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/node"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// applyObjects applies what a machine comes to, all or what is chosen, with a
// display password, which only the operator makes.
func applyObjects(t *testing.T, vm *vmop.VirtualMachine, choose func(reconcile.Object) bool) {
	t.Helper()
	applyWith(t, vm, vmop.RenderOptions{}, choose)
}

// applyWith is applyObjects with settings.
func applyWith(t *testing.T, vm *vmop.VirtualMachine, o vmop.RenderOptions, choose func(reconcile.Object) bool) {
	t.Helper()
	rendered, err := vmop.Render(vm, o)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []reconcile.Object
	for _, o := range rendered.Objects {
		if secret, is := o.(*corev1.Secret); is {
			secret.StringData[names.PasswordKey] = "rendered"
		}
		if choose == nil || choose(o) {
			items = append(items, o)
		}
	}
	list["items"] = items
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, string(data))
}

func isConfigMap(o reconcile.Object) bool { _, is := o.(*corev1.ConfigMap); return is }

// The objects of a machine, as they are rendered, are a machine on a real node
// also without an operator: without privileges it boots from its volume, follows
// its configuration, and says why it ended.
func TestObjectsRunAMachine(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	vm := machine(t, "machine.yaml", nil)
	applyObjects(t, vm, nil)
	awaitLog(t, tinyguest.Ready)

	c := console(t, "tiny")
	if got := say(t, c, "disks"); !strings.Contains(got, "67108864 bytes") || !strings.Contains(got, "system-disk") {
		t.Errorf("the guest's disks: %s", got)
	}
	if got := say(t, c, "efi"); !strings.Contains(got, "efi") {
		t.Errorf("the guest's firmware: %s", got)
	}
	changed := machine(t, "machine.yaml", func(vm *vmop.VirtualMachine) { two := int32(2); vm.Spec.VM.CurrentCPUs = &two })
	applyObjects(t, changed, isConfigMap)
	kubectl(t, "annotate", "pod", "-n", namespace, "tiny", names.AnnotationConfigVersion+"=2")
	if _, err := c.Expect(withPatience(t), "cpu 1 online"); err != nil {
		t.Error(err)
	}

	if got := say(t, c, "cpus"); !strings.Contains(got, "online 0-1") {
		t.Errorf("the guest's CPUs: %s", got)
	}
	if err := c.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod succeeds", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.message}")
		if err == nil && (!strings.HasPrefix(out, "Succeeded") || !strings.Contains(out, "guest-shutdown")) {
			err = errors.New(out)
		}
		return err
	})
}

// What a machine may have beside a disk works in a pod without privileges too.
func TestOptionsInAPod(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	// Somebody has put a CD into the image repository, and a file into the folder.
	repository := folderOf(t, "vmop-image-repository")
	folder := sharedFolder(t)
	cd := make([]byte, 1<<20)
	copy(cd[32<<10:], "\x01CD001\x01") // where an ISO 9660 file system says so
	if err := os.WriteFile(filepath.Join(repository, "tools.iso"), cd, 0o644); err != nil {
		t.Fatal(err)
	}
	addGenericGuest(t)
	applyObjects(t, machine(t, "options.yaml", nil), nil)
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	disks := say(t, c, "disks")
	for _, want := range []string{"67108864 bytes", "33554432 bytes", "data-disk"} {
		if !strings.Contains(disks, want) {
			t.Errorf("no %q among the guest's disks:\n%s", want, disks)
		}
	}
	if got := say(t, c, "tpm"); !strings.Contains(got, "2") {
		t.Errorf("the guest's TPM: %s", got)
	}
	checkShares(t, c, folder, "9p", "trans=virtio,version=9p2000.L,msize=262144")
	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
}

// A virtiofsd that needs no root serves a folder in a pod, as the pod's user and beside
// the runner: the image of the newer distribution has one.
func TestVirtioFSInAPod(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	if err := theNode.ImportArchive(withPatience(t), archive(newRunnerImage)); err != nil {
		t.Fatal(err)
	}
	folder := sharedFolder(t)
	addGenericGuest(t)
	applyObjects(t, machine(t, "options.yaml", func(vm *vmop.VirtualMachine) {
		vm.Spec.Image.Source = newRunnerImage
		vm.Spec.VM.Shares = []spec.Share{
			{Tag: "src", PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "folder"}},
			{Tag: "docs", PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "folder"}, ReadOnly: true},
		}
		vm.Spec.VM.Disks = vm.Spec.VM.Disks[:1]
		// An emulating QEMU 10.0 with somebody to draw for hangs now and then when the guest's
		// driver resets virtio-gpu: the processor waits for the main loop, and it for the processor.
		vm.Spec.VM.Display = &spec.Display{}
	}), nil)
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	checkShares(t, c, folder, "virtiofs", "rw")
	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
}

// sharedFolder is the folder of a claim of that name, in which there is a file.
func sharedFolder(t *testing.T) string {
	t.Helper()
	apply(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: machines, name: folder}
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 1Mi}}
`)
	folder := folderOf(t, "folder")
	if err := os.WriteFile(filepath.Join(folder, "hello"), []byte("of the cluster"), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

// checkShares has the guest mount the folder twice: both sides see what the other has
// written into it, and by docs it is only read.
func checkShares(t *testing.T, c *tinyguest.Console, folder, fileSystem, options string) {
	t.Helper()
	for _, tag := range []string{"src", "docs"} {
		say(t, c, "share "+fileSystem+" "+tag+" /"+tag+" "+options)
		if got := say(t, c, "cat /"+tag+"/hello"); !strings.Contains(got, "of the cluster") {
			t.Errorf("the guest reads %q in the share %s", got, tag)
		}
	}
	say(t, c, "store /src/"+fileSystem+" "+hex.EncodeToString([]byte("of the guest")))
	if got, err := os.ReadFile(filepath.Join(folder, fileSystem)); err != nil || string(got) != "of the guest" {
		t.Errorf("the guest wrote %q, %v", got, err)
	}
	if got, err := c.Command(withPatience(t), "store /docs/"+fileSystem+" 00"); err == nil {
		t.Errorf("the guest writes to a share for reading only: %s", got)
	}
}

// addGenericGuest adds the storage class of a guest with the kernel that has drivers for
// folders; that of clouds, which the other machines have, has none.
func addGenericGuest(t *testing.T) {
	t.Helper()
	disk := filepath.Join(scratch, "generic.img")
	if _, err := os.Stat(disk); err == nil {
		return // another test has
	}
	if err := testbin.GenericTinyGuest(t).WriteDisk(withPatience(t), disk); err != nil {
		t.Fatal(err)
	}
	if err := theNode.AddStorageClass(withPatience(t), node.StorageClass{Name: "generic-guest", Image: disk}); err != nil {
		t.Fatal(err)
	}
}

// folderOf is the folder of the node that a claim has.
func folderOf(t *testing.T, claim string) string {
	t.Helper()
	var volume string
	eventually(t, "the claim "+claim+" has a volume", func() (err error) {
		volume, err = theNode.Kubectl(t.Context(), "get", "pvc", "-n", namespace, claim, "-o", "jsonpath={.spec.volumeName}")
		if err == nil && volume == "" {
			err = errors.New("none yet")
		}
		return err
	})
	return kubectl(t, "get", "pv", volume, "-o", "jsonpath={.spec.local.path}")
}

// A node that leaves devices to root is not a riddle: the pod says what to set.
func TestRootOwnedDevices(t *testing.T) {
	n, err := node.Start(t.Context(), node.Options{Progress: os.Stderr, RootDevices: true})
	if err != nil {
		t.Fatal(err)
	}
	usual := theNode
	theNode = n
	t.Cleanup(func() {
		theNode = usual
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	prepare(t)
	applyObjects(t, machine(t, "machine.yaml", nil), nil)
	eventually(t, "the pod fails", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.message}")
		if err == nil && (!strings.HasPrefix(out, "Failed") || !strings.Contains(out, "device_ownership_from_security_context = true")) {
			err = errors.New(out)
		}
		return err
	})
}

// awaitLog waits until the pod's log has a text, and fails when the pod has ended
// without it.
func awaitLog(t *testing.T, text string) {
	t.Helper()
	ended := false
	eventually(t, "the log of the machine's pod", func() error {
		out, err := theNode.Kubectl(t.Context(), "logs", "-n", namespace, "tiny")
		if err != nil || strings.Contains(out, text) {
			return err
		}
		if ended {
			t.Fatalf("the pod ended; its log:\n%s", out)
		}
		phase, err := theNode.Kubectl(t.Context(), "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.status.phase}")
		ended = err == nil && (phase == "Failed" || phase == "Succeeded")
		return fmt.Errorf("%q is not in\n%s", text, out)
	})
}
