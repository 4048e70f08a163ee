package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// clonedEnough is how many non-zero bytes are compared of a source that nothing writes to: storage
// that does not clone creates an empty volume.
const clonedEnough = 256 << 20

// isClone reports whether a file or block device begins with what the job copies. A disk is
// compared completely: a guest may have written to it after it was cloned.
func isClone(ctx context.Context, job runnerconfig.Import, path string, watch func(runnerconfig.ImportProgress)) (bool, error) {
	var files [2]*os.File
	var sizes [2]int64
	for i, p := range []string{job.Copy.File, path} {
		f, err := os.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return false, err
		}
		defer f.Close()
		if sizes[i], err = sizeOf(f); err != nil {
			return false, err
		}
		files[i] = f
	}
	if sizes[1] < sizes[0] {
		return false, nil
	}
	limit := int64(clonedEnough)
	if job.Copy.Whole {
		limit = 0
	}
	var done int64
	return filecopy.Same(ctx, files[0], files[1], sizes[0], limit, func(n int64) {
		done += n
		watch(runnerconfig.ImportProgress{Step: string(imagesource.Verifying), Done: done, Total: sizes[0]})
	})
}

// adoptClone adopts the file of a cloned volume as the disk if its record says that it is that of
// the job's source, and reports whether it did. A file that is not as it should be is removed; one
// that, by its record, is not the source's is left alone.
func adoptClone(ctx context.Context, job runnerconfig.Import, watch func(runnerconfig.ImportProgress)) (adopted bool, err error) {
	if recorded(job) != job.Copy.CloneOf {
		return false, nil
	}
	same, err := isClone(ctx, job, job.File, watch)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // the record was written before its disk
	case err != nil:
		return false, err
	case !same:
		// The record goes last: it says that the file is nobody else's disk.
		return false, errors.Join(os.Remove(job.File), atomicfile.SyncDir(filepath.Dir(job.File)), os.Remove(recordOf(job)))
	}
	// Its content is checked like that of a copy.
	if _, size, err := probe(job.File, job); err != nil {
		return false, err
	} else if !job.Keep && size > filecopy.Aligned(job.Size) {
		return false, errSmaller
	}
	if !job.Keep {
		if err := enlarge(job.File, job); err != nil {
			return false, err
		}
	}
	return true, writeRecord(job)
}

// adoptDevice makes a cloned block device the disk, with zeros behind it, and reports whether it
// was a clone.
func adoptDevice(ctx context.Context, job runnerconfig.Import, dev *os.File, size int64, watch func(runnerconfig.ImportProgress)) (out runnerconfig.Imported, err error) {
	same, err := isClone(ctx, job, job.File, watch)
	if err != nil || !same {
		return out, err
	}
	img, err := imageForDevice(ctx, job, nil, watch) // which inspects the source
	if err != nil {
		return out, err
	}
	if err := errors.Join(filecopy.Zero(ctx, dev, img.size, size), dev.Sync()); err != nil {
		return out, err
	}
	return runnerconfig.Imported{Format: "raw", Size: size, Cloned: true}, nil
}
