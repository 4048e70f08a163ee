//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// An image of the cluster is fetched once, into the operator's namespace, and disks and
// images of two others are made of it by pods that never see its claim. A machine boots
// one of them, and the copies stay when the image goes.
func TestClusterVirtualImages(t *testing.T) {
	explainOnFailure(t)
	install(t)
	kubectl(t, "apply", "-k", filepath.Join("..", "..", "deploy", "cluster-images"))
	t.Cleanup(func() {
		kubectl(t, "delete", "-k", filepath.Join("..", "..", "deploy", "cluster-images"), "--wait=true")
	})
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: tenants\n  labels: {pod-security.kubernetes.io/enforce: restricted}\n")
	t.Cleanup(func() { kubectl(t, "delete", "namespace", "tenants", "--wait=true") })
	kustomize(t, "namespace: tenants\nresources: [DEPLOY/runner]\n")

	dir := t.TempDir()
	system := filepath.Join(dir, "system.img")
	if err := testbin.TinyGuest(t).WriteDisk(withPatience(t), system); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(withPatience(t), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", system, filepath.Join(dir, "system.qcow2")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nqemu-img is installed by \"make deps-e2e\"", err, out)
	}
	address := serve(t, http.FileServer(http.Dir(dir)))
	apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: ClusterVirtualImage
metadata: {name: tiny}
spec:
  persistentVolumeClaim: {size: 64Mi, storageClassName: local}
  dataSource: {type: HTTP, http: {url: "http://%s/system.qcow2"}}
`, address))
	ready := func(object string, more ...string) {
		t.Helper()
		eventually(t, object+" is there", func() error {
			if got := kubectl(t, append([]string{"get", object, "-o", "jsonpath={.status.phase} {.status.conditions}"}, more...)...); !strings.HasPrefix(got, "Ready ") {
				return errors.New(got)
			}
			return nil
		})
	}
	ready("cvi/tiny")
	t.Log(kubectl(t, "get", "cvi", "-o", "wide"))
	if err := os.Remove(filepath.Join(dir, "system.qcow2")); err != nil { // it is not fetched again
		t.Fatal(err)
	}
	const source = "dataSource: {type: ObjectRef, objectRef: {kind: ClusterVirtualImage, name: tiny}}"
	for _, ns := range []string{namespace, "tenants"} {
		apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: system, namespace: %[1]s}
spec: {persistentVolumeClaim: {size: 64Mi, storageClassName: local}, %[2]s}
---
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualImage
metadata: {name: golden, namespace: %[1]s}
spec: {persistentVolumeClaim: {size: 64Mi, storageClassName: local}, %[2]s}
`, ns, source))
	}
	for _, ns := range []string{namespace, "tenants"} {
		ready("vd/system", "-n", ns)
		ready("vi/golden", "-n", ns)
		t.Log(kubectl(t, "get", "vd,vi,pvc,pods", "-n", ns))
	}
	kubectl(t, "delete", "cvi", "tiny", "--timeout="+patience.String())
	eventually(t, "what served the image is gone", func() error {
		if got := kubectl(t, "get", "pods,pvc,secrets", "-n", "vmop-system", "-o", "name"); strings.Contains(got, "tiny-cvi") {
			return errors.New(got)
		}
		return nil
	})

	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(manifest), "    disks:\n")
	apply(t, strings.Replace(head, "  vm:\n", "  blockDeviceRefs:\n  - {kind: VirtualDisk, name: system}\n  - {kind: VirtualImage, name: golden}\n  vm:\n", 1))
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	say(t, c, fmt.Sprintf("write vda %d its own text", guestOffset))
	if got, err := c.Command(withPatience(t), fmt.Sprintf("write vdb %d x", guestOffset)); err == nil {
		t.Errorf("the image is written to: %s", got)
	}
	if got := say(t, c, fmt.Sprintf("read vdb %d 12", guestOffset)); strings.Contains(got, "its own text") {
		t.Errorf("the image has what was written to the disk: %s", got)
	}
}
