//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// serveImages serves the files of a folder, and is a registry, at an address that pods
// of the node reach: that of the API server.
func serveImages(t *testing.T, dir string) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.Handle("/v2/", registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	return serve(t, mux)
}

// serve serves at an address that pods of the node reach.
func serve(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	host := kubectl(t, "get", "endpointslice", "-n", "default", "kubernetes", "-o", "jsonpath={.endpoints[0].addresses[0]}")
	l, err := net.Listen("tcp4", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// pushDisk makes a container image with a disk, as KubeVirt's container disks are.
func pushDisk(t *testing.T, image, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	err = w.WriteHeader(&tar.Header{Name: "disk/disk.img", Mode: 0o644, Size: int64(len(content))})
	_, werr := w.Write(content)
	if err := errors.Join(err, werr, w.Close()); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	made, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, made, remote.WithContext(withPatience(t))); err != nil {
		t.Fatal(err)
	}
}

// dataOffset is where the second disk has a text, in bytes.
const dataOffset = 1 << 20

// kubeVirtMachine is a machine of KubeVirt's with a container disk.
const kubeVirtMachine = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: tiny, namespace: machines}
spec:
  running: true
  template:
    spec:
      domain:
        devices:
          disks: [{name: registryvolume, disk: {bus: virtio}}]
        firmware: {bootloader: {efi: {secureBoot: false}}}
        resources: {requests: {memory: 256Mi}}
      volumes:
      - {name: registryvolume, containerDisk: {image: "IMAGE"}}
`

// Disks that are copies of images, in pods without rights: one of a server that is kept,
// and one of a container image that is new at each start.
func TestDisksOfImages(t *testing.T) {
	explainOnFailure(t)
	install(t)
	dir := t.TempDir()
	system, data := filepath.Join(dir, "system.img"), filepath.Join(dir, "data.img")
	if err := testbin.TinyGuest(t).WriteDisk(withPatience(t), system); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 16<<20)
	copy(content[dataOffset:], "of the image")
	if err := os.WriteFile(data, content, 0o600); err != nil {
		t.Fatal(err)
	}
	// QEMU enlarges those of qcow2.
	packed := filepath.Join(dir, "data.qcow2")
	if out, err := exec.CommandContext(withPatience(t), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", data, packed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nqemu-img is installed by \"make deps-e2e\"", err, out)
	}
	address := serveImages(t, dir)
	image := address + "/disks/tiny:1"
	pushDisk(t, image, system)

	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(manifest), "    disks:\n")
	head = strings.Replace(head, "  vm:\n", "  blockDeviceRefs:\n  - {kind: VirtualDisk, name: files}\n  - {kind: VirtualDisk, name: empty}\n  vm:\n", 1)
	apply(t, head+fmt.Sprintf(`    disks:
    - containerDisk: {name: system, image: %q, size: 64Mi}
    - image: {name: data, source: "http://%s/data.qcow2", size: 32Mi, storageClassName: local}
`, image, address))
	// The machine waits for a disk that exists by itself.
	apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: files, namespace: %s}
spec:
  persistentVolumeClaim: {size: 32Mi, storageClassName: local}
  dataSource: {type: HTTP, http: {url: "http://%s/data.qcow2"}}
---
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: empty, namespace: %[1]s}
spec: {persistentVolumeClaim: {size: 16Mi, storageClassName: local}}
`, namespace, address))
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	if got := say(t, c, "disks"); !strings.Contains(got, "system-disk") || !strings.Contains(got, "vdb 33554432 bytes") {
		t.Errorf("the guest's disks: %s", got)
	}
	if got := say(t, c, fmt.Sprintf("read vdb %d 12", dataOffset)); !strings.Contains(got, "of the image") {
		t.Errorf("the disk of the server: %s", got)
	}
	if got := say(t, c, fmt.Sprintf("read vdc %d 12", dataOffset)); !strings.Contains(got, "of the image") {
		t.Errorf("the disk that exists by itself: %s", got)
	}
	if got := kubectl(t, "get", "vd", "-n", namespace, "files", "-o", "jsonpath={.status.phase} {.status.format} {.status.attachedToVirtualMachines[*].name}"); got != "Ready qcow2 tiny" {
		t.Errorf("the disk that exists by itself is %q", got)
	}
	// Both grow under the guest: a file, and a block device.
	for name, grown := range map[string]struct{ size, device, bytes string }{"files": {"48Mi", "vdc", "50331648"}, "empty": {"24Mi", "vdd", "25165824"}} {
		kubectl(t, "patch", "vd", "-n", namespace, name, "--type=merge", "-p", `{"spec":{"persistentVolumeClaim":{"size":"`+grown.size+`"}}}`)
		eventually(t, "the guest's disk "+grown.device+" grows", func() error {
			if got := say(t, c, "disks"); !strings.Contains(got, grown.device+" "+grown.bytes+" bytes") {
				return errors.New(got)
			}
			return nil
		})
		eventually(t, "the disk "+name+" has grown", func() error {
			if got := kubectl(t, "get", "vd", "-n", namespace, name, "-o", `jsonpath={.status.phase} {.status.capacity} {.status.conditions[?(@.type=="Resized")].status}`); got != "Ready "+grown.size+" True" {
				return errors.New(got)
			}
			return nil
		})
	}
	t.Logf("disks that have grown:\n%s", kubectl(t, "get", "vd", "-n", namespace))
	if got := say(t, c, fmt.Sprintf("read vdc %d 12", dataOffset)); !strings.Contains(got, "of the image") {
		t.Errorf("the disk that has grown: %s", got)
	}
	if got := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.status.blockDeviceRefs[*].size} {.status.restartAwaitingChanges}"); got != "48Mi 24Mi " {
		t.Errorf("the machine says of its disks: %q", got)
	}
	if got := claims(t); got != "tiny-data-disk tiny-runner-data" {
		t.Errorf("the machine has the claims %q", got)
	}
	say(t, c, fmt.Sprintf("write vda %d still here", guestOffset))
	say(t, c, fmt.Sprintf("write vdb %d still here", dataOffset))

	// What it was made of is not needed again.
	if err := os.Remove(packed); err != nil {
		t.Fatal(err)
	}
	before := podUID(t)
	cli := told{t, buildCLI(t)}
	cli.run("restart", "tiny")
	awaitOtherPod(t, before)
	awaitLog(t, tinyguest.Ready)
	c = console(t, "tiny")
	if got := say(t, c, fmt.Sprintf("read vda %d 10", guestOffset)); strings.Contains(got, "still here") {
		t.Errorf("the container disk is that of the start before: %s", got)
	}
	if got := say(t, c, fmt.Sprintf("read vdb %d 10", dataOffset)); !strings.Contains(got, "still here") {
		t.Errorf("the disk that is kept: %s", got)
	}
	kubectl(t, "delete", "vd", "-n", namespace, "files", "empty", "--wait=false")
	eventually(t, "the disk of a machine is kept", func() error {
		if got := kubectl(t, "get", "vd", "-n", namespace, "files", "-o", "jsonpath={.status.phase}"); got != "Terminating" {
			return errors.New(got)
		}
		return nil
	})
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
	gone(t, "vd/files")
	gone(t, "vd/empty")
	gone(t, "pvc/files-vd")

	// The same for who comes from KubeVirt.
	file := filepath.Join(dir, "kubevirt.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(kubeVirtMachine, "IMAGE", image)), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, err := exec.CommandContext(withPatience(t), cli.program, "convert", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	apply(t, string(ours))
	awaitLog(t, tinyguest.Ready)
	if got := say(t, console(t, "tiny"), "disks"); !strings.Contains(got, "vda") {
		t.Errorf("the guest's disks: %s", got)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
}
