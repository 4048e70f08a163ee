package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"
)

// Downloaded is what was downloaded.
type Downloaded struct {
	// Format is raw, qcow2, or iso for the image of a CD; Size is in bytes, and SHA256
	// in hexadecimal digits.
	Format string
	Size   int64
	SHA256 string
}

// ErrDamaged says that something else came than was sent.
var ErrDamaged = errors.New("it was damaged on the way")

// maxWindow is what is looked back by at most when a download is unpacked, in bytes.
const maxWindow = 8 << 20

// Download writes the content of a disk to content, and the same packed by zstd to
// packed; either may be nil. Without an error all has come, as it was sent. report is told
// how far it is, often.
func (c *Client) Download(ctx context.Context, content, packed io.Writer, report func(done, total int64)) (Downloaded, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.Address+diskPath, http.NoBody)
	if err != nil {
		return Downloaded{}, err
	}
	request.Header.Set("Accept-Encoding", zstdCoding)
	got, err := c.client().Do(request)
	if err != nil {
		return Downloaded{}, plain(broken(ctx, err))
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(got.Body, maxSaid))
		return Downloaded{}, errors.Join(refused(got, data), err)
	}
	out := Downloaded{Format: got.Header.Get(formatHeader)}
	var isSize bool
	out.Size, isSize = number(got.Header.Get(sizeHeader))
	if !isSize || got.Header.Get("Content-Encoding") != zstdCoding || out.Format != "raw" && out.Format != "qcow2" && out.Format != "iso" {
		return Downloaded{}, errors.New("the pod answers what cannot be understood")
	}
	body := io.Reader(got.Body)
	if packed != nil {
		body = io.TeeReader(body, packed)
	}
	z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return Downloaded{}, err
	}
	defer z.Close()
	sum := sha256.New()
	to := io.Writer(sum)
	if content != nil {
		to = io.MultiWriter(sum, content)
	}
	r := &counted{ctx: ctx, Reader: io.LimitReader(z, out.Size+1), told: func(done int64) { report(done, out.Size) }}
	n, err := io.CopyBuffer(struct{ io.Writer }{to}, r, make([]byte, bufferSize))
	if err == nil {
		// The end of what is packed need not be the end of the answer.
		_, err = io.Copy(io.Discard, body)
	}
	switch want, derr := parseDigest(got.Trailer.Get(digestHeader)); {
	case ctx.Err() != nil:
		return Downloaded{}, context.Cause(ctx)
	case err != nil:
		return Downloaded{}, fmt.Errorf("after %d bytes of %d: %w", n, out.Size, err)
	case n != out.Size:
		return Downloaded{}, fmt.Errorf("%w: it has %d bytes or more, and not the %d that were announced", ErrDamaged, n, out.Size)
	case derr != nil || !bytes.Equal(want, sum.Sum(nil)):
		return Downloaded{}, fmt.Errorf("%w: its SHA-256 is %x, and not the %x that was sent", ErrDamaged, sum.Sum(nil), want)
	}
	out.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// Done tells the pod that it is not needed any more.
func (c *Client) Done(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.Address+donePath, http.NoBody)
	if err != nil {
		return err
	}
	got, err := c.client().Do(request)
	if err != nil {
		return plain(broken(ctx, err))
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusNoContent {
		data, err := io.ReadAll(io.LimitReader(got.Body, maxSaid))
		return errors.Join(refused(got, data), err)
	}
	return nil
}

// plain is an error without the mark that it may be tried again.
func plain(err error) error {
	if a := (again{}); errors.As(err, &a) {
		return a.error
	}
	return err
}
