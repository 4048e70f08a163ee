package imageinspect

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// qcow2Reader reads the disk in a qcow2 image. It reads table entries on demand and keeps none, so
// that no header can make it use much memory.
type qcow2Reader struct {
	file     io.ReaderAt
	fileSize int64
	header   qcow2Header

	// The most recently unpacked clusters, the latest at the end, and how many bytes may still be
	// unpacked: a few bytes of an image can unpack to a cluster of 2 MiB, at every read of it.
	unpacked []unpackedCluster
	left     int64
}

type unpackedCluster struct {
	offset uint64
	data   []byte
}

// unpackedClusters is how many clusters are kept: following a chain of a FAT volume alternates
// between its table and its data.
const unpackedClusters = 4

func newQcow2Reader(file io.ReaderAt, fileSize int64, h qcow2Header) (*qcow2Reader, error) {
	switch {
	case h.backingOffset != 0 || h.backingSize != 0:
		return nil, fmt.Errorf("%w: the image has a backing file", errNotExamined)
	case h.incompatible&qcow2DataFile != 0:
		return nil, fmt.Errorf("%w: the image has an external data file", errNotExamined)
	case h.encryption != 0:
		return nil, fmt.Errorf("%w: the image is encrypted", errNotExamined)
	case h.incompatible&qcow2ExtendedL2 != 0:
		return nil, fmt.Errorf("%w: extended L2 entries are not supported", errNotExamined)
	case h.incompatible&^qcow2Harmless != 0:
		return nil, fmt.Errorf("%w: unsupported incompatible features", errNotExamined)
	}
	return &qcow2Reader{file: file, fileSize: fileSize, header: h, left: maxWork}, nil
}

// ReadAt implements io.ReaderAt. It is not safe for concurrent use.
func (q *qcow2Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	var done int
	for done < len(p) {
		at := off + int64(done)
		if at >= q.header.size {
			return done, io.EOF
		}
		within := uint64(at) & (q.header.clusterSize() - 1)
		n := min(uint64(len(p)-done), q.header.clusterSize()-within, uint64(q.header.size-at))
		if err := q.readCluster(p[done:done+int(n)], uint64(at)>>q.header.clusterBits, within); err != nil {
			return done, err
		}
		done += int(n)
	}
	return done, nil
}

// Entries of the L1 and L2 tables, from docs/interop/qcow2.txt.
const (
	entryOffset     = 0x00fffffffffffe00
	entryCompressed = 1 << 62
	entryZero       = 1 << 0
)

// readCluster reads from the guest's cluster of the given index, starting at byte within.
func (q *qcow2Reader) readCluster(p []byte, index, within uint64) error {
	clear(p)
	l2Bits := q.header.l2Bits()
	l1Index := index >> l2Bits
	if l1Index >= uint64(q.header.l1Entries) {
		return fmt.Errorf("%w: cluster %d beyond the L1 table", ErrInvalidHeader, index)
	}
	l1, err := q.entry(uint64(q.header.l1Offset) + 8*l1Index)
	if err != nil {
		return err
	}
	l2Table := l1 & entryOffset
	if l2Table == 0 {
		return nil
	}
	l2, err := q.entry(l2Table + 8*(index&(1<<l2Bits-1)))
	if err != nil {
		return err
	}
	if l2&entryCompressed != 0 {
		cluster, err := q.unpack(l2)
		if err != nil {
			return err
		}
		copy(p, cluster[within:])
		return nil
	}
	data := l2 & entryOffset
	if data == 0 || q.header.version >= 3 && l2&entryZero != 0 {
		return nil
	}
	if data%q.header.clusterSize() != 0 {
		return fmt.Errorf("%w: qcow2 cluster at %d is not aligned", ErrInvalidHeader, data)
	}
	return q.readFile(p, data+within)
}

func (q *qcow2Reader) entry(at uint64) (uint64, error) {
	var b [8]byte
	if err := q.readFile(b[:], at); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b[:]), nil
}

// readFile reads from the image file; as in QEMU, bytes missing at its end are zero.
func (q *qcow2Reader) readFile(p []byte, at uint64) error {
	if at >= uint64(q.fileSize) {
		return fmt.Errorf("%w: qcow2 offset %d beyond the file of %d bytes", ErrInvalidHeader, at, q.fileSize)
	}
	_, err := q.file.ReadAt(p, int64(at))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// unpack returns the cluster that a compressed L2 entry describes: below bit x the offset in bytes,
// above it the number of further sectors that the data may extend into.
func (q *qcow2Reader) unpack(l2 uint64) ([]byte, error) {
	if q.header.zstd {
		return nil, fmt.Errorf("%w: zstd compression is not supported", errNotExamined)
	}
	x := 62 - (q.header.clusterBits - 8)
	offset := l2 & (1<<x - 1)
	sectors := (l2&(1<<62-1))>>x + 1
	length := sectors*512 - offset%512
	for _, c := range q.unpacked {
		if c.offset == offset {
			return c.data, nil
		}
	}
	if q.left -= int64(q.header.clusterSize()); q.left < 0 {
		return nil, errTooMuch
	}
	// At most two clusters, 4 MiB.
	packed := make([]byte, length)
	if err := q.readFile(packed, offset); err != nil {
		return nil, err
	}
	cluster := make([]byte, q.header.clusterSize())
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(packed)), cluster); err != nil {
		return nil, fmt.Errorf("qcow2 compressed cluster at %d: %w", offset, err)
	}
	if len(q.unpacked) == unpackedClusters {
		q.unpacked = slices.Delete(q.unpacked, 0, 1)
	}
	q.unpacked = append(q.unpacked, unpackedCluster{offset, cluster})
	return cluster, nil
}
