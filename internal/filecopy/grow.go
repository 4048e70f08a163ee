package filecopy

import (
	"errors"
	"os"
)

// Align is the unit to which the size of a raw disk image is rounded up, in bytes: the page and the
// sector of current disks.
const Align = 4096

// Aligned returns the size of the image of a disk with so many bytes.
func Aligned(size int64) int64 { return (size + Align - 1) / Align * Align }

// Grow extends a raw image to the size that a disk needs. Existing content stays, and new space
// reads as zeros; an image that is large enough is left alone. The change is on the storage when
// Grow returns.
func Grow(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return errors.Join(f.Truncate(Aligned(size)), f.Sync())
}

// GrowFile is [Grow] of the file with a path.
func GrowFile(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(Grow(f, size), f.Close())
}
