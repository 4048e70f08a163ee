//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// What is uploaded to a disk or an image comes back as it was, also by a download that was
// cut off, and a disk that a machine has is given to nobody.
func TestUploadsAndDownloads(t *testing.T) {
	explainOnFailure(t)
	install(t)
	dir := t.TempDir()
	raw, qcow2 := filepath.Join(dir, "archive.raw"), filepath.Join(dir, "archive.qcow2")
	content := make([]byte, 48<<20)
	random := rand.NewChaCha8([32]byte{1})
	if _, err := random.Read(content[20<<20 : 40<<20]); err != nil {
		t.Fatal(err)
	}
	copy(content[dataOffset:], "of the archive")
	if err := os.WriteFile(raw, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(withPatience(t), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, qcow2).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nqemu-img is installed by \"make deps-e2e\"", err, out)
	}
	program := buildCLI(t)
	cli := func(args ...string) (string, error) {
		cmd := exec.CommandContext(withPatience(t), program, args...)
		cmd.Dir, cmd.Env = dir, kubectlEnv()
		out, err := cmd.CombinedOutput()
		t.Logf("$ vmop-cli %s\n%s", strings.Join(args, " "), out)
		return string(out), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := cli(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	same := func(file string, want []byte) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, want the %d that were uploaded: %v", file, len(got), len(want), err)
		}
	}
	file, err := os.ReadFile(qcow2)
	if err != nil {
		t.Fatal(err)
	}

	must("disk", "upload", "--cluster", "-n", namespace, "archive", "archive.qcow2", "--storage-class", "local")
	must("disk", "download", "--cluster", "-n", namespace, "archive", "copy.qcow2")
	same("copy.qcow2", file)
	must("disk", "download", "--cluster", "-n", namespace, "archive", "copy.raw", "--format", "raw")
	same("copy.raw", content)

	// What a former attempt has left is not sent again, and what it has otherwise is.
	part := bytes.Clone(file[:len(file)-1000])
	part[17<<20] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "again.qcow2.vmop-part"), part, 0o600); err != nil {
		t.Fatal(err)
	}
	must("disk", "download", "--cluster", "-n", namespace, "archive", "again.qcow2")
	same("again.qcow2", file)

	must("disk", "upload", "--cluster", "-n", namespace, "base", "archive.raw", "--image", "--storage-class", "local")
	must("disk", "download", "--cluster", "-n", namespace, "base", "base.raw", "--image", "-o", "json")
	same("base.raw", content)

	// A machine has it.
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, strings.Replace(string(manifest), "  vm:\n", "  blockDeviceRefs:\n  - {kind: VirtualDisk, name: archive}\n  vm:\n", 1))
	awaitLog(t, tinyguest.Ready)
	if out, err := cli("disk", "download", "--cluster", "-n", namespace, "archive", "running.qcow2"); err == nil || !strings.Contains(out, "the disk is used by tiny") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "running.qcow2")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
	kubectl(t, "delete", "vd,vi", "-n", namespace, "archive", "base", "--ignore-not-found", "--wait=true")
}
