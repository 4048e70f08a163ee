package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A disk of a machine that does not run grows at once, with what its manifest says,
// and never shrinks.
func TestResizeDisk(t *testing.T) {
	b := newBench(t)
	system := filepath.Join(b.m.Data, "system-disk.img")
	b.ok(os.WriteFile(b.m.ManifestFile(), []byte(strings.Replace(benchManifest, "{storage: 1Mi}}}", "{storage: 1Mi}}} # small", 1)), 0o600))
	// What a guest has written to a raw disk is never taken for another format.
	b.ok(os.WriteFile(system, []byte("QFI\xfb\x00\x00\x00\x03"), 0o600))
	b.ok(os.Truncate(system, 64<<20))
	r, err := b.h.ResizeDisk(t.Context(), b.m, "system", 96<<20-1)
	b.ok(err)
	if r.Name != "system-disk" || r.Had != 64<<20 || r.Has != 96<<20 || r.Waiting != "" {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(system); err != nil || info.Size() != 96<<20 {
		t.Errorf("%v, %v", info, err)
	}
	text, err := os.ReadFile(b.m.ManifestFile())
	b.ok(err)
	if !strings.Contains(string(text), "storage: 96Mi") || !strings.Contains(string(text), "# small") {
		t.Errorf("%s", text)
	}
	for _, c := range []struct {
		disk string
		size int64
		want string
	}{
		{"system", 1 << 20, "no disk is made smaller"},
		{"sytem", 1 << 30, "has no disk of that name; it has system-disk, data-claim"},
	} {
		if _, err := b.h.ResizeDisk(t.Context(), b.machine("web"), c.disk, c.size); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(c.want, "smaller") != errors.Is(err, ErrShrink) {
			t.Errorf("%s: %v", c.disk, err)
		}
	}
	// One that was given has no size in the manifest.
	b.ok(os.WriteFile(b.external, make([]byte, 1024), 0o600))
	if r, err := b.h.ResizeDisk(t.Context(), b.machine("web"), "data", 4096); err != nil || r.Has != 4096 {
		t.Errorf("%+v, %v", r, err)
	}
	disks, err := b.h.Disks(t.Context(), b.machine("web"))
	b.ok(err)
	if len(disks) != 2 || !disks[0].Own || disks[1].Own || disks[1].Size != 4096 || disks[0].Problem != "" {
		t.Errorf("%+v", disks)
	}
}
