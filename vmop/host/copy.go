package host

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/filecopy"
)

func allocated(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return filecopy.Allocated(info), nil
}

// checkRoom refuses copies for which a directory's file system has no room. It ignores that copies
// may share blocks.
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

var errInUse = errors.New("it is in use by another machine")

// checkUnused refuses an image that a QEMU has open: it locks bytes from 100 on of its images
// (block/file-posix.c).
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
