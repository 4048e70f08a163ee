package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/vmop/sdk/internal/atomicfile"
)

const tool = "qemu-img"

// Tool returns the path of the program that creates and merges overlays. The error says what to
// install.
func Tool() (string, error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		return "", fmt.Errorf("%s is needed, and is not installed (Debian: package qemu-utils): %w", tool, err)
	}
	return path, nil
}

// Make creates a disk's overlay, empty and of a size in bytes, on the storage. It refers to its
// image for QEMU's tools.
func (h *Held) Make(ctx context.Context, d Disk, size int64) error {
	image := h.Image(d)
	if !filepath.IsAbs(d.Image) {
		image = filepath.Join("..", d.Image)
	}
	// Only the overlay is opened (-u): QEMU has the image.
	if err := run(ctx, "create", "-q", "-u", "-f", "qcow2", "-b", image, "-F", d.Format, h.Overlay(d), strconv.FormatInt(size, 10)); err != nil {
		return fmt.Errorf("make the overlay of disk %q: %w", d.Name, err)
	}
	return syncFile(h.Overlay(d))
}

func run(ctx context.Context, args ...string) error {
	path, err := Tool()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	// A runner that is the first process of a pod reaps what leads no group as an orphan. A Ctrl-C at
	// the terminal does not reach the group, and must not leave the tool behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the parent's thread ends
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", tool, args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Settle merges the remaining overlays of a machine that has no QEMU and that no other process can
// start meanwhile, and returns the merged images. It may be interrupted and repeated at any time.
// An image that another QEMU uses is locked, and not written. note is called with the merged images
// before that is recorded.
func Settle(ctx context.Context, data string, note func(images []string) error) (merged []string, err error) {
	return settle(ctx, data, note, func() error { return nil })
}

// settle is Settle, interrupted where its last argument fails.
func settle(ctx context.Context, data string, note func([]string) error, interrupted func() error) (merged []string, err error) {
	h, err := Hold(ctx, data)
	if h == nil || err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := h.checkAll(); err != nil {
		return nil, err
	}
	done := make([]bool, len(h.Disks))
	for {
		if err := interrupted(); err != nil {
			return merged, err
		}
		step := NextStopped(h.Phase, done)
		switch step.Kind {
		case Write:
			if step.Phase == Merged {
				err = note(merged)
			}
			if err == nil {
				err = h.Write(step.Phase)
			}
		case Commit:
			d := h.Disks[step.Disk]
			if err = h.merge(ctx, d); err != nil {
				err = fmt.Errorf("disk %q: merge %s into %s: %w", d.Name, h.Overlay(d), h.Image(d), err)
			}
			done[step.Disk] = true
			merged = append(merged, h.Image(d))
		case Remove:
			return merged, h.Remove()
		default:
			return merged, fmt.Errorf("overlays: %+v is not for a machine that is stopped", step)
		}
		if err != nil {
			return merged, err
		}
	}
}

// Check returns why the remaining overlays of a machine cannot be merged; nil if they can, or if
// there are none. It changes nothing.
func Check(data string) error {
	j, err := Read(data)
	if err != nil {
		return err
	}
	h := &Held{data: data}
	if j == nil {
		return h.empty()
	}
	h.Journal = *j
	return h.checkAll()
}

// checkAll checks all images before the first of them is written.
func (h *Held) checkAll() error {
	if !h.Phase.Counts() {
		return nil
	}
	for _, d := range h.Disks {
		if err := h.check(d); err != nil {
			return fmt.Errorf("disk %q: %w", d.Name, err)
		}
	}
	if h.Phase != Attached {
		return nil
	}
	return h.Unchanged()
}

// qcow2Magic begins every qcow2 image.
const qcow2Magic = "QFI\xfb"

func (h *Held) check(d Disk) error {
	image, err := os.Stat(h.Image(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the image %s is missing, of which %s has what was written last: put it back", h.Image(d), h.Overlay(d))
	case err != nil:
		return err
	case !image.Mode().IsRegular():
		return fmt.Errorf("%s is no file any more: %w", h.Image(d), ErrChanged)
	}
	over, err := begins(h.Overlay(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing, which has what the guest has written to the disk since the last copy was begun: put it back; if that may be lost, remove %s", h.Overlay(d), h.path(""))
	case err != nil:
		return err
	case over != qcow2Magic:
		return fmt.Errorf("%s is damaged", h.Overlay(d))
	}
	begin, err := begins(h.Image(d))
	if err == nil && d.Format == "qcow2" && begin != qcow2Magic {
		err = fmt.Errorf("%s was a qcow2 image: %w", h.Image(d), ErrChanged)
	}
	return err
}

func begins(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(len(qcow2Magic))))
	return string(data), err
}

// merge merges an overlay into its image. Both formats are explicit: the files' content is not
// trusted.
func (h *Held) merge(ctx context.Context, d Disk) error {
	if err := h.check(d); err != nil {
		return err
	}
	image := map[string]any{"driver": d.Format, "file": map[string]any{"driver": "file", "filename": h.Image(d), "discard": "unmap"}, "discard": "unmap"}
	if d.Format == "qcow2" {
		image["backing"] = nil
	}
	chain, err := json.Marshal(map[string]any{
		"driver": "qcow2", "file": map[string]any{"driver": "file", "filename": h.Overlay(d)}, "backing": image,
	})
	if err != nil {
		return err
	}
	// The overlay is not emptied (-d), so that it can be merged again after an interruption.
	if err := run(ctx, "commit", "-q", "-d", "json:"+string(chain)); err != nil {
		return err
	}
	return errors.Join(syncFile(h.Image(d)), atomicfile.SyncDir(filepath.Dir(h.Image(d))))
}
