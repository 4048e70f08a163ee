//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/internal/node"
	"github.com/vmop/sdk/internal/ociimage"
	"github.com/vmop/sdk/vmop/reconcile"
)

// runnerImage is the name of the image with the runner and QEMU.
const runnerImage = "vmop.test/runner:1"

// qemuFolders are what QEMU reads while it runs: its modules, the firmware that
// it loads and that for machines with UEFI.
var qemuFolders = []string{"/usr/lib/x86_64-linux-gnu/qemu", "/usr/share/qemu", "/usr/share/seabios", "/usr/lib/ipxe/qemu", "/usr/share/OVMF"}

// build builds a program of this module as it is put into images.
func build(ctx context.Context, dir, name, pkg string) (ociimage.File, error) {
	file := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return ociimage.File{}, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return ociimage.File{Path: "/usr/bin/" + name, Mode: 0o755, From: file}, nil
}

// importRunner makes the image of the runner from this host's QEMU.
func importRunner(ctx context.Context, n *node.Node, dir string) error {
	runner, err := build(ctx, dir, "vmop-runner", "github.com/vmop/sdk/frontends/runner")
	if err != nil {
		return err
	}
	programs := []string{"qemu-system-x86_64", "swtpm"}
	var files []ociimage.File
	for _, folder := range qemuFolders {
		more, err := ociimage.Tree(folder)
		if err != nil {
			return fmt.Errorf("%w: run \"make deps\"", err)
		}
		files = append(files, more...)
		for _, f := range more {
			// A module whose libraries are missing is as good as absent.
			if filepath.Ext(f.Path) == ".so" {
				programs = append(programs, f.Path)
			}
		}
	}
	linked, err := ociimage.Programs(ctx, programs...)
	if err != nil {
		return fmt.Errorf("%w: run \"make deps\"", err)
	}
	files = append(files, linked...)
	user := fmt.Sprintf("runner:x:%d:%d::/:/sbin/nologin\n", reconcile.RunnerUser, reconcile.RunnerUser)
	files = append(files, runner,
		ociimage.File{Path: "/etc/passwd", Data: []byte("root:x:0:0::/:/sbin/nologin\n" + user)},
		ociimage.File{Path: "/tmp", Mode: 0o777 | fs.ModeSticky},
	)
	return n.Import(ctx, ociimage.Image{
		Name: runnerImage, Entrypoint: []string{runner.Path}, User: fmt.Sprint(reconcile.RunnerUser), Files: unique(files),
	})
}

// unique keeps the first file of each path.
func unique(files []ociimage.File) []ociimage.File {
	seen := map[string]bool{}
	var out []ociimage.File
	for _, f := range files {
		if key := strings.TrimSuffix(f.Path, "/"); !seen[key] {
			seen[key] = true
			out = append(out, f)
		}
	}
	return out
}
