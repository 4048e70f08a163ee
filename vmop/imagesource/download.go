package imagesource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
)

const (
	// syncStep is after how many bytes the progress of a download is recorded.
	syncStep    = 64 << 20
	maxFailures = 5
)

// transferred is the record of an incomplete download, in a file beside it.
type transferred struct {
	// Of identifies the download: a digest of the URL and the checksum.
	Of string `json:"of"`
	// Validator is the server's strong ETag of the content.
	Validator string `json:"validator,omitempty"`
	// Total is the whole length, 0 if it is unknown.
	Total int64 `json:"total,omitempty"`
	// Synced is how much of it is on the storage, from the start.
	Synced int64 `json:"synced"`
}

type download struct {
	url    string
	client *http.Client
	digest *digest
	// size is the length if known beforehand, in bytes, and max the maximum length.
	size, max int64
	stall     time.Duration
	// pause waits before a transfer that was cut off is resumed.
	pause             func(ctx context.Context, failures int) error
	report, verifying func(done, total int64)

	have, version Version

	part    string
	f       *os.File
	know    transferred
	resumed bool
}

type cut struct{ error }

func (c cut) Unwrap() error { return c.error }

// run downloads to the file part, and resumes from its content. It always leaves the file and the
// record beside it, for the next attempt. It returns the digests of the content.
func (d *download) run(ctx context.Context) (sums, error) {
	defer func() {
		if d.f != nil {
			_ = d.f.Close() // the valid data was synced
		}
	}()
	if err := d.open(); err != nil {
		return sums{}, err
	}
	for {
		if err := d.transfer(ctx); err != nil {
			return sums{}, err
		}
		got, err := digestsOf(ctx, d.f, d.digest, d.verifying)
		if err != nil {
			return sums{}, err
		}
		if d.digest == nil {
			return got, nil
		}
		err = got.compare(d.digest)
		if err == nil {
			return got, nil
		}
		// Data that failed the checksum is of no use.
		resumed := d.resumed
		if rerr := d.restart(); rerr != nil {
			return sums{}, errors.Join(err, rerr)
		}
		if !resumed {
			return sums{}, err
		}
	}
}

func (d *download) open() error {
	f, err := os.OpenFile(d.part, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	d.f = f
	of := sha256.Sum256([]byte(d.url + "\n" + fmt.Sprint(d.digest)))
	d.know.Of = hex.EncodeToString(of[:])
	var before transferred
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(d.record())
	if err == nil {
		err = json.Unmarshal(data, &before)
	}
	if err != nil || before.Of != d.know.Of || before.Synced < 0 || before.Synced > info.Size() || before.Validator == "" && d.digest == nil {
		return d.restart()
	}
	d.know, d.resumed = before, before.Synced > 0
	return f.Truncate(d.know.Synced)
}

func (d *download) record() string { return d.part + ".json" }

func (d *download) restart() error {
	d.know = transferred{Of: d.know.Of}
	d.resumed = false
	if err := os.Remove(d.record()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.f.Truncate(0)
}

// keep syncs the data and then records the progress.
func (d *download) keep(at int64) error {
	if err := d.f.Truncate(at); err != nil { // a hole may be at the end
		return err
	}
	if err := d.f.Sync(); err != nil {
		return err
	}
	d.know.Synced = at
	data, err := json.Marshal(d.know)
	if err != nil {
		return err
	}
	return atomicfile.Replace(d.record(), data)
}

func (d *download) transfer(ctx context.Context) error {
	failures := 0
	for {
		before := d.know.Synced
		err := d.once(ctx)
		if err == nil {
			return nil
		}
		var again cut
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.As(err, &again) {
			return err
		}
		if failures++; d.know.Synced > before {
			failures = 1
		}
		if failures >= maxFailures {
			return fmt.Errorf("%w (%d attempts)", again.error, failures)
		}
		if err := d.pause(ctx, failures); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, failures int) error {
	t := time.NewTimer(time.Second << min(failures-1, 4))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func (d *download) once(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(d.stall, func() { cancel(fmt.Errorf("the server sent nothing for %v", d.stall)) })
	defer stalled.Stop()
	// If the context has ended, its cause is the reason.
	why := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return plain(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return plain(err)
	}
	from := d.know.Synced
	if from > 0 {
		last := ""
		if total := max(d.know.Total, d.size); total > 0 {
			if from >= total {
				return d.complete(from)
			}
			last = strconv.FormatInt(total-1, 10) // some servers need it
		}
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%s", from, last))
		if d.know.Validator != "" {
			request.Header.Set("If-Range", d.know.Validator)
		}
	} else {
		d.have.ask(request.Header)
	}
	answer, err := d.client.Do(request)
	if err != nil {
		closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET)
		if err = why(err); closed || from > 0 && !errors.Is(err, errRefused) { // a resumed transfer worked before
			return cut{err}
		}
		return err
	}
	defer answer.Body.Close()
	from, err = d.accept(answer, from)
	if err != nil {
		return err
	}
	return d.take(answer.Body, from, stalled, why)
}

// accept checks the header of the response to a request for the content from a position on. It
// returns the position at which the response begins.
func (d *download) accept(answer *http.Response, from int64) (int64, error) {
	start, total := int64(0), answer.ContentLength
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusNotModified && from == 0 && d.have != "":
		return 0, ErrUnchanged
	case code == http.StatusPartialContent && from > 0:
		var ok bool
		if start, total, ok = contentRange(answer.Header.Get("Content-Range")); !ok || start != from || d.know.Total > 0 && total > 0 && total != d.know.Total {
			return 0, cut{errors.Join(fmt.Errorf("the server answers with another part than the one that was asked for"), d.restart())}
		}
	case code == http.StatusRequestedRangeNotSatisfiable && from > 0:
		return 0, cut{errors.Join(errors.New("the server has no such part"), d.restart())}
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return 0, cut{fmt.Errorf("the server answers %s", status(answer))}
	default:
		return 0, fmt.Errorf("the server answers %s", status(answer))
	}
	d.version = versionOf(answer.Header)
	if start == 0 {
		if err := d.restart(); err != nil {
			return 0, err
		}
		if tag := answer.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
			d.know.Validator = tag
		}
	}
	switch {
	case total < 0 && d.digest == nil && d.size <= 0 && answer.ProtoMajor == 1 && len(answer.TransferEncoding) == 0:
		return 0, errors.New("the server does not tell how long it is, so that nobody could tell its end from a connection that was cut off: give its checksum")
	case total >= 0 && d.size > 0 && total != d.size:
		return 0, fmt.Errorf("the server has %d bytes, and not the %d that were announced", total, d.size)
	case total > d.max:
		return 0, d.tooLarge()
	}
	d.know.Total = max(total, 0)
	return start, d.room(max(total, d.size) - start)
}

// status formats a response's status with the standard text, not the server's.
func status(answer *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
}

// contentRange parses "bytes START-END/TOTAL"; a total of * is -1.
func contentRange(h string) (start, total int64, ok bool) {
	rest, isBytes := strings.CutPrefix(h, "bytes ")
	span, size, hasSize := strings.Cut(rest, "/")
	first, last, hasLast := strings.Cut(span, "-")
	start, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	total, err3 := strconv.ParseInt(size, 10, 64)
	if size == "*" {
		total, err3 = -1, nil
	}
	ok = isBytes && hasSize && hasLast && err1 == nil && err2 == nil && err3 == nil && start >= 0 && end >= start && (total < 0 || end < total)
	return start, total, ok
}

func (d *download) tooLarge() error {
	return fmt.Errorf("%w: it has more than %s, which is as much as is taken", ErrTooLarge, quantity(d.max))
}

func (d *download) room(missing int64) error {
	return checkRoom(d.part, missing)
}

func checkRoom(path string, missing int64) error {
	var fs unix.Statfs_t
	if missing <= 0 || unix.Statfs(path, &fs) != nil {
		return nil
	}
	if free := int64(fs.Bavail) * fs.Bsize; missing > free {
		return fmt.Errorf("it needs %s, and %s are free where it goes", quantity(missing), quantity(free))
	}
	return nil
}

func (d *download) take(body io.Reader, from int64, stalled *time.Timer, why func(error) error) error {
	out := &filecopy.Sparse{File: d.f, At: from}
	buf := make([]byte, bufferSize)
	var end error
	for end == nil {
		var n int
		n, end = body.Read(buf)
		if n == 0 {
			continue
		}
		stalled.Reset(d.stall)
		if out.At+int64(n) > d.max {
			return errors.Join(d.tooLarge(), d.restart())
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return errors.Join(err, d.keep(d.know.Synced))
		}
		d.report(out.At, max(d.know.Total, d.size))
		if out.At-d.know.Synced >= syncStep {
			if err := d.keep(out.At); err != nil {
				return err
			}
		}
	}
	if err := d.keep(out.At); err != nil {
		return err
	}
	if !errors.Is(end, io.EOF) {
		return cut{fmt.Errorf("after %s: %w", quantity(out.At), why(end))}
	}
	return d.complete(out.At)
}

func (d *download) complete(n int64) error {
	switch total := max(d.know.Total, d.size); {
	case total > 0 && n < total:
		return cut{fmt.Errorf("the server sent %d bytes of %d", n, total)}
	case total > 0 && n > total:
		return errors.Join(fmt.Errorf("the server sent %d bytes and announced %d", n, total), d.restart())
	}
	return nil
}
