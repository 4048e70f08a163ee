package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/runner/tunnel"
)

const (
	uploadPath = "/upload"
	diskPath   = "/disk"
	donePath   = "/done"
)

const (
	// bufferSize is how much of the content is held in memory, in bytes.
	bufferSize = 256 << 10
	// maxHeader bounds a request's header, in bytes.
	maxHeader     = 8 << 10
	headTimeout   = 10 * time.Second
	answerTimeout = 10 * time.Second
)

// The reasons for which nothing is received, for errors.Is.
var (
	// ErrNobody: no client came in time.
	ErrNobody = errors.New("nobody has come")
	// ErrAbandoned: a client has begun, and not resumed in time.
	ErrAbandoned = errors.New("it was begun and not gone on with")
)

// Receiver accepts one upload.
type Receiver struct {
	// Path is the file to create. It must not exist.
	Path string
	// Max is the maximum size, in bytes.
	Max int64
	// Own is the key of both ends.
	Own tunnel.Identity
	// Wait is how long the first upload may take to begin, and to resume after it was cut off;
	// Stall is how long a client may send nothing.
	Wait, Stall time.Duration
	// Report, unless nil, is called often, with the progress; total is 0 if unknown.
	Report func(done, total int64)
}

// State is the state of an upload.
type State struct {
	// Received is the number of bytes received, from the start, and Total the number of all; 0 if
	// unknown.
	Received int64 `json:"received"`
	Total    int64 `json:"total,omitempty"`
	// SHA256 is the digest of those received, in hexadecimal digits. It is missing while a client
	// uploads.
	SHA256 string `json:"sha256,omitempty"`
	// Busy is true while a client uploads.
	Busy bool `json:"busy,omitempty"`
	// Whole is true if all of it was received.
	Whole bool `json:"whole,omitempty"`
}

type receiving struct {
	*Receiver
	// busy holds the token of the uploading request.
	busy chan struct{}
	// tick is signalled after each upload request.
	tick  chan struct{}
	ended chan error

	mu    sync.Mutex
	state State

	// The fields below belong to the holder of busy.
	file *os.File
	hash hash.Hash
}

// Receive waits for an upload on a listener, and closes it. On success the file is complete, and on
// the storage. After an error there is no file.
func (r *Receiver) Receive(ctx context.Context, l net.Listener) (State, error) {
	file, err := os.OpenFile(r.Path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return State{}, errors.Join(err, l.Close())
	}
	g := &receiving{Receiver: r, busy: make(chan struct{}, 1), tick: make(chan struct{}, 1), ended: make(chan error, 1), file: file, hash: sha256.New()}
	end := serve(l, g.Own, g)
	err = g.wait(ctx)
	end()
	g.busy <- struct{}{} // no request writes any more
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return State{}, errors.Join(err, os.Remove(r.Path))
	}
	return g.state, nil
}

func (g *receiving) wait(ctx context.Context) error {
	patience := time.NewTimer(g.Wait)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-g.ended:
			return err
		case <-g.tick:
			patience.Reset(g.Wait)
		case <-patience.C:
			if !g.alone() {
				patience.Reset(g.Wait)
				continue
			}
			if now := g.now(); now.Received > 0 {
				return fmt.Errorf("%w within %v: %d bytes of %d have come", ErrAbandoned, g.Wait, now.Received, now.Total)
			}
			return fmt.Errorf("%w within %v", ErrNobody, g.Wait)
		}
	}
}

// alone reports whether no upload request is running, which Stall would bound, nor has just ended.
func (g *receiving) alone() bool {
	select {
	case g.busy <- struct{}{}:
	default:
		return false
	}
	defer func() { <-g.busy }()
	select {
	case <-g.tick:
		return false
	default:
		return true
	}
}

func (g *receiving) now() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

func (g *receiving) set(change func(*State)) State {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.state)
	return g.state
}

func (g *receiving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != uploadPath:
		http.NotFound(w, r)
	case r.Method == http.MethodGet:
		answer(w, http.StatusOK, g.look())
	case r.Method == http.MethodPut:
		g.put(w, r)
	default:
		w.Header().Set("Allow", "GET, PUT")
		refuse(w, http.StatusMethodNotAllowed, "want GET or PUT")
	}
}

func (g *receiving) look() State {
	select {
	case g.busy <- struct{}{}:
		defer func() { <-g.busy }()
		s := g.now()
		s.SHA256 = hex.EncodeToString(g.hash.Sum(nil))
		return s
	default:
		s := g.now()
		s.Busy = !s.Whole
		return s
	}
}

func (g *receiving) put(w http.ResponseWriter, r *http.Request) {
	part, err := parsePart(r.Header.Get("Content-Range"), r.ContentLength)
	if err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	want, err := parseDigest(r.Header.Get(digestHeader))
	if err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	select {
	case g.busy <- struct{}{}:
		defer func() { <-g.busy }()
	default:
		answer(w, http.StatusConflict, g.look())
		return
	}
	has := g.now()
	switch {
	case has.Whole, part.from > 0 && (part.from != has.Received || part.total != has.Total):
		answer(w, http.StatusConflict, has)
		return
	case part.total > g.Max:
		refuse(w, http.StatusRequestEntityTooLarge, "it has %d bytes, and at most %d are taken", part.total, g.Max)
		return
	case part.from == 0:
		if err := g.restart(part.total); err != nil {
			g.fail(w, err)
			return
		}
	}
	n, err := g.take(w, r.Body, part)
	now := g.set(func(s *State) { s.Received = part.from + n })
	select {
	case g.tick <- struct{}{}:
	default:
	}
	switch {
	case errors.Is(err, errTooLong):
		// Data that is not as announced is discarded.
		if rerr := g.restart(0); rerr != nil {
			g.fail(w, rerr)
			return
		}
		refuse(w, http.StatusRequestEntityTooLarge, "%v", err)
	case errors.Is(err, errStorage):
		g.fail(w, err)
	case err != nil:
		refuse(w, http.StatusBadRequest, "after %d bytes: %v", n, err)
	case part.total > 0 && now.Received < part.total:
		answer(w, http.StatusAccepted, now)
	default:
		g.finish(w, want)
	}
}

func (g *receiving) restart(total int64) error {
	g.hash.Reset()
	g.set(func(s *State) { s.Received, s.Total = 0, total })
	if err := g.file.Truncate(0); err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	return nil
}

// fail ends the upload for good: the storage has failed.
func (g *receiving) fail(w http.ResponseWriter, err error) {
	refuse(w, http.StatusInsufficientStorage, "%v", err)
	g.end(err)
}

func (g *receiving) end(err error) {
	select {
	case g.ended <- err:
	default: // it has ended before
	}
}

// The errors of take, beside those of the connection.
var (
	errTooLong = errors.New("more came than was said")
	errStorage = errors.New("it cannot be stored")
)

// take writes a part to the file, and returns the number of bytes. They are kept if the connection
// breaks.
func (g *receiving) take(w http.ResponseWriter, body io.Reader, p part) (int64, error) {
	deadline := http.NewResponseController(w)
	out := &filecopy.Sparse{File: g.file, At: p.from}
	most := g.Max - p.from
	if p.length >= 0 {
		most = p.length
	}
	buf := make([]byte, bufferSize)
	var n int64
	for {
		if err := deadline.SetReadDeadline(time.Now().Add(g.Stall)); err != nil {
			return n, err
		}
		k, err := body.Read(buf)
		if n+int64(k) > most {
			return n, fmt.Errorf("%w, %d bytes", errTooLong, most)
		}
		if _, werr := out.Write(buf[:k]); werr != nil {
			return n, fmt.Errorf("%w: %w", errStorage, werr)
		}
		g.hash.Write(buf[:k])
		if n += int64(k); k > 0 {
			g.set(func(s *State) { s.Received = p.from + n })
			if g.Report != nil {
				g.Report(p.from+n, p.total)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && p.length >= 0 && n < p.length:
			return n, io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			// Extend the file over a hole at the end.
			if err := out.Flush(); err != nil {
				return n, fmt.Errorf("%w: %w", errStorage, err)
			}
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

func (g *receiving) finish(w http.ResponseWriter, want []byte) {
	got := g.hash.Sum(nil)
	if want != nil && hex.EncodeToString(want) != hex.EncodeToString(got) {
		if err := g.restart(0); err != nil {
			g.fail(w, err)
			return
		}
		refuse(w, http.StatusUnprocessableEntity, "its SHA-256 is %x, and not the %x that was said", got, want)
		return
	}
	s := g.set(func(s *State) {
		s.Total, s.Whole, s.SHA256 = s.Received, true, hex.EncodeToString(got)
	})
	answer(w, http.StatusOK, s)
	g.end(nil)
}

// serve serves a listener until the returned function is called, which waits for responses in
// progress.
func serve(l net.Listener, own tunnel.Identity, h http.Handler) (end func()) {
	config := own.TLS(own.Fingerprint())
	config.NextProtos = []string{"http/1.1"}
	s := &http.Server{
		Handler: h, TLSConfig: config, ReadHeaderTimeout: headTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: quiet(), // errors of bad clients are not logged
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.ServeTLS(l, "", "") // it ends with the listener
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
		<-done
	}
}

func answer(w http.ResponseWriter, code int, what any) {
	data, err := json.Marshal(what)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n'))
}

func refuse(w http.ResponseWriter, code int, format string, args ...any) {
	// The rest of a body would be taken for another request.
	w.Header().Set("Connection", "close")
	http.Error(w, fmt.Sprintf(format, args...), code)
}
