package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// A raw disk to which its guest has written the header of another format while it was
// copied is the raw disk that it was.
func TestMergedHeader(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data.img")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.WriteFile(path, make([]byte, 1<<20), 0o600))
	check(NoteImage(dir, path, "data", qemucmd.DiskFormatRaw))
	d := overlay.Disk{Name: "data", Image: "data.img", Format: "raw", Overlay: "0.qcow2"}
	h, err := overlay.Begin(t.Context(), dir, []overlay.Disk{d})
	check(err)
	check(h.Make(t.Context(), d, 1<<20))
	header := filepath.Join(t.TempDir(), "header")
	check(os.WriteFile(header, append([]byte(qcow2Magic), make([]byte, 508)...), 0o600))
	out, err := exec.Command("qemu-io", "-f", "qcow2", "-c", "write -s "+header+" 0 512", h.Overlay(d)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check(h.Write(overlay.Merging))
	check(h.Close())
	images, err := MergeOverlays(t.Context(), dir)
	check(err)
	if len(images) != 1 || images[0] != path {
		t.Errorf("merged %q", images)
	}
	f, err := os.Open(path)
	check(err)
	defer f.Close()
	now, err := lookAt(f)
	check(err)
	rec, err := readRecord(dir)
	check(err)
	r, _, err := rec.Disks[path].next(now, true)
	if err != nil || r.Format != qemucmd.DiskFormatRaw || now.header != qemucmd.DiskFormatQCOW2 {
		t.Errorf("%+v looks like %s: %v", r, now.header, err)
	}
}
