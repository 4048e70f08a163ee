package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// copyFile copies a file to a path where there is none.
func copyFile(from, to string) (bool, error) {
	src, err := os.Open(from)
	if err != nil {
		return false, err
	}
	created, err := atomicfile.Create(to, func(f *os.File) error {
		_, err := io.Copy(f, src)
		return err
	})
	return created, errors.Join(err, src.Close())
}

// CreateImage makes the empty image of a disk, as a start does, where there is no file:
// created says that there was none. It is for disks that come while a machine runs.
func CreateImage(path string, size int64) (created bool, err error) { return createImage(path, size) }

// createImage makes a sparse raw image of size bytes where there is none.
func createImage(path string, size int64) (bool, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	created, err := atomicfile.Create(path, func(f *os.File) error {
		return f.Truncate(filecopy.Aligned(size))
	})
	if err != nil {
		return false, fmt.Errorf("create disk image: %w", err)
	}
	return created, nil
}

// growDisk makes a raw image as large as its configuration asks for. A machine whose
// disk cannot grow starts with it as it is.
func (e *Engine) growDisk(found *os.File, has int64, wanted runnerconfig.Bytes) {
	path := found.Name()
	if err := growImage(found, int64(wanted)); err != nil {
		e.message(LevelWarning, "the disk image %s has %s and does not grow to the %s asked for: %v", path, runnerconfig.Bytes(has), wanted, err)
		return
	}
	e.message(LevelInfo, "the disk image %s has grown from %s to %s; the guest may enlarge its partitions", path, runnerconfig.Bytes(has), wanted)
}

// growImage makes a raw image larger: the very file that was found, whatever has its path
// by now.
func growImage(found *os.File, size int64) error {
	return filecopy.GrowFile("/proc/self/fd/"+strconv.Itoa(int(found.Fd())), size)
}
