//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// Images are fetched once: a disk is made of one, without the server, and a machine has
// it beside two images that it only reads, as a disk and in a CD drive. An image is kept
// while the machine has it.
func TestVirtualImages(t *testing.T) {
	explainOnFailure(t)
	install(t)
	dir := t.TempDir()
	system, data, packed, disc := filepath.Join(dir, "system.img"), filepath.Join(dir, "data.img"), filepath.Join(dir, "data.qcow2"), filepath.Join(dir, "setup")
	if err := testbin.GenericTinyGuest(t).WriteDisk(withPatience(t), system); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 16<<20)
	copy(content[dataOffset:], "of the image")
	// The descriptors of a CD are in its sectors from 16 on.
	iso := make([]byte, 2<<20)
	copy(iso[16*2048:], "\x01CD001\x01")
	copy(iso[dataOffset:], "of the disc")
	for path, content := range map[string][]byte{data: content, disc: iso} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for format, to := range map[string]string{"qcow2": packed, "vmdk": filepath.Join(dir, "data.vmdk"), "vdi": filepath.Join(dir, "data.vdi")} {
		if out, err := exec.CommandContext(withPatience(t), "qemu-img", "convert", "-f", "raw", "-O", format, data, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\nqemu-img is installed by \"make deps-e2e\"", err, out)
		}
	}
	address := serveImages(t, dir)
	image := address + "/disks/tiny:1"
	pushDisk(t, image, system)
	for name, file := range map[string]string{"golden": "data.qcow2", "setup": "setup", "foreign": "data.vmdk"} {
		apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualImage
metadata: {name: %s, namespace: %s}
spec:
  persistentVolumeClaim: {size: 16Mi, storageClassName: local}
  dataSource: {type: HTTP, http: {url: "http://%s/%s"}}
`, name, namespace, address, file))
	}
	for name, want := range map[string]string{"golden": "Ready qcow2 16Mi", "setup": "Ready iso 2Mi", "foreign": "Ready qcow2 16Mi"} {
		eventually(t, "image "+name+" is there", func() error {
			if got := kubectl(t, "get", "vi", "-n", namespace, name, "-o", "jsonpath={.status.phase} {.status.format} {.status.size}"); got != want {
				return errors.New(got)
			}
			return nil
		})
	}
	t.Log(kubectl(t, "get", "vi", "-n", namespace))
	// What they are copies of is not needed again.
	for _, path := range []string{packed, disc} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: files, namespace: %s}
spec:
  persistentVolumeClaim: {size: 32Mi, storageClassName: local}
  dataSource: {type: ObjectRef, objectRef: {kind: VirtualImage, name: golden}}
---
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: foreign, namespace: %[1]s}
spec:
  persistentVolumeClaim: {size: 16Mi, storageClassName: local}
  dataSource: {type: HTTP, http: {url: "http://%[2]s/data.vdi"}}
`, namespace, address))
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(manifest), "    disks:\n")
	head = strings.Replace(head, "maximumRam: 256Mi", "maximumRam: 512Mi", 1) // for the kernel that reads CDs
	head = strings.Replace(head, "  vm:\n", "  blockDeviceRefs:\n  - {kind: VirtualDisk, name: files}\n  - {kind: VirtualImage, name: golden}\n  - {kind: VirtualImage, name: setup}\n  - {kind: VirtualImage, name: foreign}\n  - {kind: VirtualDisk, name: foreign}\n  vm:\n", 1)
	apply(t, head+fmt.Sprintf("    disks:\n    - containerDisk: {name: system, image: %q, size: 64Mi}\n", image))
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	t.Log(say(t, c, "disks"))
	for dev, want := range map[string]string{"vdb": "of the image", "vdc": "of the image", "sr0": "of the disc", "vdd": "of the image", "vde": "of the image"} {
		if got := say(t, c, fmt.Sprintf("read %s %d 12", dev, dataOffset)); !strings.Contains(got, want) {
			t.Errorf("%s: %s", dev, got)
		}
		if dev == "vdb" || dev == "vde" {
			continue
		}
		if got, err := c.Command(withPatience(t), fmt.Sprintf("write %s %d x", dev, dataOffset)); err == nil {
			t.Errorf("%s is written to: %s, %v", dev, got, err)
		}
	}
	say(t, c, fmt.Sprintf("write vdb %d its own text", dataOffset))
	if got := say(t, c, fmt.Sprintf("read vdc %d 12", dataOffset)); !strings.Contains(got, "of the image") {
		t.Errorf("the image has what was written to the disk: %s", got)
	}
	if got := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={range .status.blockDeviceRefs[*]}{.kind}/{.name} {.size} {.attached};{end}"); got != "VirtualDisk/files 32Mi true;VirtualImage/golden 16Mi true;VirtualImage/setup 2Mi true;VirtualImage/foreign 16Mi true;VirtualDisk/foreign 16Mi true;" {
		t.Errorf("the machine has %q", got)
	}
	kubectl(t, "delete", "vi", "-n", namespace, "golden", "setup", "foreign", "--wait=false")
	eventually(t, "the images of a machine are kept", func() error {
		if got := kubectl(t, "get", "vi", "-n", namespace, "-o", "jsonpath={.items[*].status.phase}"); got != "Terminating Terminating Terminating" {
			return errors.New(got)
		}
		return nil
	})
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
	for _, name := range []string{"golden", "setup", "foreign"} {
		gone(t, "vi/"+name)
		gone(t, "pvc/"+name+"-vi")
	}
	kubectl(t, "delete", "vd", "-n", namespace, "files", "foreign", "--wait=false")
	gone(t, "pvc/files-vd")
}
