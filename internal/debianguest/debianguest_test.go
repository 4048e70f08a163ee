package debianguest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/internal/buildcache"
	"golang.org/x/sys/unix"
)

func TestDebianSourcesArePickedFromTheHosts(t *testing.T) {
	const targets = `https://mirror.example/debian bookworm contrib
https://mirror.example/debian bookworm-updates main
https://mirror.example/debian bookworm main
https://mirror.example/debian bookworm main
https://other.example/repo bookworm-pgdg main
https://mirror.example/debian-security bookworm-security main
https://node.example/ nodistro main
malformed
`
	want := []source{
		{"https://mirror.example/debian", "bookworm"},
		{"https://mirror.example/debian", "bookworm-updates"},
		{"https://mirror.example/debian-security", "bookworm-security"},
	}
	got := debianSources(targets)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(source{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	const list = "deb https://mirror.example/debian bookworm main\n" +
		"deb https://mirror.example/debian bookworm-updates main\n" +
		"deb https://mirror.example/debian-security bookworm-security main\n"
	if got := aptList(got); got != list {
		t.Errorf("sources.list is %q", got)
	}
	const newer = "deb https://mirror.example/debian trixie main\n" +
		"deb https://mirror.example/debian trixie-updates main\n" +
		"deb https://mirror.example/debian-security trixie-security main\n"
	if got := aptList(ofRelease(got, "trixie")); got != newer {
		t.Errorf("the sources.list of another release is %q", got)
	}
	if got := debianSources("https://mirror.example/debian trixie main\nhttps://x.example bookworm-updates main\n"); len(got) != 0 {
		t.Errorf("a host of another release gives %v", got)
	}
}

func TestCachedImageNeedsNoBuild(t *testing.T) {
	cache := t.TempDir()
	dir := filepath.Join(cache, recipeHash())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := Ensure(t.Context(), Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	want := Image{
		Kernel: filepath.Join(dir, "vmlinuz"),
		Initrd: filepath.Join(dir, "initrd.img"),
		Disk:   filepath.Join(dir, "disk.raw"),
		Append: "root=/dev/vda rw console=ttyS0 no_timer_check",
	}
	if diff := cmp.Diff(want, image); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// logged is closed at the first output.
type logged struct {
	first chan struct{}
	done  bool
}

func (l *logged) Write(p []byte) (int, error) {
	if !l.done {
		l.done = true
		close(l.first)
	}
	return len(p), nil
}

// A build that is interrupted leaves neither files nor mounts nor processes that
// hold its lock, and the remains of one that was killed are cleared away.
func TestInterruptedBuildLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	remains := filepath.Join(cache, recipeHash()+".build-123", "root", "etc")
	if err := os.MkdirAll(remains, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &logged{first: make(chan struct{})}
	go func() {
		select {
		case <-log.first:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err := Ensure(ctx, Options{CacheDir: cache, Log: log})
	if os.Geteuid() != 0 {
		if !errors.Is(err, ErrNotRoot) {
			t.Errorf("without root: %v, want %v", err, ErrNotRoot)
		}
		return
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), ".lock") {
		t.Errorf("left behind: %v", entries)
	}
	if mounts, err := mountsUnder(cache); err != nil || len(mounts) > 0 {
		t.Errorf("still mounted: %v (%v)", mounts, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lock, err := buildcache.Lock(ctx, filepath.Join(cache, recipeHash()+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}

// Removing the tree of a killed build must not reach into what is mounted there.
func TestRemoveTreeSparesMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		// What is under test cannot be set up, nor can it happen, without root.
		return
	}
	outside := t.TempDir()
	keep := filepath.Join(outside, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(t.TempDir(), "tree with space")
	inner := filepath.Join(tree, "root", "dev")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := unix.Mount(outside, inner, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	mounts, err := mountsUnder(tree)
	if err != nil || !slices.Equal(mounts, []string{inner, inner}) {
		t.Errorf("mounts are %q (%v)", mounts, err)
	}
	if err := removeTree(tree); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
}

// The base has what images are built with, and nothing of the host.
func TestBase(t *testing.T) {
	if os.Geteuid() != 0 {
		// Where nobody has built it yet, it cannot be built without root.
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	archive, err := EnsureBase(ctx, release, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sizes := map[string]int64{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		sizes[h.Name] = h.Size
	}
	for _, name := range []string{"./usr/bin/apt-get", "./usr/bin/dpkg", "./usr/share/doc/", "./var/lib/apt/lists/"} {
		if _, there := sizes[name]; !there {
			t.Errorf("no %s", name)
		}
	}
	for name, size := range sizes {
		if name == "./etc/apt/sources.list" && size > 0 || strings.HasPrefix(name, "./usr/share/doc/") && name != "./usr/share/doc/" ||
			strings.HasSuffix(name, ".deb") {
			t.Errorf("there is %s, %d bytes", name, size)
		}
	}
}
