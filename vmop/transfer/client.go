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
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmop/sdk/vmop/runner/tunnel"
)

const (
	// segment is how much of an upload one request carries, in bytes: the most that is sent again
	// when a connection is cut off.
	segment = 64 << 20
	// maxFailures is how often in a row a transfer may be cut off without new data.
	maxFailures = 6
	// maxSaid is how much of a textual response is read, in bytes.
	maxSaid = 4 << 10
)

// ErrBusy means that another client uploads now.
var ErrBusy = errors.New("somebody else uploads now")

// ErrUnanswered means that all of an upload was sent, but the connection was cut off before the
// response: it is unknown whether the pod has it.
var ErrUnanswered = errors.New("all of it was sent, and the answer is lost")

// Client uploads or downloads.
type Client struct {
	// Address is HOST:PORT, where a [Receiver] or a [Server] is reached.
	Address string
	// Own is the key of both ends.
	Own tunnel.Identity
	// Pause waits before a retry; nil waits up to 16 seconds.
	Pause func(ctx context.Context, failures int) error

	http *http.Client
}

func (c *Client) client() *http.Client {
	if c.http == nil {
		config := c.Own.TLS(c.Own.Fingerprint())
		config.NextProtos = []string{"http/1.1"}
		c.http = &http.Client{
			Transport: &http.Transport{
				Proxy: nil, TLSClientConfig: config, TLSHandshakeTimeout: headTimeout, MaxResponseHeaderBytes: maxHeader,
				DisableCompression: true, ExpectContinueTimeout: headTimeout, ResponseHeaderTimeout: 2 * time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c.http
}

// Close closes idle connections.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// again is an error after which a retry makes sense. It is silent if the connection brought no
// response.
type again struct {
	error
	silent bool
}

func (a again) Unwrap() error { return a.error }

// State queries the state of an upload.
func (c *Client) State(ctx context.Context) (State, error) {
	return c.ask(ctx, http.MethodGet, nil, 0, nil)
}

func (c *Client) ask(ctx context.Context, method string, body io.Reader, length int64, head map[string]string) (State, error) {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+c.Address+uploadPath, body)
	if err != nil {
		return State{}, err
	}
	for k, v := range head {
		request.Header.Set(k, v)
	}
	if body != nil {
		request.ContentLength = length
		request.Header.Set("Expect", "100-continue")
	}
	got, err := c.client().Do(request)
	if err != nil {
		return State{}, broken(ctx, err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(io.LimitReader(got.Body, maxSaid))
	if err != nil {
		return State{}, broken(ctx, err)
	}
	switch got.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusConflict:
		var s State
		if err := json.Unmarshal(data, &s); err != nil || s.Received < 0 {
			return State{}, errors.New("the pod answers what cannot be understood")
		}
		if got.StatusCode == http.StatusConflict {
			return s, again{error: errConflict}
		}
		return s, nil
	case http.StatusBadRequest: // the connection to it was cut off
		return State{}, again{error: refused(got, data)}
	}
	return State{}, refused(got, data)
}

var errConflict = errors.New("the pod has another part of it")

// refused returns the other end's message, without control characters.
func refused(r *http.Response, data []byte) error {
	text := strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(string(bytes.TrimSpace(data)), "?"))
	return fmt.Errorf("the pod answers %d %s: %s", r.StatusCode, http.StatusText(r.StatusCode), text)
}

// broken is an error of a connection. A retry makes sense, unless the other end has another key.
func broken(ctx context.Context, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, tunnel.ErrStranger):
		return err
	}
	return again{error: err, silent: true}
}

// Upload sends a content of size bytes, and resumes after the part that the pod has. A nil error
// means that the pod has all of it, with this digest; its processing is not awaited. After
// [ErrUnanswered], only that processing shows whether the upload succeeded. report is called often,
// with the progress.
func (c *Client) Upload(ctx context.Context, content io.ReaderAt, size int64, report func(done int64)) error {
	if size <= 0 {
		return errors.New("there is nothing to upload: it is empty")
	}
	u := &uploading{Client: c, content: content, size: size, report: report, hash: sha256.New()}
	failures := 0
	for {
		before := u.at
		err := u.run(ctx)
		var next again
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &next):
			return err
		}
		if failures++; u.at > before {
			failures = 1
		}
		if failures >= maxFailures {
			err := fmt.Errorf("%w (%d attempts)", next.error, failures)
			if u.sent && next.silent {
				return fmt.Errorf("%w: %w", ErrUnanswered, err)
			}
			return err
		}
		if err := c.pause(ctx, failures); err != nil {
			return err
		}
	}
}

func (c *Client) pause(ctx context.Context, failures int) error {
	if c.Pause != nil {
		return c.Pause(ctx, failures)
	}
	t := time.NewTimer(time.Second << min(failures-1, 4))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// uploading is one call of Upload. The hash covers the first at bytes of the content. sent means
// that everything was sent; it is reset when the pod reports that it lacks something.
type uploading struct {
	*Client
	content  io.ReaderAt
	size, at int64
	report   func(int64)
	hash     hash.Hash
	sent     bool
}

func (u *uploading) run(ctx context.Context) error {
	has, err := u.State(ctx)
	switch {
	case err != nil:
		return err
	case has.Busy: // possibly with the data sent before
		return again{error: ErrBusy}
	}
	u.sent = false
	if err := u.resume(ctx, has); err != nil || has.Whole {
		return err
	}
	for u.at < u.size {
		if err := u.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// resume sets the position and the hash to the pod's, if it has the beginning of this content, and
// to the beginning otherwise.
func (u *uploading) resume(ctx context.Context, has State) error {
	u.hash.Reset()
	u.at = 0
	if has.Received > 0 && has.Received <= u.size && has.Total == u.size {
		if err := u.add(ctx, u.hash, has.Received); err != nil {
			return err
		}
		if hex.EncodeToString(u.hash.Sum(nil)) == has.SHA256 {
			u.at = has.Received
			return nil
		}
		u.hash.Reset()
	}
	if has.Whole {
		return errors.New("the pod has another upload already, and makes the disk of it")
	}
	return nil
}

func (u *uploading) add(ctx context.Context, to io.Writer, n int64) error {
	r := &counted{ctx: ctx, Reader: io.NewSectionReader(u.content, u.at, n)}
	got, err := io.CopyBuffer(struct{ io.Writer }{to}, r, make([]byte, bufferSize))
	if err == nil && got < n {
		err = fmt.Errorf("the file has become shorter than %d bytes", u.size)
	}
	return err
}

func (u *uploading) send(ctx context.Context) error {
	n := min(segment, u.size-u.at)
	head := map[string]string{"Content-Range": fmt.Sprintf("bytes %d-%d/%d", u.at, u.at+n-1, u.size)}
	if err := u.add(ctx, u.hash, n); err != nil {
		return err
	}
	if u.at+n == u.size {
		head[digestHeader] = formatDigest(u.hash.Sum(nil))
	}
	var gone atomic.Int64 // the body is read by another goroutine
	body := &counted{ctx: ctx, Reader: io.NewSectionReader(u.content, u.at, n), told: func(done int64) {
		gone.Store(done)
		u.report(u.at + done)
	}}
	s, err := u.ask(ctx, http.MethodPut, io.NopCloser(body), n, head)
	if err != nil {
		var next again
		u.sent = u.at+n == u.size && gone.Load() == n && errors.As(err, &next) && next.silent
		return err
	}
	if s.Received != u.at+n {
		return again{error: errConflict}
	}
	u.at = s.Received
	return nil
}

type counted struct {
	io.Reader
	ctx  context.Context
	n    int64
	told func(int64)
}

func (c *counted) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.Reader.Read(p)
	if c.n += int64(n); c.told != nil {
		c.told(c.n)
	}
	return n, err
}
