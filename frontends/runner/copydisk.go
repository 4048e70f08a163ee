package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// errOtherFormat refuses a disk that a guest has made to look like an image of another format: with
// that format, a machine would give its guest the files that the image refers to.
var errOtherFormat = errors.New("a guest has written what looks like another format of images")

// copyDisk copies a disk that guests have used to a new file, without its holes. The job, not the
// content, determines its format.
func copyDisk(ctx context.Context, job runnerconfig.Import, to string, progress func(string), watch func(runnerconfig.ImportProgress)) error {
	src, err := os.OpenFile(job.Copy.File, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	device := info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0
	switch {
	case device:
		if size, err = src.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a block device", job.Copy.File)
	}
	disk, err := probeAs(src, size, job.Copy.Format)
	if err != nil {
		return err
	}
	if job.Keep {
		disk = size // of a file that is kept, its length counts
	}
	if disk > filecopy.Aligned(job.Size) {
		return fmt.Errorf("the disk has %d bytes, more than the %d asked for: %w", disk, job.Size, errSmaller)
	}
	var done int64
	var told time.Time
	tell := func(n int64) {
		done += n
		watch(runnerconfig.ImportProgress{Step: string(imagesource.Copying), Done: min(done, size), Total: size})
		if time.Since(told) >= tellImage {
			told = time.Now()
			progress(fmt.Sprintf("copying, %d of %d MiB", done>>20, size>>20))
		}
	}
	if !device {
		return filecopy.CopyFrom(ctx, src, to, tell)
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = copyDevice(ctx, dst, src, size, tell)
	return errors.Join(err, dst.Sync(), dst.Close())
}

// probeAs returns the size in bytes that a guest sees of an image of a format. It fails if the
// content looks like another format.
func probeAs(image io.ReaderAt, size int64, format string) (int64, error) {
	header := make([]byte, min(size, imageinspect.HeaderSize))
	if _, err := image.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	found, disk, err := imageinspect.ProbeFormat(header, size)
	looks := "raw"
	if err != nil || found != imageinspect.FormatRaw {
		looks = string(found)
	}
	switch {
	case looks != format && format == "raw":
		return 0, fmt.Errorf("it is raw, and looks like %s: %w", looks, errOtherFormat)
	case looks != format:
		return 0, fmt.Errorf("it is to be %s, and looks like %s: %w", format, looks, errOtherFormat)
	}
	return disk, err
}

// copyDevice copies a block device to a new file, without zeros.
func copyDevice(ctx context.Context, dst *os.File, src io.ReaderAt, size int64, done func(int64)) error {
	out := &filecopy.Sparse{File: dst}
	buf := make([]byte, 1<<20)
	for out.At < size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := buf[:min(int64(len(buf)), size-out.At)]
		if _, err := io.ReadFull(io.NewSectionReader(src, out.At, int64(len(part))), part); err != nil {
			return err
		}
		if _, err := out.Write(part); err != nil {
			return err
		}
		done(int64(len(part)))
	}
	return out.Flush()
}
