package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
)

// Dir is the name of the directory with the overlays and their journal within that of a machine. It
// exists while there are such.
const Dir = "overlays"

const (
	journalFile = "journal.json"
	lockFile    = "lock"
)

// Journal records which disks of a machine have overlays, and their phase.
type Journal struct {
	Phase Phase `json:"phase"`
	// Paused reports whether the copy has paused the guest, or is about to.
	Paused bool   `json:"paused,omitempty"`
	Disks  []Disk `json:"disks"`
}

// Disk is a disk with an overlay.
type Disk struct {
	Name string `json:"name"`
	// Image is the disk's image, relative to the machine's directory if it is within, and Format
	// its format: raw or qcow2.
	Image  string `json:"image"`
	Format string `json:"format"`
	// Node is the image's node in QEMU.
	Node string `json:"node"`
	// Overlay is the file's name in [Dir].
	Overlay string `json:"overlay"`
	// Size (in bytes) and Time are the image's since [Attached].
	Size int64     `json:"size,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

// Held is a machine's journal, locked against other processes.
type Held struct {
	Journal
	data string // the machine's directory
	lock *os.File
}

// Errors of journals, for errors.Is.
var (
	// ErrBusy reports that another process works on the overlays of a machine.
	ErrBusy = errors.New("its disks are just being copied, or merged after a copy")
	// ErrChanged reports that an image is not the one its overlay was made for.
	ErrChanged = errors.New("the image was changed since")
)

// Exists reports whether a machine may have overlays, by its directory.
func Exists(data string) bool {
	_, err := os.Lstat(filepath.Join(data, Dir))
	return err == nil
}

// Left reports whether a machine has overlays that no process works on.
func Left(data string) bool {
	f, err := os.Open(filepath.Join(data, Dir, lockFile))
	if err != nil {
		return false // there are none, or another process is about to create some
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

// Read returns the journal of a machine without locking it; nil if there is none.
func Read(data string) (*Journal, error) {
	path := filepath.Join(data, Dir, journalFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j Journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !j.Phase.known() {
		return nil, fmt.Errorf("%s: the phase %q is unknown: a later version may have written it", path, j.Phase)
	}
	for _, d := range j.Disks {
		if d.Overlay == "" || filepath.Base(d.Overlay) != d.Overlay || d.Image == "" || d.Format == "" {
			return nil, fmt.Errorf("%s: it is damaged", path)
		}
	}
	return &j, nil
}

// Hold locks and returns the journal of a machine's overlays, or nil if there are none. If another
// process works on them for longer than half a minute, it fails with [ErrBusy]; ctx ends the wait
// earlier.
func Hold(ctx context.Context, data string) (*Held, error) {
	if !Exists(data) {
		return nil, nil
	}
	lock, err := lockDir(ctx, filepath.Join(data, Dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed meanwhile
	}
	if err != nil {
		return nil, err
	}
	h := &Held{data: data, lock: lock}
	j, err := Read(data)
	switch {
	case err != nil:
		return nil, errors.Join(err, h.Close())
	case j == nil: // the first of what is created, or the last of what is removed
		if err := h.empty(); err != nil {
			return nil, errors.Join(err, h.Close())
		}
		return nil, h.remove()
	}
	h.Journal = *j
	return h, nil
}

// empty fails if there is an overlay, which must have had a journal.
func (h *Held) empty() error {
	overlays, err := filepath.Glob(filepath.Join(h.path(""), "*.qcow2"))
	if err == nil && len(overlays) > 0 {
		err = fmt.Errorf("%s has overlays of disks, and %s is missing, which says what is in them: put it back; what a guest wrote last may be lost otherwise", h.path(""), journalFile)
	}
	return err
}

// Begin writes the journal of overlays that are to be created, in [Making]. There must be no
// overlays.
func Begin(ctx context.Context, data string, disks []Disk) (*Held, error) {
	dir := filepath.Join(data, Dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	h := &Held{Journal: Journal{Phase: Making, Disks: disks}, data: data, lock: lock}
	err = h.Write(Making)
	if err == nil {
		err = atomicfile.SyncDir(data)
	}
	if err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// Write writes the journal in a phase, and returns when that is on the storage.
func (h *Held) Write(p Phase) error {
	next := h.Journal
	next.Phase = p
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = atomicfile.Replace(h.path(journalFile), append(text, '\n'))
	}
	if err == nil {
		err = atomicfile.SyncDir(h.path(""))
	}
	if err != nil {
		return fmt.Errorf("journal of the copy: %w", err)
	}
	h.Journal = next
	return nil
}

func (h *Held) path(name string) string { return filepath.Join(h.data, Dir, name) }

// Overlay is the path of a disk's overlay.
func (h *Held) Overlay(d Disk) string { return h.path(d.Overlay) }

// Image is the path of a disk's image.
func (h *Held) Image(d Disk) string { return d.In(h.data) }

// In is the path of the disk's image, for a machine whose directory is data.
func (d Disk) In(data string) string {
	if filepath.IsAbs(d.Image) {
		return d.Image
	}
	return filepath.Join(data, d.Image)
}

// ImageIn returns the name of an image in a journal: relative within the machine's directory, so
// that it survives the directory's renaming.
func ImageIn(data, path string) string {
	if below, err := filepath.Rel(data, path); err == nil && filepath.IsLocal(below) {
		return below
	}
	return path
}

// Still records size and time of the images, which do not change from now on, and returns when that
// is on the storage.
func (h *Held) Still() error {
	for i := range h.Disks {
		d := &h.Disks[i]
		f, err := os.Open(h.Image(*d))
		if err != nil {
			return err
		}
		// QEMU flushes the content, but not the time.
		err = f.Sync()
		info, serr := f.Stat()
		if err = errors.Join(err, serr, f.Close()); err != nil {
			return err
		}
		d.Size, d.Time = info.Size(), info.ModTime().UTC()
	}
	return nil
}

// Unchanged fails with [ErrChanged] if an image differs from what [Held.Still] recorded.
func (h *Held) Unchanged() error {
	for _, d := range h.Disks {
		if d.Time.IsZero() {
			continue
		}
		info, err := os.Stat(h.Image(d))
		if err != nil {
			return err
		}
		if info.Size() != d.Size || !info.ModTime().Equal(d.Time) {
			return fmt.Errorf("disk %q: %s: %w %s: what its guest wrote after that is in %s. If the image is right as it is, remove %s, and that is lost; if only its time was changed, write \"phase\": %q into %s",
				d.Name, h.Image(d), ErrChanged, d.Time.Format(time.RFC3339), h.Overlay(d), h.path(""), Merging, h.path(journalFile))
		}
	}
	return nil
}

// Remove removes the overlays and, after them, the journal. They must not count.
func (h *Held) Remove() error {
	if h.Phase.Counts() {
		return fmt.Errorf("the overlays in %s have what the disks have not", h.path(""))
	}
	for _, d := range h.Disks {
		if err := os.Remove(h.Overlay(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := atomicfile.SyncDir(h.path("")); err != nil {
		return err
	}
	return h.remove()
}

// remove removes the directory, which must have no overlay any more.
func (h *Held) remove() error {
	err := os.Remove(h.path(journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = os.RemoveAll(h.path(""))
	}
	return errors.Join(err, h.Close())
}

// Close releases the overlays to other processes.
func (h *Held) Close() error {
	if h.lock == nil {
		return nil
	}
	err := h.lock.Close()
	h.lock = nil
	return err
}

const (
	// busyLimit is how long another process that works on overlays is waited for: a command whose
	// QEMU has ended notices that at once.
	busyLimit = 30 * time.Second
	busyLook  = 20 * time.Millisecond
)

func lockDir(ctx context.Context, dir string) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, busyLimit, fmt.Errorf("%s: %w", strings.TrimSuffix(dir, "/"+Dir), ErrBusy))
	defer cancel()
	for {
		f, err := tryLock(dir)
		if !errors.Is(err, ErrBusy) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(busyLook):
		}
	}
}

// tryLock locks a directory of overlays. What was locked may have been removed.
func tryLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		mine, merr := f.Stat()
		now, nerr := os.Stat(path)
		if merr == nil && nerr == nil && os.SameFile(mine, now) {
			return f, nil
		}
		err = unix.EWOULDBLOCK // another process creates one now, if it exists
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrBusy
	}
	return nil, errors.Join(err, f.Close())
}
