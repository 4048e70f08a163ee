package imagesource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/filecopy"
)

type compression string

const (
	unpackedAlready compression = ""
	archived        compression = "tar" // in messages: layers that are not compressed
	gzipped         compression = "gzip"
	xzPacked        compression = "xz"
	zstdPacked      compression = "zstd"
)

func compressionOf(header []byte) compression {
	switch {
	case bytes.HasPrefix(header, []byte("\x1f\x8b")):
		return gzipped
	case bytes.HasPrefix(header, []byte("\xfd7zXZ\x00")):
		return xzPacked
	case bytes.HasPrefix(header, []byte("\x28\xb5\x2f\xfd")):
		return zstdPacked
	}
	return unpackedAlready
}

var errPacked = errors.New("it cannot be unpacked")

// unpacker returns a reader of the decompressed content. An xz file must have passed checkXZ.
func unpacker(kind compression, r io.Reader) (io.ReadCloser, error) {
	switch kind {
	case gzipped:
		return gzip.NewReader(r)
	case xzPacked:
		x, err := xz.NewReader(r)
		return io.NopCloser(x), err
	case zstdPacked:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

func (f *fetch) unpack(ctx context.Context, file *os.File) (bool, error) {
	header := make([]byte, 16)
	n, err := io.ReadFull(file, header)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	kind := compressionOf(header[:n])
	if kind == unpackedAlready {
		return false, nil
	}
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	limit, total := f.o.maxSize(), int64(0)
	if kind == xzPacked {
		size, err := checkXZ(file, info.Size())
		if err != nil {
			return false, fmt.Errorf("%w (%s): %w", errPacked, kind, err)
		}
		if size > uint64(limit) {
			return false, tooLargeUnpacked(kind, limit)
		}
		total = int64(size)
	}
	// Where the unpacked length is known, progress in unpacked bytes is more exact: zeros compress
	// well.
	report := f.o.meter(Unpacking)
	ofPacked, ofImage := func(n int64) { report(n, info.Size()) }, func(int64) {}
	if total > 0 {
		ofPacked, ofImage = ofImage, func(n int64) { report(n, total) }
	}
	packed := &reader{ctx: ctx, r: io.NewSectionReader(file, 0, info.Size()), report: ofPacked}
	in, err := unpacker(kind, bufio.NewReaderSize(packed, bufferSize))
	if err == nil {
		err = writeImage(f.unpacked(), &reader{ctx: ctx, r: in, report: ofImage}, limit)
		if cerr := in.Close(); err == nil {
			err = cerr
		}
	}
	return true, explainUnpacking(ctx, kind, limit, err)
}

func tooLargeUnpacked(kind compression, limit int64) error {
	return fmt.Errorf("%w: unpacked (%s) it has more than %s, which is as much as is taken", ErrTooLarge, kind, quantity(limit))
}

// explainUnpacking distinguishes errors of the storage and interruptions from errors in the input.
func explainUnpacking(ctx context.Context, kind compression, limit int64, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(refusal)):
		return err
	case errors.Is(err, errLimit):
		return tooLargeUnpacked(kind, limit)
	case errors.As(err, new(*fs.PathError)):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w (%s): its end is missing", errPacked, kind)
	}
	return fmt.Errorf("%w (%s): %w", errPacked, kind, err)
}

// refusal is an error about the content of a compressed file, not about its compression.
type refusal struct{ error }

var errLimit = errors.New("more than the limit")

// writeImage writes the content of r to a new file, with holes in place of zeros.
func writeImage(path string, r io.Reader, limit int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	out := &filecopy.Sparse{File: file}
	n, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{io.LimitReader(r, limit+1)}, make([]byte, bufferSize))
	if err == nil && n > limit {
		err = errLimit
	}
	if err == nil {
		err = out.Flush()
	}
	return errors.Join(err, file.Close())
}
