package main

import (
	"io/fs"
	"os"

	"github.com/vmop/sdk/internal/atomicfile"
)

func createFile(path string, data []byte) error {
	created, err := atomicfile.Create(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err == nil && !created {
		err = &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	return err
}
