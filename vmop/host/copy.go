package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyStep is how much is copied between two looks at the context, in bytes.
const copyStep = 16 << 20

// copyImage copies a file to a path where there is none, as a clone that shares its
// blocks where the file system has that, and else without its holes. The copy is
// on the storage when it returns. done is told how many bytes were looked at.
func copyImage(ctx context.Context, from, to string, done func(int64)) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = fill(ctx, dst, src, done)
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		return errors.Join(fmt.Errorf("copy %s: %w", from, err), os.Remove(to))
	}
	return nil
}

func fill(ctx context.Context, dst, src *os.File, done func(int64)) error {
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil {
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
			n := min(copyStep, end-at)
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

// extent is the next part of a file that is no hole, from a position on: an empty
// one at its end. A file system that knows of no holes has none.
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

// allocated is what a file has on its storage, in bytes.
func allocated(path string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Blocks * 512, nil
}

// checkRoom refuses copies for which a directory's file system has no room. Where it
// shares blocks, that is more careful than it must be.
func checkRoom(dir string, files []string) error {
	var need int64
	for _, f := range files {
		n, err := allocated(f)
		if err != nil {
			return err
		}
		need += n
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("room in %s: %w", dir, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; need > free {
		return fmt.Errorf("%s has %s free, and the copies need %s", dir, mebibytes(uint64(free)), mebibytes(uint64(need)))
	}
	return nil
}

// errInUse says that a disk image is in use by another machine.
var errInUse = errors.New("it is in use by another machine")

// checkUnused refuses an image that a QEMU has open: it locks some of the bytes from
// 100 on of those that it works with (block/file-posix.c).
func checkUnused(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 100, Len: 200}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if lock.Type != unix.F_UNLCK {
		return fmt.Errorf("%s: %w", path, errInUse)
	}
	return nil
}
