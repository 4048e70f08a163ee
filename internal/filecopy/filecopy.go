// Package filecopy copies large files without their holes, or by reference where the
// file system can do that.
package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// step is the number of bytes between two checks of the context.
const step = 16 << 20

// Copy copies a file to a path that does not exist, as a clone that shares its blocks if the file
// system supports that, and otherwise without its holes. The copy is on the storage when it
// returns. done is called with the number of bytes processed since its last call.
func Copy(ctx context.Context, from, to string, done func(int64)) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return CopyFrom(ctx, src, to, done)
}

// CopyFrom is [Copy] of an open file.
func CopyFrom(ctx context.Context, src *os.File, to string, done func(int64)) error {
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = fill(ctx, dst, src, clone, done)
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		return errors.Join(fmt.Errorf("copy %s: %w", src.Name(), err), os.Remove(to))
	}
	return nil
}

// clone has a file share all blocks of another one (ioctl_ficlone(2)). It fails without a change if
// the file system does not support that.
func clone(dst, src *os.File) error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) }

func fill(ctx context.Context, dst, src *os.File, clone func(dst, src *os.File) error, done func(int64)) error {
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if clone(dst, src) == nil {
		done(info.Size())
		return nil
	}
	if err := dst.Truncate(info.Size()); err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		data, end, err := extent(src, at, info.Size())
		if err != nil {
			return err
		}
		for at = data; at < end; {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			n := min(step, end-at)
			if _, err := dst.Seek(at, io.SeekStart); err != nil {
				return err
			}
			// The kernel copies, where it can.
			got, err := io.Copy(dst, io.NewSectionReader(src, at, n))
			if err != nil {
				return err
			}
			if got != n {
				return fmt.Errorf("it became shorter meanwhile: %w", io.ErrUnexpectedEOF)
			}
			at += n
			done(n)
		}
	}
	return nil
}

// extent returns the next part of a file, from a position on, that is not a hole, an empty one at
// its end. Without support by the file system there are no holes.
func extent(f *os.File, from, size int64) (start, end int64, err error) {
	start, err = unix.Seek(int(f.Fd()), from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL):
		return from, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
	return start, min(end, size), err
}
