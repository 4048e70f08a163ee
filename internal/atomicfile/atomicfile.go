// Package atomicfile writes files as a whole: a reader sees the old content or
// the new one, and what was written survives a power cut.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replace writes a file that only its owner can read, replacing whatever has the path.
func Replace(path string, data []byte) error { return replace(path, data, (*os.File).Sync) }

// ReplaceSoon is [Replace] without waiting for the storage: after a power cut within some seconds,
// the file may have the old content, or none.
func ReplaceSoon(path string, data []byte) error {
	return replace(path, data, func(*os.File) error { return nil })
}

func replace(path string, data []byte, sync func(*os.File) error) error {
	f, err := begin(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	}, sync)
	if err != nil {
		return err
	}
	if err := os.Rename(f, path); err != nil {
		return errors.Join(&fs.PathError{Op: "replace", Path: path, Err: reason(err)}, os.Remove(f))
	}
	return nil
}

// Create creates a file with the content that fill writes, readable by its owner only. It never
// replaces a file, in which case it reports false.
func Create(path string, fill func(*os.File) error) (created bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	f, err := begin(path, fill, (*os.File).Sync)
	if err != nil {
		return false, err
	}
	defer func() {
		if rerr := os.Remove(f); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	err = renameNew(f, path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "create", Path: path, Err: reason(err)}
	}
	return true, SyncDir(filepath.Dir(path))
}

// Rename gives a complete file its name, replacing whatever has it.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// RenameNew is [Rename] that never replaces a file: then the error is fs.ErrExist, and the file
// keeps its old name.
func RenameNew(from, to string) error {
	if err := renameNew(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) { // not on every file system
		return err
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// begin writes a temporary file beside a path and returns its name. Errors name the path instead,
// which the user knows.
func begin(path string, fill, sync func(*os.File) error) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", &fs.PathError{Op: "create", Path: path, Err: reason(err)}
	}
	if err := errors.Join(fill(f), sync(f), f.Close()); err != nil {
		err = &fs.PathError{Op: "write", Path: path, Err: reason(err)}
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func reason(err error) error {
	var number unix.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}
