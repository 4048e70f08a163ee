package filecopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Over copies a file or block device, from a position to size, over the same part of another one,
// whose content is arbitrary: zeros and holes become zeros, if possible by deallocation. done is
// called with the number of bytes processed since its last call. The caller must sync dst.
func Over(ctx context.Context, dst, src *os.File, from, size int64, done func(int64)) error {
	buf := make([]byte, 1<<20)
	for at := from; at < size; {
		data, end, err := extent(src, at, size)
		if err != nil {
			return err
		}
		if data > at {
			if err := Zero(ctx, dst, at, data); err != nil {
				return err
			}
			done(data - at)
		}
		for at = data; at < end; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			part := buf[:min(int64(len(buf)), end-at)]
			if _, err := io.ReadFull(io.NewSectionReader(src, at, int64(len(part))), part); err != nil {
				return fmt.Errorf("read %s: %w", src.Name(), err)
			}
			if err := overWith(ctx, dst, part, at); err != nil {
				return err
			}
			at += int64(len(part))
			done(int64(len(part)))
		}
	}
	return nil
}

// overWith writes p at a position, with its blocks of zeros as [Zero] does.
func overWith(ctx context.Context, dst *os.File, p []byte, at int64) error {
	for len(p) > 0 {
		n, zero := run(p, at)
		var err error
		if zero {
			err = Zero(ctx, dst, at, at+int64(n))
		} else {
			_, err = dst.WriteAt(p[:n], at)
		}
		if err != nil {
			return err
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// run returns how many of the first bytes of p, which are at a position of a file, are in blocks of
// the same sort: zeros, or not.
func run(p []byte, at int64) (n int, zero bool) {
	for n < len(p) {
		block := min(hole-int((at+int64(n))%hole), len(p)-n)
		z := bytes.Equal(p[n:n+block], zeros[:block])
		if n == 0 {
			zero = z
		} else if z != zero {
			break
		}
		n += block
	}
	return n, zero
}

// zeroStep is the number of bytes between two checks of the context: a device without a command for
// zeroing writes them all.
const zeroStep = 256 << 20

// Zero makes a part of a file or block device zero, from one position to another, and deallocates
// it where deallocated space reads as zeros.
func Zero(ctx context.Context, f *os.File, from, to int64) error {
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Neither a device nor its cache can deallocate less than a block.
		n := min(hole-from%hole, to-from)
		if n == hole {
			n = min((to-from)/hole*hole, zeroStep)
		}
		if err := zeroPart(f, from, n, n%hole == 0); err != nil {
			return fmt.Errorf("zero %s: %w", f.Name(), err)
		}
		from += n
	}
	return nil
}

func zeroPart(f *os.File, at, n int64, blocks bool) error {
	if blocks {
		// For a block device, the first mode fails unless it reads as zeros afterwards, and the
		// second one writes zeros if the device has no command (blkdev_fallocate).
		for _, mode := range []uint32{unix.FALLOC_FL_PUNCH_HOLE, unix.FALLOC_FL_ZERO_RANGE} {
			err := unix.Fallocate(int(f.Fd()), mode|unix.FALLOC_FL_KEEP_SIZE, at, n)
			if err == nil {
				return nil
			}
			if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
				return err
			}
		}
	}
	for n > 0 {
		part := min(n, hole)
		if _, err := f.WriteAt(zeros[:part], at); err != nil {
			return err
		}
		at, n = at+part, n-part
	}
	return nil
}
