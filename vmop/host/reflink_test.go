package host

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/testbin"
)

// Copies share their blocks where the file system has that, and the others are copies all
// the same: snapshots, clones, what is restored, and disks that are made of images.
func TestCopiesShareBlocks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root mounts file systems: that blocks are shared was not seen")
		return
	}
	for _, c := range []struct {
		name   string
		mkfs   []string
		shares bool
	}{
		{"xfs", []string{"mkfs.xfs", "-q", "-m", "reflink=1"}, true},
		{"btrfs", []string{"mkfs.btrfs", "-q"}, true},
		{"ext4", []string{"mkfs.ext4", "-q"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := mountNew(t, c.mkfs)
			b := newBenchIn(t, dir)
			const size = 32 << 20
			content := make([]byte, size)
			_, _ = rand.Read(content)
			takes(t, dir, true, func() string { // as all that is new does
				path := filepath.Join(b.m.Data, "system-disk.img")
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				b.ok(err)
				_, err = f.WriteAt(content, 0)
				b.ok(err)
				b.ok(f.Close())
				return ""
			}, size)
			whole := func(path string) string {
				got, err := os.ReadFile(path)
				if err != nil || !bytes.HasPrefix(got, content) {
					t.Errorf("%s: %d bytes, %v: another content", path, len(got), err)
				}
				return path
			}
			takes(t, dir, !c.shares, func() string {
				_, err := b.h.CreateSnapshot(t.Context(), b.m, "first", CopyOptions{})
				b.ok(err)
				return whole(filepath.Join(b.m.Data, snapshotsDir, "first", "system-disk.img"))
			}, size)
			takes(t, dir, !c.shares, func() string {
				clone, err := b.h.Clone(t.Context(), b.m, "lab", "copy", CopyOptions{})
				b.ok(err)
				return whole(filepath.Join(clone.Data, "system-disk.img"))
			}, size)
			takes(t, dir, !c.shares, func() string {
				b.ok(b.h.RestoreSnapshot(t.Context(), b.machine("web"), "first", RestoreOptions{Keep: "before"}))
				return whole(filepath.Join(b.m.Data, "system-disk.img"))
			}, size)
			image := filepath.Join(dir, "image.img")
			copy(content, bootable(1))
			b.ok(os.WriteFile(image, content, 0o600))
			takes(t, dir, !c.shares, func() string {
				m, err := b.h.CreateFromImage(t.Context(), wishedObject(t, "64Mi"), Given{}, Image{Source: image}, ImageOptions{})
				b.ok(err)
				return whole(filepath.Join(m.Data, SystemDisk+".img"))
			}, size)
		})
	}
}

// takes checks whether something takes the space of a copy on a file system, and whether
// the file that it returns, if it does, shares its blocks.
func takes(t *testing.T, dir string, full bool, do func() string, size int64) {
	t.Helper()
	before := freeNow(t, dir)
	file := do()
	if took := before - freeNow(t, dir); full != (took > size/2) {
		t.Errorf("%s: %d bytes are taken for a copy of %d", file, took, size)
	}
	if file == "" {
		return
	}
	out, err := exec.Command(testbin.Find(t, "filefrag"), "-s", "-v", file).CombinedOutput()
	if shared := strings.Contains(string(out), "shared"); err != nil || shared == full {
		t.Errorf("blocks are shared: %v; %v\n%s", shared, err, out)
	}
}

// freeNow is what is free on a file system once all of it is written, in bytes.
func freeNow(t *testing.T, dir string) int64 {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var fs unix.Statfs_t
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bfree) * fs.Bsize
}

// mountNew makes a file system and mounts it for the test.
func mountNew(t *testing.T, mkfs []string) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "fs.img"), t.TempDir()
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(512 << 20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{append(mkfs, image), {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(testbin.Find(t, command[0]), command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return dir
}
