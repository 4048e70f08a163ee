package main

import (
	"context"
	"os"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// probe returns the format of an image as machines use it, and the size that a guest sees. A copy
// of what guests have used must have the job's format: another one is an error, because the next
// machine would follow the content.
func probe(path string, job runnerconfig.Import) (format string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if format, cd, known := job.Known(); known {
		size, err = probeAs(f, info.Size(), format)
		if err == nil && job.Keep && cd {
			return runnerconfig.FormatISO, size, nil
		}
		return format, size, err
	}
	found, size, err := imageinspect.ProbeImported(f, info.Size())
	switch {
	case found == imageinspect.FormatQcow2:
		return "qcow2", size, err
	case found == imageinspect.FormatISO9660 && job.Keep:
		return runnerconfig.FormatISO, size, err
	}
	return "raw", size, err
}

// probeDisk describes a disk that was made now or by an earlier attempt. No guest has written to
// it.
func probeDisk(ctx context.Context, job runnerconfig.Import, watch func(runnerconfig.ImportProgress)) (out runnerconfig.Imported, err error) {
	format, size, err := probe(job.File, job)
	out = runnerconfig.Imported{Format: format, Size: size}
	if err == nil && job.Digest {
		out.SHA256, out.Length, err = digestOf(ctx, job.File, watch)
	}
	if err != nil || !job.Keep {
		return out, err
	}
	info, err := os.Lstat(job.File)
	if err != nil {
		return out, err
	}
	out.Stored = filecopy.Allocated(info)
	return out, nil
}

// enlarge grows a raw image to its disk's size. A qcow2 image is grown by QEMU when a machine uses
// it.
func enlarge(path string, job runnerconfig.Import) error {
	format, has, err := probe(path, job)
	if err != nil || format != "raw" || has >= job.Size {
		return err
	}
	return filecopy.GrowFile(path, job.Size)
}
