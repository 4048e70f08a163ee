package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/vmop/sdk/internal/filecopy"
)

// Downloaded describes a download.
type Downloaded struct {
	Offer
	// SHA256 is the digest of the whole content, in hexadecimal digits.
	SHA256 string
	// Kept is how much of it the file already had, in bytes.
	Kept int64
}

// ErrDamaged means that the received data differs from what was sent.
var ErrDamaged = errors.New("it was damaged on the way")

const (
	// maxWindow bounds the window of the decompressor, in bytes.
	maxWindow = 8 << 20
	// maxPart is the largest part that is accepted, in bytes.
	maxPart = 64 << 20
)

// Offer queries what can be downloaded.
func (c *Client) Offer(ctx context.Context) (Offer, error) {
	o, err := c.offer(ctx)
	return o, plain(err)
}

func (c *Client) offer(ctx context.Context) (Offer, error) {
	got, err := c.get(ctx, diskPath, nil)
	if err != nil {
		return Offer{}, err
	}
	defer got.Body.Close()
	data, err := io.ReadAll(io.LimitReader(got.Body, maxSaid))
	if err != nil {
		return Offer{}, broken(ctx, err)
	}
	if got.StatusCode != http.StatusOK {
		return Offer{}, refused(got, data)
	}
	var o Offer
	if err := json.Unmarshal(data, &o); err != nil || o.Size <= 0 || o.Part <= 0 || o.Part > maxPart || !slices.Contains([]string{"raw", "qcow2", "iso"}, o.Format) {
		return Offer{}, errors.New("the pod answers what cannot be understood")
	}
	return o, nil
}

func (c *Client) get(ctx context.Context, path string, head map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.Address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	for k, v := range head {
		request.Header.Set(k, v)
	}
	got, err := c.client().Do(request)
	if err != nil {
		return nil, broken(ctx, err)
	}
	return got, nil
}

// Download replaces the content of a file, which is open for reading and writing, by that of a
// disk. Parts that the file already has are compared by digest and not sent again: so a download
// that was cut off resumes, whatever was written of it, and however the disk has changed since.
// Zeros become holes. On success the file has the content and nothing else, and is on the storage.
// report is called often, with the progress.
func (c *Client) Download(ctx context.Context, file *os.File, report func(done, total int64)) (Downloaded, error) {
	var d *downloading
	failures := 0
	for {
		before := int64(0)
		if d != nil {
			before = d.at
		}
		err := func() error {
			if d == nil {
				o, err := c.offer(ctx)
				if err != nil {
					return err
				}
				info, err := file.Stat()
				if err != nil {
					return err
				}
				d = &downloading{Client: c, Downloaded: Downloaded{Offer: o}, file: file, has: info.Size(), hash: sha256.New(), report: report}
			}
			return d.run(ctx)
		}()
		var next again
		switch {
		case err == nil:
			return d.Downloaded, nil
		case ctx.Err() != nil:
			return Downloaded{}, context.Cause(ctx)
		case !errors.As(err, &next):
			return Downloaded{}, err
		}
		if failures++; d != nil && d.at > before {
			failures = 1
		}
		if failures >= maxFailures {
			return Downloaded{}, fmt.Errorf("%w (%d attempts)", next.error, failures)
		}
		if err := c.pause(ctx, failures); err != nil {
			return Downloaded{}, err
		}
	}
}

// downloading is one call of Download. The first at bytes of the file are those of the disk, and
// the hash covers them; the bytes from there up to has are of an earlier attempt.
type downloading struct {
	*Client
	Downloaded
	file    *os.File
	at, has int64
	hash    hash.Hash
	report  func(done, total int64)
}

func (d *downloading) run(ctx context.Context) error {
	for d.at < d.Size {
		if err := d.part(ctx); err != nil {
			return err
		}
		d.report(d.at, d.Size)
	}
	if d.SHA256 != "" {
		return nil
	}
	if err := errors.Join(d.file.Truncate(d.Size), d.file.Sync()); err != nil {
		return err
	}
	d.SHA256 = hex.EncodeToString(d.hash.Sum(nil))
	return nil
}

func (d *downloading) part(ctx context.Context) error {
	n := min(d.Part, d.Size-d.at)
	head := map[string]string{"Accept-Encoding": zstdCoding}
	var own []byte
	if d.at+n <= d.has {
		own = make([]byte, n)
		if _, err := d.file.ReadAt(own, d.at); err != nil {
			return err
		}
		sum := sha256.Sum256(own)
		head["If-None-Match"] = entityTag(sum[:])
	}
	got, err := d.get(ctx, diskPath+"/"+strconv.FormatInt(d.at/d.Part, 10), head)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	switch {
	case got.StatusCode == http.StatusNotModified && own != nil:
		d.Kept += n
	case got.StatusCode == http.StatusOK:
		if own, err = unpacked(ctx, got, n); err != nil {
			return err
		}
		if err := d.write(ctx, own); err != nil {
			return err
		}
	default:
		data, err := io.ReadAll(io.LimitReader(got.Body, maxSaid))
		return errors.Join(refused(got, data), err)
	}
	d.hash.Write(own)
	d.at += n
	return nil
}

func (d *downloading) write(ctx context.Context, data []byte) error {
	end := d.at + int64(len(data))
	if old := min(end, d.has); old > d.at {
		if err := filecopy.Zero(ctx, d.file, d.at, old); err != nil {
			return err
		}
	}
	out := &filecopy.Sparse{File: d.file, At: d.at}
	if _, err := out.Write(data); err != nil {
		return err
	}
	if end <= d.has {
		return nil
	}
	d.has = end
	return out.Flush() // extends the file over a hole at the end
}

func unpacked(ctx context.Context, got *http.Response, n int64) ([]byte, error) {
	want, err := parseDigest(got.Header.Get(digestHeader))
	if err != nil || want == nil || got.Header.Get("Content-Encoding") != zstdCoding {
		return nil, errors.New("the pod answers what cannot be understood")
	}
	body := &remembering{Reader: got.Body}
	z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	data := make([]byte, n)
	k, err := io.ReadFull(z, data)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case body.err != nil: // report the connection's error, not the decompressor's
		return nil, broken(ctx, body.err)
	case err != nil:
		return nil, fmt.Errorf("%w: a part has %d bytes and not %d: %w", ErrDamaged, k, n, err)
	}
	if sum := sha256.Sum256(data); !bytes.Equal(want, sum[:]) {
		return nil, fmt.Errorf("%w: a part has the SHA-256 %x, and not the %x that was sent", ErrDamaged, sum, want)
	}
	return data, nil
}

// remembering keeps the error, other than io.EOF, that a reader ended with.
type remembering struct {
	io.Reader
	err error
}

func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// Done reports to the pod that the download is complete.
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

func plain(err error) error {
	if a := (again{}); errors.As(err, &a) {
		return a.error
	}
	return err
}
