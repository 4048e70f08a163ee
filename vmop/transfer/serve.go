package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
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

// What the head of a download says of the content.
const (
	formatHeader = "Vmop-Format"
	sizeHeader   = "Vmop-Size"
	zstdCoding   = "zstd"
	// window is what zstd looks back by, in bytes: memory at both ends.
	window = 1 << 20
)

// Server gives one download.
type Server struct {
	// Content is what is downloaded, of Size bytes, and Format what it is called.
	Content io.ReaderAt
	Size    int64
	Format  string
	// Own is the key of both ends.
	Own tunnel.Identity
	// Wait is how long the download may take to begin, and to be begun again after it
	// was cut off; Stall is how long somebody who downloads may take nothing.
	Wait, Stall time.Duration
	// Report is told how far it is, often. Nil is nobody.
	Report func(done, total int64)
}

// serving is one call of Serve.
type serving struct {
	*Server
	busy chan struct{}
	tick chan struct{}
	done chan struct{}
}

// Serve waits on a listener for somebody who downloads, and closes that. It returns nil
// when the other end says that it has the whole.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	g := &serving{Server: s, busy: make(chan struct{}, 1), tick: make(chan struct{}, 1), done: make(chan struct{}, 1)}
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
		case <-g.tick:
			patience.Reset(g.Wait)
		case <-patience.C:
			select {
			case g.busy <- struct{}{}:
				return fmt.Errorf("%w within %v who has taken all of it", ErrNobody, g.Wait)
			default: // somebody takes it, and is bounded by Stall
				patience.Reset(g.Wait)
			}
		}
	}
}

// ServeHTTP implements [http.Handler].
func (g *serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == donePath && r.Method == http.MethodPost:
		w.WriteHeader(http.StatusNoContent)
		select {
		case g.done <- struct{}{}:
		default:
		}
	case r.URL.Path == diskPath && r.Method == http.MethodGet:
		select {
		case g.busy <- struct{}{}:
			defer func() { <-g.busy }()
		default:
			refuse(w, http.StatusConflict, "somebody else downloads now")
			return
		}
		g.give(w, r)
		select {
		case g.tick <- struct{}{}:
		default:
		}
	default:
		http.NotFound(w, r)
	}
}

// give sends the content. An answer that is cut off has no digest in its trailer, and no
// end either.
func (g *serving) give(w http.ResponseWriter, r *http.Request) {
	packed := strings.Contains(r.Header.Get("Accept-Encoding"), zstdCoding)
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(formatHeader, g.Format)
	h.Set(sizeHeader, strconv.FormatInt(g.Size, 10))
	h.Set("Trailer", digestHeader)
	if packed {
		h.Set("Content-Encoding", zstdCoding)
	}
	out := io.Writer(&patient{w, http.NewResponseController(w), g.Stall})
	sum := sha256.New()
	err := func() error {
		to := out
		var z *zstd.Encoder
		if packed {
			var err error
			if z, err = zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true)); err != nil {
				return err
			}
			to = z
		}
		content := &counted{ctx: r.Context(), Reader: io.NewSectionReader(g.Content, 0, g.Size), told: func(done int64) {
			if g.Report != nil {
				g.Report(done, g.Size)
			}
		}}
		n, err := io.CopyBuffer(io.MultiWriter(sum, to), content, make([]byte, bufferSize))
		if err == nil && n < g.Size {
			err = io.ErrUnexpectedEOF
		}
		if z != nil {
			err = errors.Join(err, z.Close())
		}
		return err
	}()
	if err != nil {
		panic(http.ErrAbortHandler) // the only way to let the other end see that this is not all
	}
	h.Set(digestHeader, formatDigest(sum.Sum(nil)))
}

// patient writes to somebody who takes it in time.
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
