package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// servedPause is the delay after a connection that brought no progress, maxServedPauses the limit
// of such pauses in a row: the serving pod may be restarting. servedSilence is how long a
// connection may bring nothing: its other end may be alive while its volume hangs.
const (
	servedPause     = 3 * time.Second
	maxServedPauses = 20
	servedSilence   = time.Minute
)

// fetchServed copies an image that another pod serves to a new file, without zeros, and resumes
// after a lost connection.
func fetchServed(ctx context.Context, job runnerconfig.Import, to string, progress func(string), watch func(runnerconfig.ImportProgress)) error {
	s := job.Served
	if (job.Keep || s.Format == "raw") && s.Length > filecopy.Aligned(job.Size) {
		return fmt.Errorf("the image has %d bytes, more than the %d asked for: %w", s.Length, job.Size, errSmaller)
	}
	own, err := tunnel.LoadIdentity(filepath.Join(s.Certificates, "tls.crt"), filepath.Join(s.Certificates, "tls.key"))
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	f := &servedFile{job: s, out: filecopy.Sparse{File: dst}, sum: sha256.New(), progress: progress, watch: watch, silence: servedSilence}
	err = f.whole(ctx, own)
	if err == nil {
		err = f.out.Flush()
	}
	if err == nil { // implied by the digest
		_, err = probeAs(dst, s.Length, s.Format)
	}
	return errors.Join(err, dst.Sync(), dst.Close())
}

// servedFile is the part of a served image that has been copied.
type servedFile struct {
	job      *runnerconfig.ImportServed
	out      filecopy.Sparse
	sum      hash.Hash
	progress func(string)
	watch    func(runnerconfig.ImportProgress)
	told     time.Time
	silence  time.Duration
}

type impatient struct {
	net.Conn
	silence time.Duration
}

func (c impatient) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (f *servedFile) whole(ctx context.Context, own tunnel.Identity) error {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := tunnel.Dial(ctx, tunnel.Target{Address: f.job.Address, Fingerprint: f.job.Fingerprint}, own)
			if err != nil {
				return nil, err
			}
			return impatient{c, f.silence}, nil
		},
		DisableKeepAlives: true,
	}}
	for pauses := 0; f.out.At < f.job.Length; {
		before := f.out.At
		err := f.more(ctx, client)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, tunnel.ErrStranger), errors.Is(err, errNotServed):
			return err
		case err == nil, f.out.At > before:
			pauses = 0
			continue
		}
		if pauses++; pauses == maxServedPauses {
			return err
		}
		f.progress(fmt.Sprintf("waiting for %s: %v", f.job.Address, err))
		t := time.NewTimer(servedPause)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
	}
	if got := hex.EncodeToString(f.sum.Sum(nil)); got != f.job.SHA256 {
		return fmt.Errorf("what was served has the SHA-256 digest %s and not %s, which the image had: %w", got, f.job.SHA256, imagesource.ErrChecksum)
	}
	return nil
}

// errNotServed is returned when asking again is pointless.
var errNotServed = errors.New("it is another file than the image was")

func (f *servedFile) more(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://image/", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Range", "bytes="+strconv.FormatInt(f.out.At, 10)+"-")
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if want := fmt.Sprintf("bytes %d-%d/%d", f.out.At, f.job.Length-1, f.job.Length); answer.StatusCode != http.StatusPartialContent || answer.Header.Get("Content-Range") != want {
		return fmt.Errorf("%s answers %q and %q to a question for %q: %w", f.job.Address, answer.Status, answer.Header.Get("Content-Range"), want, errNotServed)
	}
	_, err = io.Copy(f, io.LimitReader(answer.Body, f.job.Length-f.out.At))
	if err == nil && f.out.At < f.job.Length {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Write implements [io.Writer].
func (f *servedFile) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	f.sum.Write(p[:n])
	f.watch(runnerconfig.ImportProgress{Step: string(imagesource.Copying), Done: f.out.At, Total: f.job.Length})
	if time.Since(f.told) >= tellImage {
		f.told = time.Now()
		f.progress(fmt.Sprintf("copying, %d of %d MiB", f.out.At>>20, f.job.Length>>20))
	}
	return n, err
}

func digestOf(ctx context.Context, path string, watch func(runnerconfig.ImportProgress)) (digest string, length int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		length += int64(n)
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), length, nil
		}
		if err != nil {
			return "", 0, err
		}
		watch(runnerconfig.ImportProgress{Step: string(imagesource.Verifying), Done: min(length, info.Size()), Total: info.Size()})
	}
}
