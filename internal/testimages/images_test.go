//go:build e2e

package testimages

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/vmop/sdk/internal/imagebases"
	"github.com/vmop/sdk/internal/imagebuild"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// The images are what nodes import: each runs its program, the runner's are hosts for all that a
// machine can have, and whoever builds them again has the same ones.
func TestImages(t *testing.T) {
	module := filepath.Join("..", "..")
	dir, err := Ensure(t.Context(), module, t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	b, err := imagebuild.New(t.Context(), imagebuild.Options{Context: module, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, r := range recipes {
		if err := b.Import(t.Context(), Archive(dir, r.image)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("programs", func(t *testing.T) { runPrograms(t, b, dir) })
	t.Run("QEMU", func(t *testing.T) { hasAllOfQEMU(t, b, Runner) })
	t.Run("QEMU of the newer distribution", func(t *testing.T) { hasAllOfQEMU(t, b, NewRunner) })
	t.Run("again", func(t *testing.T) { again(t, b, dir) })
}

// container makes a container from an image.
func container(t *testing.T, b *imagebuild.Builder, image string) *imagebuild.Container {
	t.Helper()
	c, err := b.Container(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// again builds the images once more, by "make images" on the same base images: no file, time or order
// differs.
func again(t *testing.T, b *imagebuild.Builder, dir string) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	var bases strings.Builder
	for _, base := range []string{imagebuild.DebianImage(imagebuild.Release), imagebuild.DebianImage(imagebuild.OldRelease), imagebuild.GoImage} {
		name := strings.TrimPrefix(base, "docker.io/library/")
		repository, _, _ := strings.Cut(name, ":")
		if err := b.Push(t.Context(), base, address+"/library/"+name); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&bases, "%s %s/library/%s@sha256:%064d\n", name, address, repository, 0)
	}
	file := filepath.Join(t.TempDir(), "bases")
	if err := os.WriteFile(file, []byte(bases.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := imagebases.Renew(t.Context(), file); err != nil || len(changed) != 3 {
		t.Fatalf("renewed %v, %v", changed, err)
	}
	if err := b.Script(t.Context(), "BASES="+file, "VERSION="+imagebuild.Version, "REPOSITORY=vmop.test/again/"); err != nil {
		t.Fatal(err)
	}
	for image, again := range map[string]string{Operator: "vmop.test/again/operator:" + imagebuild.Version, NewRunner: "vmop.test/again/runner:" + imagebuild.Version} {
		first, err := Digest(dir, image)
		second, err2 := b.Digest(t.Context(), again)
		if err := errors.Join(err, err2); err != nil || first == "" || first != second {
			t.Errorf("%s is %s, and built again %s, %v", image, first, second, err)
		}
	}
}

// runPrograms has each image run its program, as nobody in particular.
func runPrograms(t *testing.T, b *imagebuild.Builder, dir string) {
	for _, r := range recipes {
		t.Run(r.image, func(t *testing.T) {
			config, err := b.Config(t.Context(), r.image)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%d:%[1]d", objects.RunnerUser); config.User != want || len(config.Entrypoint) != 1 {
				t.Fatalf("the image runs %q as %q, want one program as %s", config.Entrypoint, config.User, want)
			}
			c := container(t, b, r.image)
			out, err := c.Run(t.Context(), config.Entrypoint[0], "--version")
			if program := path.Base(config.Entrypoint[0]); err != nil || !strings.HasPrefix(out, program+" ") {
				t.Errorf("%s --version says %q, %v", program, out, err)
			}
			info, err := os.Stat(Archive(dir, r.image))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the image has %d MiB", info.Size()>>20)
		})
	}
}

// hasAllOfQEMU has an image of the runner show that it is a host with everything that a machine can
// have: devices, displays, firmware of both layouts, TPM, CDs from web servers, bridges.
func hasAllOfQEMU(t *testing.T, b *imagebuild.Builder, image string) {
	c, want := container(t, b, image), qemucmd.GenericHost()
	files := []string{want.QEMU, want.SWTPM, want.BridgeHelper, "/usr/bin/qemu-img", "/etc/qemu/bridge.conf", "/opt/vmrunner/templates", "/etc/ssl/certs/ca-certificates.crt"}
	for _, f := range want.Firmware {
		files = append(files, f.Code, f.Vars)
	}
	for _, file := range files {
		info, err := os.Stat(filepath.Join(c.Root, file))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm()&0o004 == 0 || info.Mode()&os.ModeSetuid != 0 {
			t.Errorf("%s has the permissions %v", file, info.Mode())
		}
	}

	out, err := c.Run(t.Context(), want.QEMU, "-device", "help")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := []string{"igb", "sungem"} // in newer QEMUs, and not for PCs
	for _, device := range want.Devices {
		if !slices.Contains(elsewhere, device) && !strings.Contains(out, `name "`+device+`"`) {
			t.Errorf("QEMU has no %s", device)
		}
	}
	// What has modules of its own starts, with a display for every way to it.
	_, err = c.Run(t.Context(), "sh", "-c", "echo quit | "+strings.Join([]string{want.QEMU, "-nodefaults", "-S", "-monitor stdio", "-display none",
		"-spice unix=on,addr=/tmp/spice.sock,disable-ticketing=on", "-vnc unix:/tmp/vnc.sock", "-audiodev spice,id=audio",
		"-chardev spicevmc,id=agent,name=vdagent", "-device virtio-serial-pci", "-device virtserialport,chardev=agent,name=com.redhat.spice.0",
		"-chardev spicevmc,id=usb,name=usbredir", "-device qemu-xhci", "-device usb-redir,chardev=usb",
		"-device virtio-vga", "-device virtio-gpu-pci"}, " "))
	if err != nil {
		t.Error(err)
	}
	for _, scheme := range []string{"http", "https"} {
		// Nobody listens there; what matters is who says so.
		_, err := c.Run(t.Context(), want.QEMU, "-nodefaults", "-display", "none", "-blockdev",
			fmt.Sprintf(`{"driver":%q,"node-name":"cd","read-only":true,"url":"%[1]s://127.0.0.1:1/cd.iso"}`, scheme))
		if err == nil || !strings.Contains(err.Error(), "CURL: Error opening file") {
			t.Errorf("a CD by %s: %v", scheme, err)
		}
	}
}
