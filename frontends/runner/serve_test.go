package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// keyIn makes a directory with a key as the operator does, and returns its fingerprint.
func keyIn(t *testing.T) (dir, fingerprint string) {
	t.Helper()
	dir = t.TempDir()
	data, err := displaycert.Make(&reconcile.Certificate{CommonName: "a", Hosts: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fingerprint, err = tunnel.Fingerprint(data["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	return dir, fingerprint
}

// cut is a listener whose first connections end after some bytes.
type cut struct {
	net.Listener
	left   atomic.Int64
	silent atomic.Bool
}

func (c *cut) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil && c.left.Add(-1) >= 0 {
		return &cutConn{Conn: conn, most: 300 << 10, silent: c.silent.Load()}, nil
	}
	return conn, err
}

type cutConn struct {
	net.Conn
	most int
	// silent connections do not end: nothing comes any more.
	silent bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.most -= len(p); c.most >= 0 {
		return c.Conn.Write(p)
	}
	if c.silent {
		return len(p), nil
	}
	return 0, errors.Join(io.ErrClosedPipe, c.Close())
}

// served is an image that is served, and the import of a copy.
type served struct {
	image []byte
	job   runnerconfig.Import
	cut   *cut
}

func newServed(t *testing.T) *served {
	t.Helper()
	s := &served{image: make([]byte, 4<<20)}
	for i := range 1 << 20 { // and then a hole
		s.image[i] = byte(i*i>>3) | 1
	}
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, s.image, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.cut = &cut{Listener: l}
	serverKey, server := keyIn(t)
	clientKey, client := keyIn(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serveSettings{path: path, certificates: serverKey, client: client}.serve(ctx, s.cut, func(err error) { t.Logf("server: %v", err) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	sum := sha256.Sum256(s.image)
	s.job = runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "disk.img"), Size: 8 << 20, Served: &runnerconfig.ImportServed{
		Address: l.Addr().String(), Fingerprint: server, Certificates: clientKey, Format: "raw", Length: int64(len(s.image)), SHA256: hex.EncodeToString(sum[:]),
	}}
	return s
}

func (s *served) made(t *testing.T) (runnerconfig.Imported, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return makeDisk(ctx, s.job, func(text string) { t.Log(text) }, func(runnerconfig.ImportProgress) {})
}

// A disk is made of an image that another pod serves, over connections that end, with its
// holes, and enlarged.
func TestServedImage(t *testing.T) {
	s := newServed(t)
	s.cut.left.Store(2)
	got, err := s.made(t)
	if err != nil || got.Format != "raw" || got.Size != s.job.Size {
		t.Fatalf("%+v, %v", got, err)
	}
	data, err := os.ReadFile(s.job.File)
	if err != nil || !bytes.Equal(data[:len(s.image)], s.image) || len(bytes.Trim(data[len(s.image):], "\x00")) > 0 {
		t.Errorf("the copy differs: %v", err)
	}
	if left := s.cut.left.Load(); left >= 0 {
		t.Errorf("no connection was cut off: %d left", left)
	}
	info, err := os.Stat(s.job.File)
	if err != nil {
		t.Fatal(err)
	}
	if stat, is := info.Sys().(*syscall.Stat_t); !is || stat.Blocks*512 > 2<<20 {
		t.Errorf("%d blocks for 1 MiB of data", stat.Blocks)
	}
}

// A connection that brings nothing any more is given up for another one.
func TestServedImageFallsSilent(t *testing.T) {
	s := newServed(t)
	s.cut.left.Store(2)
	s.cut.silent.Store(true)
	out, err := os.Create(filepath.Join(t.TempDir(), "disk.img"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	own, err := tunnel.LoadIdentity(filepath.Join(s.job.Served.Certificates, "tls.crt"), filepath.Join(s.job.Served.Certificates, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := &servedFile{job: s.job.Served, out: filecopy.Sparse{File: out}, sum: sha256.New(), progress: func(text string) { t.Log(text) }, watch: func(runnerconfig.ImportProgress) {}, silence: 500 * time.Millisecond}
	if err := f.whole(ctx, own); err != nil {
		t.Error(err)
	}
	if left := s.cut.left.Load(); left >= 0 {
		t.Errorf("no connection fell silent: %d left", left)
	}
}

// An image is kept as what it is, with its digest where that is asked for.
func TestServedImageIsKept(t *testing.T) {
	s := newServed(t)
	s.job.Keep, s.job.Digest, s.job.Served.CD = true, true, true
	got, err := s.made(t)
	if err != nil || got.Format != runnerconfig.FormatISO || got.SHA256 != s.job.Served.SHA256 || got.Length != int64(len(s.image)) {
		t.Fatalf("%+v, %v", got, err)
	}
	// Another attempt finds it and says the same.
	if again, err := s.made(t); err != nil || again != got {
		t.Errorf("%+v, %v", again, err)
	}
}

// Nothing is made of what is served by or to somebody else, or is another image.
func TestServedImageOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*served)
		final  error
	}{
		"another digest":     {func(s *served) { s.job.Served.SHA256 = strings.Repeat("a", 64) }, imagesource.ErrChecksum},
		"another length":     {func(s *served) { s.job.Served.Length++ }, nil},
		"another server":     {func(s *served) { s.job.Served.Fingerprint = strings.Repeat("b", 64) }, nil},
		"too large":          {func(s *served) { s.job.Size = 1 << 20 }, errSmaller},
		"of another format":  {func(s *served) { s.job.Served.Format = "qcow2" }, errOtherFormat},
		"a client too many":  {func(s *served) { s.job.Served.Certificates, _ = keyIn(t) }, nil},
		"no key":             {func(s *served) { s.job.Served.Certificates = t.TempDir() }, nil},
		"an image too large": {func(s *served) { s.job.Size, s.job.Keep = 1<<20, true }, errSmaller},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServed(t)
			c.change(s)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			out, err := makeDisk(ctx, s.job, func(string) {}, func(runnerconfig.ImportProgress) {})
			if err == nil || c.final != nil && !errors.Is(err, c.final) || out.Final != (c.final != nil) {
				t.Errorf("%+v, %v", out, err)
			}
			if _, err := os.Lstat(s.job.File); err == nil {
				t.Error("there is a disk")
			}
		})
	}
}
