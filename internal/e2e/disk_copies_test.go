//go:build e2e

package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/vmop/sdk/internal/node"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// Disks become block devices and files, whatever they are made of: an image of a server,
// one of a registry that wants to know who asks, and other disks.
func TestCopiesOfDisks(t *testing.T) {
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
	if out, err := exec.CommandContext(withPatience(t), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", data, filepath.Join(dir, "data.qcow2")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nqemu-img is installed by \"make deps-e2e\"", err, out)
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.Handle("/v2/", images)
	address := serve(t, mux)
	private := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "puller" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	pushDisk(t, address+"/disks/tiny:1", system)
	pushDisk(t, address+"/disks/data:1", data)

	credentials := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, private, base64.StdEncoding.EncodeToString([]byte("puller:secret")))
	if err := theNode.AddStorageClass(withPatience(t), node.StorageClass{Name: "forgetful", Forgets: true}); err != nil {
		t.Fatal(err)
	}
	disk := func(name, size, claim, source string) string {
		if !strings.Contains(claim, "storageClassName") {
			claim += ", storageClassName: local"
		}
		return fmt.Sprintf("---\napiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualDisk\nmetadata: {name: %s, namespace: %s}\nspec: {persistentVolumeClaim: {size: %s%s}, dataSource: %s}\n", name, namespace, size, claim, source)
	}
	block, forgetful := ", volumeMode: Block", ", storageClassName: forgetful"
	of := func(name string) string {
		return fmt.Sprintf("{type: ObjectRef, objectRef: {kind: VirtualDisk, name: %s}}", name)
	}
	apply(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: pull, namespace: %s}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: %q}\n", namespace, credentials)+
		disk("pulled", "16Mi", "", fmt.Sprintf("{type: ContainerImage, containerImage: {image: %q, imagePullSecret: {name: pull}}}", private+"/disks/data:1"))+
		disk("device", "32Mi", block, fmt.Sprintf(`{type: HTTP, http: {url: "http://%s/data.qcow2"}}`, address))+
		disk("device-of-device", "32Mi", block, of("device"))+
		disk("file-of-device", "32Mi", "", of("device"))+
		disk("device-of-file", "40Mi", block, of("pulled"))+
		disk("file-of-file", "24Mi", "", of("pulled"))+
		disk("kept", "16Mi", forgetful, fmt.Sprintf(`{type: HTTP, http: {url: "http://%s/data.qcow2"}}`, address))+
		disk("forgotten", "16Mi", forgetful, of("kept")))
	all := []string{"pulled", "device", "device-of-device", "file-of-device", "device-of-file", "file-of-file", "kept", "forgotten"}
	for _, name := range all {
		eventually(t, "disk "+name+" is there", func() error {
			if got := kubectl(t, "get", "vd", "-n", namespace, name, "-o", "jsonpath={.status.phase}"); got != "Ready" {
				return errors.New(got + kubectl(t, "get", "vd", "-n", namespace, name, "-o", "jsonpath={.status.conditions}"))
			}
			return nil
		})
	}
	t.Log(kubectl(t, "get", "vd", "-n", namespace, "-o", "wide"))
	// Those of the same class and mode are clones, and no clone is believed that is none.
	for name, want := range map[string]string{"pulled": "", "device-of-device": "device-vd true", "file-of-device": "", "device-of-file": "", "file-of-file": "pulled-vd true", "forgotten": "kept-vd false"} {
		if got := kubectl(t, "get", "pvc", "-n", namespace, name+"-vd", "-o", `jsonpath={.spec.dataSource.name} {.metadata.annotations.vmoperator\.jdrupes\.org/cloned}`); strings.TrimSpace(got) != want {
			t.Errorf("the claim of %s is a clone of %q, want %q", name, got, want)
		}
	}
	// Room for downloads goes with the pod that had it, which a disk does not wait for.
	eventually(t, "only the disks' claims are left", func() error {
		got := kubectl(t, "get", "pvc", "-n", namespace, "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.volumeMode};{end}`)
		if !strings.Contains(got, "device-of-file-vd Block;") || strings.Contains(got, "scratch") {
			return errors.New(got)
		}
		return nil
	})

	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(manifest), "    disks:\n")
	refs := ""
	for _, name := range all {
		refs += "  - {kind: VirtualDisk, name: " + name + "}\n"
	}
	head = strings.Replace(head, "  vm:\n", "  blockDeviceRefs:\n"+refs+"  vm:\n", 1)
	apply(t, head+fmt.Sprintf("    disks:\n    - containerDisk: {name: system, image: %q, size: 64Mi}\n", address+"/disks/tiny:1"))
	awaitLog(t, tinyguest.Ready)
	c := console(t, "tiny")
	t.Log(say(t, c, "disks"))
	for i := range all {
		if got := say(t, c, fmt.Sprintf("read vd%c %d 12", 'b'+i, dataOffset)); !strings.Contains(got, "of the image") {
			t.Errorf("%s: %s", all[i], got)
		}
	}
	// A block device that was filled grows as an empty one does.
	kubectl(t, "patch", "vd", "-n", namespace, "device", "--type=merge", "-p", `{"spec":{"persistentVolumeClaim":{"size":"48Mi"}}}`)
	eventually(t, "the guest's disk grows", func() error {
		if got := say(t, c, "disks"); !strings.Contains(got, "vdc 50331648 bytes") {
			return errors.New(got)
		}
		return nil
	})
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
	for _, name := range all {
		kubectl(t, "delete", "vd", "-n", namespace, name, "--wait=false")
		gone(t, "pvc/"+name+"-vd")
	}
}
