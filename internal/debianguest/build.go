package debianguest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type builder struct {
	dir  string
	log  io.Writer
	lock *os.File
}

func (b builder) root() string { return filepath.Join(b.dir, "root") }

func (b builder) result() string { return filepath.Join(b.dir, "result") }

func (b builder) build(ctx context.Context) error {
	sources, err := hostSources(ctx, release)
	if err != nil {
		return err
	}
	steps := []func(context.Context) error{
		func(ctx context.Context) error {
			return b.bootstrap(ctx, sources[0], "--include="+strings.Join(basePackages, ","))
		},
		func(ctx context.Context) error { return b.install(ctx, sources) },
		b.finish,
		b.pack,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b builder) bootstrap(ctx context.Context, from source, options ...string) error {
	return b.run(ctx, "debootstrap", append(append([]string{"--variant=minbase"}, options...), from.suite, b.root(), from.site)...)
}

func (b builder) install(ctx context.Context, sources []source) error {
	if err := errors.Join(b.write(buildFiles), b.write(guestFiles)); err != nil {
		return err
	}
	if err := b.write([]guestFile{{"etc/apt/sources.list", 0o644, aptList(sources)}}); err != nil {
		return err
	}
	// Names are resolved as on the host.
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return err
	}
	if err := b.write([]guestFile{{"etc/resolv.conf", 0o644, string(resolv)}}); err != nil {
		return err
	}
	if err := b.run(ctx, "chroot", b.root(), "apt-get", "-q", "update"); err != nil {
		return err
	}
	return b.run(ctx, "chroot", append([]string{b.root(), "apt-get", "-q", "-y", "install"}, packages...)...)
}

// finish removes what belongs to the build or the host and applies the settings that need the
// packages.
func (b builder) finish(ctx context.Context) error {
	if err := b.run(ctx, "chroot", b.root(), "apt-get", "clean"); err != nil {
		return err
	}
	for _, unit := range maskedUnits {
		link := filepath.Join(b.root(), "etc/systemd/system", unit)
		if err := os.Symlink("/dev/null", link); err != nil {
			return err
		}
	}
	for _, f := range buildFiles {
		if err := os.Remove(filepath.Join(b.root(), f.Path)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(b.root(), "var/lib/apt/lists")); err != nil {
		return err
	}
	// Packages have brought their own versions of some files; an empty machine ID is generated anew
	// at each first boot.
	return errors.Join(
		b.write(guestFiles),
		b.write([]guestFile{
			{"etc/apt/sources.list", 0o644, ""},
			{"etc/resolv.conf", 0o644, ""},
			{"etc/machine-id", 0o444, ""},
		}),
	)
}

func (b builder) pack(ctx context.Context) error {
	image := imageIn(b.result())
	for pattern, target := range map[string]string{"vmlinuz-*": image.Kernel, "initrd.img-*": image.Initrd} {
		found, err := filepath.Glob(filepath.Join(b.root(), "boot", pattern))
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("found %d files for boot/%s, want 1", len(found), pattern)
		}
		if err := os.Rename(found[0], target); err != nil {
			return err
		}
	}
	return b.run(ctx, "mke2fs", "-q", "-t", "ext4", "-L", "root", "-d", b.root(), image.Disk, diskSize)
}

func (b builder) write(files []guestFile) error {
	for _, f := range files {
		path := filepath.Join(b.root(), f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		// The path may be a link out of the tree (resolv.conf is, with some packages): replace,
		// never follow.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte(f.Content), os.FileMode(f.Mode)); err != nil {
			return err
		}
		// Regardless of the umask.
		if err := os.Chmod(path, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	return nil
}

// run runs a tool in a mount namespace of its own: debootstrap mounts /proc and /sys in the tree,
// and these mounts vanish with it however it ends. When ctx ends, the whole process group is
// killed.
func (b builder) run(ctx context.Context, name string, args ...string) error {
	tail := &tailWriter{}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout = io.MultiWriter(b.log, tail)
	cmd.Stderr = cmd.Stdout
	// /sbin may be missing in a user's PATH, and dpkg needs it.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	cmd.ExtraFiles = []*os.File{b.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNS}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second

	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", name, ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: install it with: make deps", err)
	default:
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail.text)
	}
}

type tailWriter struct {
	text []byte
}

func (w *tailWriter) Write(p []byte) (int, error) {
	const limit = 4096
	w.text = append(w.text, p...)
	if len(w.text) > limit {
		w.text = bytes.Clone(w.text[len(w.text)-limit:])
	}
	return len(p), nil
}
