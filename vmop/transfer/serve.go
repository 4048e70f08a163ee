package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/vmop/sdk/vmop/runner/tunnel"
)

const (
	zstdCoding = "zstd"
	// window is the window of zstd, in bytes: memory at both ends.
	window = 1 << 20
	// partSize is the size of one part of a download, in bytes: what is held in memory, and sent
	// again at most.
	partSize = 16 << 20
)

// Offer is what can be downloaded.
type Offer struct {
	// Format is raw, qcow2, or iso for the image of a CD.
	Format string `json:"format"`
	// Size is the size of the content, and Part that of each part but the last, in bytes.
	Size int64 `json:"size"`
	Part int64 `json:"part"`
}

// Server serves one download.
type Server struct {
	// Content has Size bytes, of the named Format.
	Content io.ReaderAt
	Size    int64
	Format  string
	// Own is the key of both ends.
	Own tunnel.Identity
	// Wait is how long the download may take to begin, and to resume after it was cut off; Stall is
	// how long a client may read nothing.
	Wait, Stall time.Duration
	// Report, unless nil, is called often, with the progress.
	Report func(done, total int64)
}

type serving struct {
	*Server
	// busy holds the token of the request for a part: only one is in memory.
	busy chan struct{}
	// tick is signalled after each request, done when the client has everything, and failed when
	// the content cannot be read.
	tick, done chan struct{}
	failed     chan error
}

// Serve waits for a client on a listener, and closes it. It returns nil when the client reports
// that it has everything.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	g := &serving{Server: s, busy: make(chan struct{}, 1), tick: make(chan struct{}, 1), done: make(chan struct{}, 1), failed: make(chan error, 1)}
	end := serve(l, s.Own, g)
	err := g.wait(ctx)
	end()
	return err
}

func (g *serving) wait(ctx context.Context) error {
	patience := time.NewTimer(g.Wait)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-g.done:
			return nil
		case err := <-g.failed:
			return err
		case <-g.tick:
			patience.Reset(g.Wait)
		case <-patience.C:
			select {
			case g.busy <- struct{}{}:
				return fmt.Errorf("%w within %v who has taken all of it", ErrNobody, g.Wait)
			default: // a client reads a part, and is bounded by Stall
				patience.Reset(g.Wait)
			}
		}
	}
}

func (g *serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, isPart := strings.CutPrefix(r.URL.Path, diskPath+"/")
	switch {
	case r.URL.Path == donePath && r.Method == http.MethodPost:
		w.WriteHeader(http.StatusNoContent)
		select {
		case g.done <- struct{}{}:
		default:
		}
	case r.URL.Path == diskPath && r.Method == http.MethodGet:
		g.seen()
		answer(w, http.StatusOK, Offer{Format: g.Format, Size: g.Size, Part: partSize})
	case isPart && r.Method == http.MethodGet:
		g.part(w, r, number)
	default:
		http.NotFound(w, r)
	}
}

func (g *serving) seen() {
	select {
	case g.tick <- struct{}{}:
	default:
	}
}

func (g *serving) part(w http.ResponseWriter, r *http.Request, text string) {
	n, isNumber := number(text)
	if !isNumber || n >= parts(g.Size, partSize) {
		http.NotFound(w, r)
		return
	}
	select {
	case g.busy <- struct{}{}:
		defer func() { <-g.busy }()
	case <-r.Context().Done():
		return
	}
	defer g.seen()
	at := n * partSize
	data := make([]byte, min(partSize, g.Size-at))
	if k, err := g.Content.ReadAt(data, at); k < len(data) {
		err = fmt.Errorf("read the disk at %d: %w", at, err)
		refuse(w, http.StatusInternalServerError, "%v", err)
		select {
		case g.failed <- err:
		default:
		}
		return
	}
	sum := sha256.Sum256(data)
	h := w.Header()
	tag := entityTag(sum[:])
	h.Set("ETag", tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		g.told(at + int64(len(data)))
		return
	}
	h.Set("Content-Type", "application/octet-stream")
	h.Set(digestHeader, formatDigest(sum[:]))
	if strings.Contains(r.Header.Get("Accept-Encoding"), zstdCoding) {
		packed, err := pack(data)
		if err != nil {
			refuse(w, http.StatusInternalServerError, "%v", err)
			return
		}
		h.Set("Content-Encoding", zstdCoding)
		data = packed
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	out := &patient{w, http.NewResponseController(w), g.Stall}
	// In pieces, each with its own deadline.
	if _, err := io.CopyBuffer(out, struct{ io.Reader }{bytes.NewReader(data)}, make([]byte, bufferSize)); err == nil {
		g.told(min(at+partSize, g.Size))
	}
}

func (g *serving) told(done int64) {
	if g.Report != nil {
		g.Report(done, g.Size)
	}
}

func parts(size, part int64) int64 { return (size + part - 1) / part }

func entityTag(sum []byte) string { return `"` + hex.EncodeToString(sum) + `"` }

func pack(data []byte) ([]byte, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(data, nil), z.Close()
}

type patient struct {
	io.Writer
	deadline *http.ResponseController
	stall    time.Duration
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.deadline.SetWriteDeadline(time.Now().Add(p.stall)); err != nil {
		return 0, err
	}
	return p.Writer.Write(b)
}
