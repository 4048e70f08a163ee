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

// CreateImage creates the empty image of a disk, as a start does, unless the file exists, and
// reports whether it did. It is for disks that are added while a machine runs.
func CreateImage(path string, size int64) (created bool, err error) { return createImage(path, size) }

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

// growDisk does not fail: a machine whose disk cannot grow starts with it as it is.
func (e *Engine) growDisk(found *os.File, has int64, wanted runnerconfig.Bytes) {
	path := found.Name()
	if err := growImage(found, int64(wanted)); err != nil {
		e.message(LevelWarning, "the disk image %s has %s and does not grow to the %s asked for: %v", path, runnerconfig.Bytes(has), wanted, err)
		return
	}
	e.message(LevelInfo, "the disk image %s has grown from %s to %s; the guest may enlarge its partitions", path, runnerconfig.Bytes(has), wanted)
}

// growImage enlarges the file that was found, whatever its path leads to by now.
func growImage(found *os.File, size int64) error {
	return filecopy.GrowFile("/proc/self/fd/"+strconv.Itoa(int(found.Fd())), size)
}
