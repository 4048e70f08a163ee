package imagesource

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

type sums struct{ sha256, sha512 string }

func (s sums) compare(d *digest) error {
	got := s.sha256
	if d.kind == "sha512" {
		got = s.sha512
	}
	if want := hex.EncodeToString(d.want); got != want {
		return fmt.Errorf("%w: its checksum is %s, and not the %s that was given", ErrChecksum, got, want)
	}
	return nil
}

// ErrChecksum means that the content has another checksum than expected.
var ErrChecksum = errors.New("it is another image, or damaged")

// digestsOf hashes a file from its start. SHA-512 is slower, and computed only if wanted.
func digestsOf(ctx context.Context, file *os.File, want *digest, report func(done, total int64)) (sums, error) {
	info, err := file.Stat()
	if err != nil {
		return sums{}, err
	}
	a, b := sha256.New(), sha512.New()
	r := &reader{ctx: ctx, r: io.NewSectionReader(file, 0, info.Size()), report: func(n int64) { report(n, info.Size()) }}
	to, long := io.Writer(a), want != nil && want.kind == "sha512"
	if long {
		to = io.MultiWriter(a, b)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, r, make([]byte, bufferSize)); err != nil {
		return sums{}, err
	}
	out := sums{sha256: hex.EncodeToString(a.Sum(nil))}
	if long {
		out.sha512 = hex.EncodeToString(b.Sum(nil))
	}
	return out, nil
}

type reader struct {
	ctx    context.Context
	r      io.Reader
	n      int64
	report func(int64)
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.r.Read(p)
	r.n += int64(n)
	r.report(r.n)
	return n, err
}

// bufferSize is how much of a transfer is held in memory, in bytes.
const bufferSize = 256 << 10
