package filecopy

import (
	"bytes"
	"context"
	"io"
	"os"
)

// Same reports whether the first size bytes of two files or block devices are equal. With a limit,
// it compares only that many non-zero bytes. done is called with the number of bytes processed
// since its last call.
func Same(ctx context.Context, a, b *os.File, size, limit int64, done func(int64)) (bool, error) {
	bufA, bufB := make([]byte, 1<<20), make([]byte, 1<<20)
	for at, seen := int64(0), int64(0); at < size && (limit <= 0 || seen < limit); {
		// A hole in both is zero in both.
		dataA, _, err := extent(a, at, size)
		if err != nil {
			return false, err
		}
		dataB, _, err := extent(b, at, size)
		if err != nil {
			return false, err
		}
		if next := min(dataA, dataB); next > at {
			done(next - at)
			at = next
			continue
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		n := min(int64(len(bufA)), size-at)
		for f, buf := range map[*os.File][]byte{a: bufA[:n], b: bufB[:n]} {
			if _, err := io.ReadFull(io.NewSectionReader(f, at, n), buf); err != nil {
				return false, err
			}
		}
		if !bytes.Equal(bufA[:n], bufB[:n]) {
			return false, nil
		}
		for p := bufA[:n]; len(p) > 0; {
			k, zero := run(p, at)
			if !zero {
				seen += int64(k)
			}
			p, at = p[k:], at+int64(k)
		}
		done(n)
	}
	return true, nil
}
