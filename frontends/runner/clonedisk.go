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

// clonedEnough is how much that is no zero is compared of what nobody writes to, in
// bytes: a storage that makes no clone makes an empty volume.
const clonedEnough = 256 << 20

// isClone reports whether a file or block device begins with what the job copies. Of a
// disk all of it counts: a guest may have written to it after it was cloned.
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

// adoptClone makes a disk of the file of a volume that was cloned, which its record says
// is that of the job's source. It reports whether there was one that is as it should be;
// one that is not, it removes. A file of somebody else's is left alone.
func adoptClone(ctx context.Context, job runnerconfig.Import, watch func(runnerconfig.ImportProgress)) (adopted bool, err error) {
	if recorded(job) != job.Copy.CloneOf {
		return false, nil
	}
	same, err := isClone(ctx, job, job.File, watch)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // the record came before its disk
	case err != nil:
		return false, err
	case !same:
		// The record goes last: it says that this is no disk of somebody's.
		return false, errors.Join(os.Remove(job.File), atomicfile.SyncDir(filepath.Dir(job.File)), os.Remove(recordOf(job)))
	}
	// What is in it is as of a copy.
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

// adoptDevice makes a disk of a block device that was cloned, with zeros behind it. It
// reports whether it was a clone.
func adoptDevice(ctx context.Context, job runnerconfig.Import, dev *os.File, size int64, watch func(runnerconfig.ImportProgress)) (out runnerconfig.Imported, err error) {
	same, err := isClone(ctx, job, job.File, watch)
	if err != nil || !same {
		return out, err
	}
	img, err := imageForDevice(ctx, job, nil, watch) // which looks at what is copied
	if err != nil {
		return out, err
	}
	if err := errors.Join(filecopy.Zero(ctx, dev, img.size, size), dev.Sync()); err != nil {
		return out, err
	}
	return runnerconfig.Imported{Format: "raw", Size: size, Cloned: true}, nil
}
