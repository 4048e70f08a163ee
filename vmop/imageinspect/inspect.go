package imageinspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Inspect reads the image or block device at path, read-only and without locks: its report about an
// image that a machine is writing to is a snapshot at best.
//
// It fails if the file cannot be opened or read, is neither a regular file nor a block device, or
// ctx has ended. A malformed image is not an error; the report's notes describe its problems.
func Inspect(ctx context.Context, path string) (Report, error) {
	// Opening a pipe without O_NONBLOCK would wait for its other end.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Report{}, fmt.Errorf("inspect image: %w", err)
	}
	defer f.Close()
	report, err := inspectFile(ctx, f)
	if err != nil {
		return Report{}, fmt.Errorf("inspect image %s: %w", path, err)
	}
	report.Path = path
	return report, nil
}

func inspectFile(ctx context.Context, f *os.File) (Report, error) {
	info, err := f.Stat()
	if err != nil {
		return Report{}, err
	}
	size, allocated := info.Size(), int64(0)
	switch mode := info.Mode(); {
	case mode.IsRegular():
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return Report{}, err
		}
		// The unit is 512 bytes whatever the file system's block size is, stat(2).
		allocated = st.Blocks * 512
	case mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		if size, err = f.Seek(0, io.SeekEnd); err != nil {
			return Report{}, err
		}
	default:
		return Report{}, errors.New("neither a regular file nor a block device")
	}
	report, err := inspect(ctx, f, size)
	report.AllocatedSize = allocated
	return report, err
}

func inspect(ctx context.Context, image io.ReaderAt, size int64) (Report, error) {
	// All reads go through file, which keeps its first error: a read error is the caller's,
	// whatever could not be parsed because of it.
	file := &source{ctx: ctx, r: image, left: maxWork}
	report := Report{FileSize: size}
	disk, diskSize := examineFormat(&report, file, size)
	if disk != nil {
		examineDisk(&report, disk, diskSize)
	}
	if file.left < 0 {
		report.note("image", errTooMuch)
	}
	return report, file.err
}

// source stops reading when its context ends, after an error, or when the image has caused more
// than maxWork. The latter is no error.
type source struct {
	ctx  context.Context
	r    io.ReaderAt
	err  error
	left int64
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err != nil {
		return 0, s.err
	}
	if s.left -= max(int64(len(p)), minWork); s.left < 0 {
		return 0, errTooMuch
	}
	n, err := s.r.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func examineFormat(report *Report, file io.ReaderAt, size int64) (disk io.ReaderAt, diskSize int64) {
	header := make([]byte, min(size, HeaderSize))
	if _, err := file.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0
	}
	format, virtualSize, err := ProbeFormat(header, size)
	report.Format, report.VirtualSize = format, virtualSize
	if err != nil {
		report.Refused = err.Error()
	}
	switch format {
	case FormatRaw:
		return file, size
	case FormatQcow2:
		disk, err := examineQcow2(report, header, file, size)
		if err != nil {
			report.note("qcow2", err)
			return nil, 0
		}
		return disk, report.VirtualSize
	default:
		report.note(string(format), errNotExamined)
		return nil, 0
	}
}

func examineQcow2(report *Report, header []byte, file io.ReaderAt, size int64) (io.ReaderAt, error) {
	h, err := parseQcow2Header(header, size)
	if err != nil {
		return nil, err
	}
	report.VirtualSize = h.size
	report.Qcow2 = &Qcow2{
		Version:              int(h.version),
		ClusterSize:          int64(h.clusterSize()),
		Encryption:           h.encryptionName(),
		IncompatibleFeatures: h.featureNames(),
	}
	if h.backingOffset != 0 {
		var name []byte
		ok := h.backingOffset <= uint64(size)
		if ok {
			name, ok = read(io.NewSectionReader(file, 0, size), int64(h.backingOffset), int(h.backingSize))
		}
		if !ok {
			return nil, fmt.Errorf("%w: the backing file's name lies beyond the file", ErrInvalidHeader)
		}
		report.Qcow2.BackingFile = string(name)
	}
	disk, err := newQcow2Reader(file, size, h)
	if err != nil {
		return nil, err
	}
	return disk, nil
}

func examineDisk(report *Report, disk io.ReaderAt, size int64) {
	whole := io.NewSectionReader(disk, 0, size)
	report.FileSystem = identifyFileSystem(whole)
	if fs := report.FileSystem; fs != nil {
		if fs.Type == "iso9660" && report.Format == FormatRaw {
			report.Format = FormatISO9660
		}
		examineSeed(report, *fs, whole, 0)
	}
	// A FAT boot sector looks like an MBR with random partitions.
	if fs := report.FileSystem; fs != nil && fs.Type != "iso9660" {
		return
	}
	table, err := readPartitions(whole)
	if err != nil {
		report.note("partition table", err)
	}
	if table == nil {
		return
	}
	report.PartitionTable = table
	for i := range table.Partitions {
		p := &table.Partitions[i]
		if p.Start >= size {
			report.note(fmt.Sprintf("partition %d", p.Index), errors.New("begins beyond the disk"))
			continue
		}
		volume := io.NewSectionReader(disk, p.Start, min(p.Size, size-p.Start))
		p.FileSystem = identifyFileSystem(volume)
		if p.FileSystem != nil {
			examineSeed(report, *p.FileSystem, volume, p.Index)
		}
	}
}
