package filecopy

import (
	"errors"
	"os"
)

// Align is the unit to which the size of a raw disk image is rounded up, in bytes: the
// page and the sector of today's disks.
const Align = 4096

// Aligned is the size of the image of a disk that is to have so many bytes.
func Aligned(size int64) int64 { return (size + Align - 1) / Align * Align }

// Grow makes a raw image as large as a disk of a size needs. What it has stays where it
// is, and what is new reads as zeros; one that is large enough is left alone. It is on
// the storage when Grow returns.
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
