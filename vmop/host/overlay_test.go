package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/overlay"
)

// interruptedCopy leaves overlays of the bench's disks, to which the guest has written
// "written" at the beginning.
func (b *bench) interruptedCopy(phase overlay.Phase) {
	b.Helper()
	b.ok(os.Truncate(b.external, 1<<20))
	disks := []overlay.Disk{
		{Name: "system-disk", Image: "system-disk.img", Format: "raw", Overlay: "0.qcow2"},
		{Name: "data-claim", Image: b.external, Format: "raw", Overlay: "1.qcow2"},
	}
	h, err := overlay.Begin(b.Context(), b.m.Data, disks)
	b.ok(err)
	text := filepath.Join(b.TempDir(), "text")
	b.ok(os.WriteFile(text, append([]byte("written"), make([]byte, 505)...), 0o600))
	for i, d := range disks {
		b.ok(h.Make(b.Context(), d, []int64{64 << 20, 1 << 20}[i]))
		out, err := exec.Command("qemu-io", "-f", "qcow2", "-c", "write -s "+text+" 0 512", h.Overlay(d)).CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	b.ok(h.Still())
	b.ok(h.Write(phase))
	b.ok(h.Close())
}

// Whatever is done with a machine that does not run is done with what its guest wrote
// during a copy that was interrupted.
func TestInterruptedCopyIsCompleted(t *testing.T) {
	for name, do := range map[string]func(b *bench) (Machine, error){
		"snapshot": func(b *bench) (Machine, error) {
			_, err := b.h.CreateSnapshot(b.Context(), b.m, "now", CopyOptions{})
			if got := b.begins(filepath.Join(b.m.Data, snapshotsDir, "now", "system-disk.img")); got != "written" {
				b.Errorf("the snapshot has %q", got)
			}
			return b.m, err
		},
		"clone":  func(b *bench) (Machine, error) { return b.h.Clone(b.Context(), b.m, "lab", "copy", CopyOptions{}) },
		"rename": func(b *bench) (Machine, error) { return b.h.Rename(b.m, "lab", "other") },
		"resize": func(b *bench) (Machine, error) {
			_, err := b.h.ResizeDisk(b.Context(), b.m, "data", 2<<20)
			return b.m, err
		},
		"detach": func(b *bench) (Machine, error) {
			_, err := b.h.DetachDisk(b.Context(), b.m, "data")
			return b.m, err
		},
		"delete but for the disks": func(b *bench) (Machine, error) {
			_, err := b.m.remove(DeleteOptions{})
			return b.m, err
		},
		"delete all": func(b *bench) (Machine, error) {
			_, err := b.m.remove(DeleteOptions{Disks: true})
			return Machine{}, err // the external disk is left
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.interruptedCopy(overlay.Attached)
			m, err := do(b)
			b.ok(err)
			if got := b.begins(b.external); got != "written" || exists(filepath.Join(m.Data, overlay.Dir)) {
				t.Errorf("the disk has %q", got)
			}
			if got := b.begins(filepath.Join(m.Data, "system-disk.img")); m.Data != "" && got != "written" {
				t.Errorf("the system has %q", got)
			}
		})
	}
}

// Another machine does not get an image to which something is still to be merged.
func TestImageOfAnotherMachineIsMergedFirst(t *testing.T) {
	b := newBench(t)
	o, err := b.m.Object()
	b.ok(err)
	other, err := namedManifest(&o, "lab", "other", true)
	b.ok(err)
	b.interruptedCopy(overlay.Merging)
	given := Given{Disks: map[string]string{"data": b.external}, Accelerator: "tcg"}
	if _, err := b.h.Create(&other, given); err == nil || !strings.Contains(err.Error(), "is a disk of lab/web, a copy of which was interrupted") {
		t.Error(err)
	}
	b.ok(b.m.mergeStopped(t.Context()))
	_, err = b.h.Create(&other, given)
	b.ok(err)
}

// What cannot be completed keeps a machine from being changed, and says so.
func TestInterruptedCopyThatCannotBeCompleted(t *testing.T) {
	b := newBench(t)
	b.interruptedCopy(overlay.Attached)
	b.ok(os.WriteFile(b.external, []byte("somebody else's"), 0o600))
	_, err := b.h.CreateSnapshot(t.Context(), b.m, "now", CopyOptions{})
	if !errors.Is(err, overlay.ErrChanged) {
		t.Error(err)
	}
	if _, err := b.m.remove(DeleteOptions{Disks: true}); !errors.Is(err, overlay.ErrChanged) {
		t.Error(err)
	}
	if b.begins(b.external) != "somebody else's" || !exists(filepath.Join(b.m.Data, overlay.Dir, "1.qcow2")) {
		t.Error("something was written over")
	}
}
