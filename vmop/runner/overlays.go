package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// MergeOverlays completes a copy of the disks of a machine that ran, by its data directory: what
// the guest wrote meanwhile is merged into the images, which are returned. The machine must not
// run, and the caller holds the directory's lock. It may be interrupted and repeated. Without such
// a copy, it does nothing.
func MergeOverlays(ctx context.Context, dataDir string) (images []string, err error) {
	return overlay.Settle(ctx, dataDir, func(images []string) error { return noteMerged(dataDir, images) })
}

func noteMerged(dataDir string, images []string) error {
	rec, err := readRecord(dataDir)
	if err != nil {
		return err
	}
	for _, path := range images {
		r, known := rec.Disks[path]
		if !known || r.Format != qemucmd.DiskFormatRaw {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		now, err := lookAt(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("disk image %s: %w", path, err)
		}
		if r.same(now) {
			r.Header = now.header
			rec.Disks[path] = r
		}
	}
	return rec.write(dataDir)
}

func (e *Engine) mergeOverlays(ctx context.Context) error {
	dir := e.o.Directories.Data
	if !overlay.Exists(dir) {
		return nil
	}
	e.update(func(s *State) { s.Message = "completing a copy of its disks that was interrupted" })
	images, err := MergeOverlays(ctx, dir)
	for _, path := range images {
		e.message(LevelInfo, "merged into %s what the guest had written during a copy that was interrupted", path)
	}
	if err != nil {
		return fmt.Errorf("complete the copy of its disks that was interrupted: %w", err)
	}
	e.update(func(s *State) { s.Message = preparing })
	return nil
}
