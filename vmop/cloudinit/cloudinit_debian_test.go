package cloudinit_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/debianguest"
	"github.com/vmop/sdk/vmop/cloudinit"
)

// TestDebianGuestAppliesTheSeed boots Debian once with a seed of this package.
// The first run on a machine builds the guest, which takes about a minute.
func TestDebianGuestAppliesTheSeed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	guest, err := debianguest.Ensure(ctx, debianguest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const marker = "seed-applied"
	docs, err := cloudinit.Render(cloudinit.Input{
		MetaData: map[string]string{"instance-id": "test-1", "local-hostname": "from-the-seed"},
		// The argument list keeps its order, "on" must stay a string, and the block
		// of several lines must arrive as it is.
		UserData: json.RawMessage(`{
			"users": ["default", {"name": "alice", "uid": 4242, "gecos": "on", "shell": "/bin/sh"}],
			"write_files": [{"path": "/etc/from-the-seed", "permissions": "0644", "content": "one\n  two\n"}],
			"runcmd": [
				"echo ` + marker + ` host=$(hostname) $(id alice) gecos=$(getent passwd alice | cut -d: -f5) lines=$(wc -l </etc/from-the-seed) > /dev/ttyS0",
				["poweroff"]
			]
		}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := cloudinit.Image(docs)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	seedPath := filepath.Join(dir, "seed.img")
	if err := os.WriteFile(seedPath, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.qcow2")
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", guest.Disk, overlay)

	console := bootDebian(ctx, t, guest, overlay, seedPath)
	line := ""
	for l := range strings.Lines(console) {
		if at := strings.Index(l, marker+" host="); at >= 0 {
			line = strings.TrimSpace(l[at:])
		}
	}
	if want := marker + " host=from-the-seed uid=4242(alice) gid=4242(alice) groups=4242(alice) gecos=on lines=2"; line != want {
		t.Errorf("the guest says %q, want %q; its console:\n%s", line, want, console)
	}
}

// bootDebian runs the guest until it powers off and returns what it wrote to its
// serial console.
func bootDebian(ctx context.Context, t *testing.T, guest debianguest.Image, disk, seed string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35", "-accel", "tcg,tb-size=128", "-m", "768",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", guest.Append,
		"-blockdev", "driver=file,filename="+disk+",node-name=disk-file,cache.no-flush=on",
		"-blockdev", "driver=qcow2,file=disk-file,node-name=disk",
		"-device", "virtio-blk-pci,drive=disk",
		"-blockdev", "driver=raw,node-name=seed,read-only=on,file.driver=file,file.filename="+seed,
		"-device", "virtio-blk-pci,drive=seed",
		"-serial", "stdio",
	)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatalf("%v: install it with: make deps", err)
		}
		t.Fatal(err)
	}
	// Reading to the end keeps the guest from blocking on its console.
	console, readErr := io.ReadAll(stdout)
	if err := errors.Join(readErr, cmd.Wait()); err != nil {
		t.Fatalf("qemu: %v (%v)\n%s\nconsole:\n%s", err, ctx.Err(), stderr.String(), console)
	}
	return string(console)
}
