package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

var (
	// errNotRestored: the provisioner does not support snapshots, or the snapshot is not one of a
	// disk.
	errNotRestored = errors.New("the volume has nothing of a disk: whoever made it knows nothing of snapshots, or the snapshot is none of a disk's volume")
	errRefusedDisk = errors.New("what was restored is refused")
	errHalfMade    = errors.New("the snapshot was taken while the disk was being made, and has a part of it")
)

// adoptRestored adopts what its volume was restored with as the disk. Nothing is written to it
// except to grow it.
func adoptRestored(ctx context.Context, job runnerconfig.Import, watch func(runnerconfig.ImportProgress)) (out runnerconfig.Imported, err error) {
	f, err := os.OpenFile(job.File, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, fmt.Errorf("there is no file %s: %w", filepath.Base(job.File), errNotRestored)
	case errors.Is(err, unix.ELOOP):
		return out, fmt.Errorf("%s is a symbolic link: %w", filepath.Base(job.File), errNotRestored)
	case err != nil:
		return out, err
	}
	defer f.Close()
	size, err := sizeOf(f)
	if err != nil {
		return out, err
	}
	if job.Device {
		if err := holdsSomething(ctx, f, size, watch); err != nil {
			return out, err
		}
	} else if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return out, errors.Join(err, fmt.Errorf("%s is no file: %w", filepath.Base(job.File), errNotRestored))
	}
	disk, err := probeAs(f, size, job.Restored.Format)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return out, err
	} else if err != nil {
		return out, fmt.Errorf("%w: %w", errRefusedDisk, err)
	}
	out = runnerconfig.Imported{Format: job.Restored.Format, Size: disk}
	if job.Device {
		return out, nil
	}
	if disk > filecopy.Aligned(job.Size) {
		return out, fmt.Errorf("the disk has %d bytes, more than the %d asked for: %w", disk, job.Size, errSmaller)
	}
	if err := enlarge(job.File, job); err != nil {
		return out, err
	}
	if err := writeRecord(job); err != nil {
		return out, err
	}
	return probeDisk(ctx, job, watch)
}

// holdsSomething fails if a block device is all zeros, as empty volumes are, or has the mark of an
// incomplete disk.
func holdsSomething(ctx context.Context, dev io.ReaderAt, size int64, watch func(runnerconfig.ImportProgress)) error {
	buf, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(buf)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := buf[:min(int64(len(buf)), size-at)]
		if _, err := io.ReadFull(io.NewSectionReader(dev, at, int64(len(part))), part); err != nil {
			return err
		}
		switch {
		case at == 0 && bytes.HasPrefix(part, []byte(deviceMark)):
			return errHalfMade
		case !bytes.Equal(part, zeros[:len(part)]):
			return nil
		}
		watch(runnerconfig.ImportProgress{Step: string(imagesource.Verifying), Done: at + int64(len(part)), Total: size})
	}
	return fmt.Errorf("the block device is all zeros: %w; an empty disk needs no snapshot", errNotRestored)
}
