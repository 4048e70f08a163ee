package main

import (
	"context"
	"os"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// probe is the format of an image as machines have it, and what a guest sees of it. Of
// a copy of what guests have used it is the one that the job says: another one is an
// error, because the next machine would go by what is in it.
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

// probeDisk says what a disk is that was just made, or was made by an attempt before. No
// guest has written to it.
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

// enlarge makes a raw image as large as its disk. One of qcow2 is enlarged by QEMU when
// a machine has it.
func enlarge(path string, job runnerconfig.Import) error {
	format, has, err := probe(path, job)
	if err != nil || format != "raw" || has >= job.Size {
		return err
	}
	return filecopy.GrowFile(path, job.Size)
}
