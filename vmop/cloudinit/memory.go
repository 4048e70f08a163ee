package cloudinit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// memory is a disk of fixed size in memory for go-diskfs. Only random access is implemented: FAT
// volumes use nothing else.
type memory struct {
	data []byte
}

var errSequential = errors.New("sequential access to a volume in memory")

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.data)) {
		return 0, fmt.Errorf("read at %d beyond the volume of %d bytes", off, len(m.data))
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt fails rather than grows: go-diskfs derives the number of clusters from the size of its
// table and could otherwise allocate one beyond the volume.
func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.data)) || len(p) > len(m.data)-int(off) {
		return 0, fmt.Errorf("write of %d bytes at %d beyond the volume of %d bytes", len(p), off, len(m.data))
	}
	return copy(m.data[off:], p), nil
}

func (m *memory) Stat() (fs.FileInfo, error)     { return nil, errSequential }
func (m *memory) Read([]byte) (int, error)       { return 0, errSequential }
func (m *memory) Seek(int64, int) (int64, error) { return 0, errSequential }
func (m *memory) Close() error                   { return nil }
