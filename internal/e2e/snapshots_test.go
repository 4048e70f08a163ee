//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/node"
	"github.com/vmop/sdk/internal/tinyguest"
)

// With a driver of CSI disks are cloned by it, and restored from snapshots that it has made
// of what guests wrote. A cluster without snapshots gets them later.
func TestDisksOfSnapshots(t *testing.T) {
	explainOnFailure(t)
	install(t)
	dir := t.TempDir()
	content := make([]byte, 16<<20)
	copy(content[dataOffset:], "of the image")
	if err := os.WriteFile(filepath.Join(dir, "data.img"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	address := serveImages(t, dir)
	disk := func(name, size, claim, source string) string {
		return fmt.Sprintf("---\napiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualDisk\nmetadata: {name: %s, namespace: %s}\nspec: {persistentVolumeClaim: {size: %s%s}%s}\n", name, namespace, size, claim, source)
	}
	becomes := func(name, phase, says string) {
		t.Helper()
		eventually(t, "disk "+name+" is "+phase, func() error {
			got := kubectl(t, "get", "vd", "-n", namespace, name, "-o", `jsonpath={.status.phase} {.status.conditions[?(@.type=="Ready")].message}`)
			if !strings.HasPrefix(got, phase+" ") || !strings.Contains(got, says) {
				return errors.New(got)
			}
			return nil
		})
	}
	of := func(kind, name string) string {
		return fmt.Sprintf(", dataSource: {type: ObjectRef, objectRef: {kind: %s, name: %s}}", kind, name)
	}
	const ours, block = ", storageClassName: " + node.CSIDriver, ", volumeMode: Block"
	apply(t, disk("file-back", "32Mi", ours, of("VolumeSnapshot", "of-file")))
	becomes("file-back", "Pending", "the cluster has no definitions of snapshots")
	if err := theNode.StartCSI(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	becomes("file-back", "Pending", "does not exist: create it")

	apply(t, disk("file", "24Mi", ours, fmt.Sprintf(`, dataSource: {type: HTTP, http: {url: "http://%s/data.img"}}`, address))+
		disk("device", "24Mi", ours+block, "")+
		disk("clone", "32Mi", ours, of("VirtualDisk", "file")))
	for _, name := range []string{"file", "device", "clone"} {
		becomes(name, "Ready", "")
	}
	if got := kubectl(t, "get", "pvc", "-n", namespace, "clone-vd", "-o", `jsonpath={.spec.dataSource.name} {.metadata.annotations.vmoperator\.jdrupes\.org/cloned}`); got != "file-vd true" {
		t.Errorf("the clone is one of %q", got)
	}

	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	runs := func(disks ...string) *tinyguest.Console {
		t.Helper()
		refs := ""
		for _, name := range disks {
			refs += "  - {kind: VirtualDisk, name: " + name + "}\n"
		}
		apply(t, strings.Replace(string(manifest), "  vm:\n", "  blockDeviceRefs:\n"+refs+"  vm:\n", 1))
		awaitLog(t, tinyguest.Ready)
		return console(t, "tiny")
	}
	stops := func() {
		t.Helper()
		kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
		gone(t, "pod/tiny")
	}
	c := runs("file", "device")
	for i, text := range []string{"of the guest", "on a device."} {
		say(t, c, fmt.Sprintf("write vd%c %d %s", 'b'+i, dataOffset, text))
	}
	// They are made while the guest has the disks, as after a power cut.
	for _, name := range []string{"file", "device"} {
		apply(t, fmt.Sprintf("apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: of-%[1]s, namespace: %[2]s}\nspec: {volumeSnapshotClassName: %[3]s, source: {persistentVolumeClaimName: %[1]s-vd}}\n", name, namespace, node.CSIDriver))
		kubectl(t, "wait", "-n", namespace, "volumesnapshot/of-"+name, "--for=jsonpath={.status.readyToUse}=true", "--timeout="+patience.String())
	}
	stops()

	apply(t, disk("device-back", "24Mi", ours+block, of("VolumeSnapshot", "of-device"))+
		disk("small", "16Mi", ours, of("VolumeSnapshot", "of-file"))+
		disk("of-another-mode", "24Mi", ours+block, of("VolumeSnapshot", "of-file"))+
		disk("of-another-driver", "24Mi", ", storageClassName: local", of("VolumeSnapshot", "of-file")))
	becomes("file-back", "Ready", "")
	becomes("device-back", "Ready", "")
	becomes("small", "Failed", "needs a volume of 24Mi, and this disk asks for 16Mi")
	becomes("of-another-mode", "Failed", "is one of a volume with volumeMode Filesystem")
	becomes("of-another-driver", "Failed", "is of driver csi.vmop.test, and claim of-another-driver-vd asks vmop.test/local, which cannot restore it")
	t.Log(kubectl(t, "get", "vd", "-n", namespace, "-o", "wide"))
	// What was restored needs neither the snapshots nor what those were of.
	kubectl(t, "delete", "volumesnapshot", "-n", namespace, "--all", "--wait=true")
	kubectl(t, "delete", "vd", "-n", namespace, "file", "device", "--wait=true")

	c = runs("file-back", "device-back", "clone")
	t.Log(say(t, c, "disks"))
	if got := say(t, c, "disks"); !strings.Contains(got, "vdb 33554432 bytes") {
		t.Errorf("the restored disk has not grown: %s", got)
	}
	for i, want := range []string{"of the guest", "on a device.", "of the image"} {
		if got := say(t, c, fmt.Sprintf("read vd%c %d 12", 'b'+i, dataOffset)); !strings.Contains(got, want) {
			t.Errorf("vd%c has %s, want %q", 'b'+i, got, want)
		}
	}
	stops()
	kubectl(t, "delete", "vd", "-n", namespace, "--all", "--wait=true")
	for _, name := range []string{"file-back", "device-back", "clone", "of-another-driver"} {
		gone(t, "pvc/"+name+"-vd")
	}
}
