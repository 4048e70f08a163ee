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
// the same: snapshots, clones, what is restored, and disks that are made of images. Root
// has file systems of each kind for it; everybody else one of his own that clones, which
// TMPDIR names.
func TestCopiesShareBlocks(t *testing.T) {
	if os.Geteuid() != 0 {
		dir := t.TempDir()
		if err := clones(dir); err != nil {
			t.Fatalf("%s is on a file system that does not share blocks, so that it cannot be seen that copies do: name a directory on XFS or btrfs with TMPDIR, or be root, who mounts some for this test: %v", dir, err)
		}
		shareBlocks(t, &copiesIn{dir: dir, clones: true})
		return
	}
	for _, c := range []struct {
		name   string
		mkfs   []string
		clones bool
	}{
		{"xfs", []string{"mkfs.xfs", "-q", "-m", "reflink=1"}, true},
		{"btrfs", []string{"mkfs.btrfs", "-q"}, true},
		{"ext4", []string{"mkfs.ext4", "-q"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := mountNew(t, c.mkfs)
			if err := clones(dir); (err == nil) != c.clones {
				t.Fatal(err)
			}
			shareBlocks(t, &copiesIn{dir: dir, clones: c.clones, own: true})
		})
	}
}

// clones tells why the file system of a directory does not share the blocks of files; nil
// if it does.
func clones(dir string) error {
	from, err := os.Create(filepath.Join(dir, "from"))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(dir, "to"))
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := from.Write(make([]byte, 4096)); err != nil {
		return err
	}
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// copiesIn is a file system in which copies are made.
type copiesIn struct {
	dir string
	// clones says that files can share their blocks there, own that nobody else writes
	// to it.
	clones, own bool
}

func shareBlocks(t *testing.T, s *copiesIn) {
	b := newBenchIn(t, s.dir)
	const size = 32 << 20
	content := make([]byte, size)
	_, _ = rand.Read(content)
	s.takes(t, size, size, func() string { // as all that is new does
		path := filepath.Join(b.m.Data, "system-disk.img")
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		b.ok(err)
		_, err = f.WriteAt(content, 0)
		b.ok(err)
		b.ok(f.Close())
		return ""
	})
	whole := func(path string) string {
		got, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(got, content) {
			t.Errorf("%s: %d bytes, %v: another content", path, len(got), err)
		}
		return path
	}
	taken := int64(size)
	if s.clones {
		taken = 0
	}
	s.takes(t, taken, size, func() string {
		_, err := b.h.CreateSnapshot(t.Context(), b.m, "first", CopyOptions{})
		b.ok(err)
		return whole(filepath.Join(b.m.Data, snapshotsDir, "first", "system-disk.img"))
	})
	s.takes(t, taken, size, func() string {
		clone, err := b.h.Clone(t.Context(), b.m, "lab", "copy", CopyOptions{})
		b.ok(err)
		return whole(filepath.Join(clone.Data, "system-disk.img"))
	})
	s.takes(t, taken, size, func() string {
		b.ok(b.h.RestoreSnapshot(t.Context(), b.machine("web"), "first", RestoreOptions{Keep: "before"}))
		return whole(filepath.Join(b.m.Data, "system-disk.img"))
	})
	image := filepath.Join(s.dir, "image.img")
	copy(content, bootable(1))
	b.ok(os.WriteFile(image, content, 0o600))
	s.takes(t, taken, size, func() string {
		m, err := b.h.CreateFromImage(t.Context(), desiredObject(t, "64Mi"), Given{}, Image{Source: image}, ImageOptions{})
		b.ok(err)
		return whole(filepath.Join(m.Data, SystemDisk+".img"))
	})
}

// takes checks whether something that has a size takes that much of the file system, as
// far as that can be seen, and whether the file that it returns, if it does, shares its
// blocks.
func (s *copiesIn) takes(t *testing.T, taken, size int64, do func() string) {
	t.Helper()
	before := freeNow(t, s.dir)
	file := do()
	if took := before - freeNow(t, s.dir); s.own && (taken > size/2) != (took > size/2) {
		t.Errorf("%s: %d bytes are taken for %d, want %d", file, took, size, taken)
	}
	if file == "" {
		return
	}
	// It asks the file system (FIEMAP), which says it of everybody's own files.
	out, err := exec.Command(testbin.Find(t, "filefrag"), "-s", "-v", file).CombinedOutput()
	if shared := strings.Contains(string(out), "shared"); err != nil || shared != s.clones {
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
