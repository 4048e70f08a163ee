package tinyguest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/internal/buildcache"
	"pgregory.net/rapid"
)

// readCPIO is the reverse of writeCPIO, written from the format's description.
func readCPIO(data []byte) ([]entry, error) {
	var entries []entry
	for at := 0; ; {
		if len(data) < at+110 || string(data[at:at+6]) != "070701" {
			return nil, fmt.Errorf("no header at %d", at)
		}
		var field [13]uint32
		for i := range field {
			if _, err := fmt.Sscanf(string(data[at+6+8*i:at+14+8*i]), "%x", &field[i]); err != nil {
				return nil, err
			}
		}
		if field[5] != 0 || field[2] != 0 || field[3] != 0 {
			return nil, fmt.Errorf("at %d: time %d, owner %d:%d", at, field[5], field[2], field[3])
		}
		nameEnd := at + 110 + int(field[11])
		name := string(data[at+110 : nameEnd-1])
		start := (nameEnd + 3) &^ 3
		end := start + int(field[6])
		at = (end + 3) &^ 3
		if name == "TRAILER!!!" {
			return entries, nil
		}
		e := entry{name: name, mode: field[1], major: field[9], minor: field[10]}
		if end > start {
			e.data = data[start:end]
		}
		entries = append(entries, e)
	}
}

func byName(a, b entry) int { return strings.Compare(a.name, b.name) }

func TestCPIOKeepsItsEntriesAndNotTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) entry {
			e := entry{
				name: rapid.StringMatching(`[a-z/._-]{1,12}`).Draw(t, "name"),
				mode: rapid.SampledFrom([]uint32{modeFile | 0o755, modeDir | 0o755, modeSymlink | 0o777, modeChar | 0o600}).Draw(t, "mode"),
			}
			if e.mode&modeFile != 0 {
				e.data = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "data")
			}
			return e
		}), 0, 6, func(e entry) string { return e.name }).Draw(t, "entries")
		shuffled := rapid.Permutation(entries).Draw(t, "shuffled")

		packed := writeCPIO(entries)
		if !bytes.Equal(packed, writeCPIO(shuffled)) {
			t.Fatal("the order of the entries changes the archive")
		}
		got, err := readCPIO(packed)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.SortedFunc(slices.Values(entries), byName)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" && len(want)+len(got) > 0 {
			t.Fatal(diff)
		}
	})
}

// For any dependencies without a cycle: whatever a module needs is loaded
// before it, nothing twice, and the order of the input does not matter.
func TestModulesAreLoadedAfterTheirDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		var modules []module
		for i := range n {
			m := module{name: fmt.Sprintf("m%d", i), aliases: rapid.SliceOf(rapid.StringMatching(`virtio:d0000000[0-9]v\*`)).Draw(t, "aliases")}
			for j := range i {
				if rapid.Bool().Draw(t, "depends") {
					m.depends = append(m.depends, fmt.Sprintf("m%d", j))
				}
			}
			if rapid.Bool().Draw(t, "built-in") {
				m.depends = append(m.depends, "built_into_the_kernel")
			}
			modules = append(modules, m)
		}
		list := moduleList(modules)
		if list != moduleList(rapid.Permutation(modules).Draw(t, "shuffled")) {
			t.Fatal("the order of the modules changes the list")
		}
		for line := range strings.Lines(list) {
			words := strings.Fields(line)
			if words[0] != "module" {
				continue
			}
			name, order := words[1], words[2:]
			var loaded []string
			for _, step := range append(slices.Clone(order), name) {
				m := modules[slices.IndexFunc(modules, func(m module) bool { return m.name == step })]
				for _, d := range m.depends {
					if d != "built_into_the_kernel" && !slices.Contains(loaded, d) {
						t.Fatalf("%s is loaded before %s:\n%s", step, d, list)
					}
				}
				if slices.Contains(loaded, step) {
					t.Fatalf("%s is loaded twice:\n%s", step, list)
				}
				loaded = append(loaded, step)
			}
		}
	})
}

func TestModuleListFormat(t *testing.T) {
	got := moduleList([]module{
		{name: "virtio_blk", depends: []string{"virtio_ring", "virtio"}, aliases: []string{"virtio:d00000002v*"}},
		{name: "virtio_ring", depends: []string{"virtio"}},
		{name: "virtio"},
	})
	const want = "alias virtio:d00000002v* virtio_blk\nmodule virtio\nmodule virtio_blk virtio virtio_ring\nmodule virtio_ring virtio\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// bzImage packs a payload as the kernel's build does.
func bzImage(payload []byte) []byte {
	image := make([]byte, 2*512)
	image[0x1f1] = 1 // setup sectors
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(image[0x206:], 0x20f)
	binary.LittleEndian.PutUint32(image[0x248:], 16)
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(payload)))
	return slices.Concat(image, make([]byte, 16), payload, []byte("signature"))
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestVmlinuxComesOutOfBzImage(t *testing.T) {
	const kernel = "\x7fELF the kernel"
	got, err := extractVmlinux(t.Context(), bzImage(gzipped(t, kernel)))
	if err != nil || string(got) != kernel {
		t.Errorf("got %q, %v", got, err)
	}
	cut := bzImage(gzipped(t, kernel))
	for name, image := range map[string][]byte{
		"empty": nil, "no magic": make([]byte, 4096), "payload outside": cut[:1030],
		"no ELF": bzImage(gzipped(t, "something else")), "unknown format": bzImage([]byte("plain text")), "no payload": bzImage(nil),
	} {
		if got, err := extractVmlinux(t.Context(), image); err == nil {
			t.Errorf("%s: got %q and no error", name, got)
		}
	}
}

// fakePackage is an unpacked package with a kernel that cannot boot.
func fakePackage(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"boot/vmlinuz-6.1.0-test":         string(bzImage(gzipped(t, "\x7fELF kernel"))),
		"boot/vmlinuz-6.1.0-no-modules":   "not taken",
		"lib/modules/6.1.0-test/whatever": "",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEnsureBuildsOnceForManyCallers(t *testing.T) {
	options := Options{CacheDir: t.TempDir(), KernelPackageDir: fakePackage(t)}
	type result struct {
		guest Guest
		err   error
	}
	results := make(chan result)
	const callers = 4
	for range callers {
		go func() {
			g, err := Ensure(t.Context(), options)
			results <- result{g, err}
		}()
	}
	var first Guest
	for i := range callers {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		if i == 0 {
			first = r.guest
		}
		if r.guest != first {
			t.Errorf("callers got %v and %v", first, r.guest)
		}
	}
	kernel, err := os.ReadFile(first.Kernel)
	if err != nil || string(kernel) != "\x7fELF kernel" {
		t.Errorf("kernel is %q, %v", kernel, err)
	}
	left, err := filepath.Glob(filepath.Join(options.CacheDir, "tinyguest", ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	// Another cache, the same bytes.
	again, err := Ensure(t.Context(), Options{CacheDir: t.TempDir(), KernelPackageDir: options.KernelPackageDir})
	if err != nil {
		t.Fatal(err)
	}
	a, errA := os.ReadFile(first.Initrd)
	b, errB := os.ReadFile(again.Initrd)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("two builds differ: %d and %d bytes, %v, %v", len(a), len(b), errA, errB)
	}
}

func TestEnsureWaitsNoLongerThanItsContext(t *testing.T) {
	options := Options{CacheDir: t.TempDir(), KernelPackageDir: fakePackage(t)}
	cache, err := buildcache.Folder(options.CacheDir, cacheKind)
	if err != nil {
		t.Fatal(err)
	}
	held, err := buildcache.Lock(t.Context(), filepath.Join(cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Ensure(ctx, options); err == nil || !strings.Contains(err.Error(), "somebody else is building") {
		t.Errorf("got %v", err)
	}
}

func TestEnsureSaysWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"no kernel in the folder": {Options{KernelPackageDir: "/dev"}, "no kernel for the tiny guest: /dev has no readable boot/vmlinuz-*"},
		"unknown flavor":          {Options{Flavor: "vanilla"}, `flavor "vanilla": unknown`},
	} {
		c.options.CacheDir = t.TempDir()
		if _, err := Ensure(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	t.Run("no apt", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := Ensure(t.Context(), Options{CacheDir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "set Options.KernelPackageDir") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no compiler", func(t *testing.T) {
		gzip, err := exec.LookPath("gzip")
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", filepath.Dir(gzip)+"-none")
		_, err = Ensure(t.Context(), Options{CacheDir: t.TempDir(), KernelPackageDir: fakePackage(t)})
		if err == nil || !strings.Contains(err.Error(), "make deps") {
			t.Errorf("got %v", err)
		}
	})
}

func TestExportReplacesFiles(t *testing.T) {
	guest, err := Ensure(t.Context(), Options{CacheDir: t.TempDir(), KernelPackageDir: fakePackage(t)})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	for range 2 {
		out, err := guest.Export(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := Guest{Kernel: dir + "/vmlinux", BzImage: dir + "/vmlinuz", Initrd: dir + "/initrd"}
		if out != want {
			t.Errorf("got %v", out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 {
		t.Errorf("folder has %v, %v", files, err)
	}
}
