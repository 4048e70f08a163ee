package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// createFile makes a file with the content that fill writes, all or nothing,
// and never over a file that exists: then it reports false.
func createFile(path string, fill func(*os.File) error) (created bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	if err := errors.Join(fill(f), f.Sync(), f.Close()); err != nil {
		return false, err
	}
	err = unix.Renameat2(unix.AT_FDCWD, f.Name(), unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not on every file system
		err = os.Link(f.Name(), path)
	}
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// copyFile copies a file to a path where there is none.
func copyFile(from, to string) (bool, error) {
	src, err := os.Open(from)
	if err != nil {
		return false, err
	}
	created, err := createFile(to, func(f *os.File) error {
		_, err := io.Copy(f, src)
		return err
	})
	return created, errors.Join(err, src.Close())
}

// imageAlign is the unit to which the size of a new image is rounded up, in
// bytes: the page and the sector of today's disks.
const imageAlign = 4096

// createImage makes a sparse raw image of size bytes where there is none.
func createImage(path string, size int64) (bool, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	created, err := createFile(path, func(f *os.File) error {
		return f.Truncate((size + imageAlign - 1) / imageAlign * imageAlign)
	})
	if err != nil {
		return false, fmt.Errorf("create disk image: %w", err)
	}
	return created, nil
}
