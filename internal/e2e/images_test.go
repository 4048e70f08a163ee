//go:build e2e

package e2e

import (
	"context"
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
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// recipes are the images that can be built here, and what they are called on nodes.
var recipes = []struct{ image, recipe, release string }{
	{newRunnerImage, "deploy/images/runner.debian.Dockerfile", imagebuild.Release},
	{runnerImage, "deploy/images/runner.debian.Dockerfile", imagebuild.OldRelease},
	{operatorImage, "deploy/images/operator.debian.Dockerfile", imagebuild.Release},
}

const (
	// runnerImage has the QEMU of the hosts that all other tests run on, so that a
	// machine is the same here and there.
	runnerImage    = "vmop.test/runner:1"
	newRunnerImage = "vmop.test/runner:2"
	operatorImage  = "vmop.test/operator:1"
)

// theBuilder has the images.
var theBuilder *imagebuild.Builder

// buildImages builds the images by their recipes, as their users do, and writes
// the archives that nodes import.
func buildImages(ctx context.Context) (_ *imagebuild.Builder, err error) {
	b, err := imagebuild.New(ctx, imagebuild.Options{Context: filepath.Join("..", ".."), Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	for _, r := range recipes {
		if err := b.Build(ctx, r.recipe, r.release, r.image); err != nil {
			return nil, err
		}
		if err := b.Export(ctx, r.image, archive(r.image)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// archive is the file with an image.
func archive(image string) string {
	return filepath.Join(scratch, strings.NewReplacer("/", "-", ":", "-").Replace(image)+".tar")
}

// container makes a container from an image.
func container(t *testing.T, image string) *imagebuild.Container {
	t.Helper()
	c, err := theBuilder.Container(withPatience(t), image)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Who builds the images again on the same base images, by "make images", has the same
// ones: no file, time or order differs.
func TestImagesAreTheSameAgain(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	var bases strings.Builder
	for _, base := range []string{imagebuild.DebianImage(imagebuild.Release), imagebuild.DebianImage(imagebuild.OldRelease), imagebuild.GoImage} {
		name := strings.TrimPrefix(base, "docker.io/library/")
		repository, _, _ := strings.Cut(name, ":")
		if err := theBuilder.Push(withPatience(t), base, address+"/library/"+name); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&bases, "%s %s/library/%s@sha256:%064d\n", name, address, repository, 0)
	}
	file := filepath.Join(t.TempDir(), "bases")
	if err := os.WriteFile(file, []byte(bases.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := imagebases.Renew(withPatience(t), file); err != nil || len(changed) != 3 {
		t.Fatalf("renewed %v, %v", changed, err)
	}
	if err := theBuilder.Script(withPatience(t), "BASES="+file, "VERSION="+imagebuild.Version, "REPOSITORY=vmop.test/again/"); err != nil {
		t.Fatal(err)
	}
	for image, again := range map[string]string{operatorImage: "vmop.test/again/operator:" + imagebuild.Version, newRunnerImage: "vmop.test/again/runner:" + imagebuild.Version} {
		first, err := theBuilder.Digest(withPatience(t), image)
		second, err2 := theBuilder.Digest(withPatience(t), again)
		if err := errors.Join(err, err2); err != nil || first == "" || first != second {
			t.Errorf("%s is %s, and built again %s, %v", image, first, second, err)
		}
	}
}

// An image runs its program, as nobody in particular.
func TestImagesRunTheirPrograms(t *testing.T) {
	for _, r := range recipes {
		t.Run(r.image, func(t *testing.T) {
			config, err := theBuilder.Config(withPatience(t), r.image)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%d:%[1]d", objects.RunnerUser); config.User != want || len(config.Entrypoint) != 1 {
				t.Fatalf("the image runs %q as %q, want one program as %s", config.Entrypoint, config.User, want)
			}
			c := container(t, r.image)
			out, err := c.Run(withPatience(t), config.Entrypoint[0], "--version")
			if program := path.Base(config.Entrypoint[0]); err != nil || !strings.HasPrefix(out, program+" ") {
				t.Errorf("%s --version says %q, %v", program, out, err)
			}
			info, err := os.Stat(archive(r.image))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the image has %d MiB", info.Size()>>20)
		})
	}
}

// The images of the runner are hosts with everything that a machine can have:
// devices, displays, firmware of both layouts, TPM, CDs from web servers, bridges.
func TestTheRunnersImagesHaveAllOfQEMU(t *testing.T) {
	for _, image := range []string{newRunnerImage, runnerImage} {
		t.Run(image, func(t *testing.T) { hasAllOfQEMU(t, image) })
	}
}

func hasAllOfQEMU(t *testing.T, image string) {
	c, want := container(t, image), qemucmd.GenericHost()
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

	out, err := c.Run(withPatience(t), want.QEMU, "-device", "help")
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
	_, err = c.Run(withPatience(t), "sh", "-c", "echo quit | "+strings.Join([]string{want.QEMU, "-nodefaults", "-S", "-monitor stdio", "-display none",
		"-spice unix=on,addr=/tmp/spice.sock,disable-ticketing=on", "-vnc unix:/tmp/vnc.sock", "-audiodev spice,id=audio",
		"-chardev spicevmc,id=agent,name=vdagent", "-device virtio-serial-pci", "-device virtserialport,chardev=agent,name=com.redhat.spice.0",
		"-chardev spicevmc,id=usb,name=usbredir", "-device qemu-xhci", "-device usb-redir,chardev=usb",
		"-device virtio-vga", "-device virtio-gpu-pci"}, " "))
	if err != nil {
		t.Error(err)
	}
	for _, scheme := range []string{"http", "https"} {
		// Nobody listens there; what matters is who says so.
		_, err := c.Run(withPatience(t), want.QEMU, "-nodefaults", "-display", "none", "-blockdev",
			fmt.Sprintf(`{"driver":%q,"node-name":"cd","read-only":true,"url":"%[1]s://127.0.0.1:1/cd.iso"}`, scheme))
		if err == nil || !strings.Contains(err.Error(), "CURL: Error opening file") {
			t.Errorf("a CD by %s: %v", scheme, err)
		}
	}
}

// On the node, the images are what they were when they were built: the helper for
// bridges has its capability, and Secure Boot refuses what nobody has signed. A machine
// that moves from one QEMU to the next keeps its machine type and UEFI variables.
func TestTheRunnersImagesInPods(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	if err := theNode.ImportArchive(withPatience(t), archive(newRunnerImage)); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{runnerImage, newRunnerImage} {
		applyObjects(t, machine(t, "machine.yaml", func(vm *vmop.VirtualMachine) {
			vm.Spec.VM.Firmware, vm.Spec.Image.Source = spec.FirmwareSecure, image
		}), nil)
		awaitLog(t, "Access Denied")
		if out := kubectl(t, "exec", "-n", namespace, "tiny", "--", "getcap", qemucmd.GenericHost().BridgeHelper); !strings.Contains(out, "cap_net_admin=ep") {
			t.Errorf("%s: the helper for bridges has %q", image, out)
		}
		out := kubectl(t, "logs", "-n", namespace, "tiny")
		if strings.Contains(out, tinyguest.Ready) || !strings.Contains(out, "starting QEMU pc-q35-7.2") {
			t.Errorf("%s: the guest has started, or has another machine:\n%s", image, out)
		}
		kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
	}
}
