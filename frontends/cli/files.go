package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// replaceFile writes a file that only its owner can read, so that a reader sees
// the old content or the new one.
func replaceFile(path string, data []byte) error { return putFile(path, data, os.Rename) }

// createFile is replaceFile for a file that must not exist.
func createFile(path string, data []byte) error { return putFile(path, data, renameNew) }

func putFile(path string, data []byte, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = place(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// renameNew renames a file, and replaces none.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) { // the file system cannot, as NFS
		if err = os.Link(from, to); err == nil {
			_ = os.Remove(from) // what matters is in place
		}
		return err
	}
	if err != nil {
		return &fs.PathError{Op: "create", Path: to, Err: err}
	}
	return nil
}
