package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	"golang.org/x/sys/unix"
)

// An image in a machine's directory that another machine has as a disk, or a QEMU open, is neither
// removed with its machine, replaced by a snapshot's nor moved.
func TestImagesOfOthersStay(t *testing.T) {
	b := newBench(t)
	_, err := b.h.CreateSnapshot(t.Context(), b.m, "first", CopyOptions{})
	b.ok(err)
	image := filepath.Join(b.m.Data, "system-disk.img")
	before := b.inode(image)
	link := filepath.Join(t.TempDir(), "link.img")
	b.ok(os.Symlink(image, link))
	other := strings.NewReplacer("name: web", "name: other", "000000000001", "000000000002").Replace(benchManifest)
	o, err := only(spec.Load("other.yaml", []byte(other), spec.Options{Default: true, Validate: true}))
	b.ok(err)
	m, err := b.h.Create(&o, Given{Disks: map[string]string{"data": link}, Accelerator: "tcg"})
	b.ok(err)
	refused := func(want string) {
		t.Helper()
		asked := false
		confirm := func([]File) error { asked = true; return nil }
		if _, err := b.h.DeleteStopped(b.machine("web"), DeleteOptions{Disks: true, Confirm: confirm}); err == nil || !strings.Contains(err.Error(), want) || asked {
			t.Errorf("deleted: %v, asked %v", err, asked)
		}
		if err := b.h.RestoreSnapshot(t.Context(), b.machine("web"), "first", RestoreOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("restored: %v", err)
		}
		if _, err := b.h.Rename(b.machine("web"), "lab", "front"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("renamed: %v", err)
		}
		if b.inode(image) != before {
			t.Error("the image is another one")
		}
	}
	refused(`disk "data`)
	if _, err := b.h.DeleteStopped(m, DeleteOptions{Disks: true}); err != nil || !exists(image) {
		t.Errorf("with the other machine: %v, image there: %v", err, exists(image))
	}
	used, err := os.Open(image)
	b.ok(err)
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: 100, Len: 1}
	b.ok(unix.FcntlFlock(used.Fd(), unix.F_OFD_SETLK, &lock))
	refused(errInUse.Error())
	if _, err := b.m.Delete(DeleteOptions{Disks: true}); !errors.Is(err, errInUse) || !exists(image) {
		t.Errorf("without a look at others: %v", err)
	}
	b.ok(used.Close())
	b.ok(b.h.RestoreSnapshot(t.Context(), b.machine("web"), "first", RestoreOptions{}))
	if _, err := b.h.DeleteStopped(b.machine("web"), DeleteOptions{Disks: true}); err != nil || exists(image) {
		t.Errorf("at last: %v", err)
	}
	if _, err := b.h.Machine("lab", "web"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
