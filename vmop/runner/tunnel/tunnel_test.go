package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait: many times what an idle machine needs.
const patience = time.Minute

// pair is a server of an echo that greets, and the way to it.
type pair struct {
	t              testing.TB
	server, client Identity
	target         Target

	mu     sync.Mutex
	events []string
	errs   []error
}

func newPair(t testing.TB) *pair {
	p := &pair{t: t}
	var err error
	for _, i := range []*Identity{&p.server, &p.client} {
		if *i, err = NewIdentity(); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.target = Target{l.Addr().String(), p.server.Fingerprint()}
	p.run(func(ctx context.Context) {
		s := Server{Own: p.server, Client: p.client.Fingerprint(), Open: p.open, Problem: p.problem}
		s.Serve(ctx, l)
	})
	return p
}

// run runs something until the test ends.
func (p *pair) run(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	p.t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (p *pair) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, what)
}

func (p *pair) problem(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

func (p *pair) open(context.Context) (net.Conn, func(), error) {
	p.note("open")
	a, b := net.Pipe()
	var echo sync.WaitGroup
	echo.Go(func() {
		defer b.Close()
		if _, err := b.Write([]byte("!")); err == nil {
			_, _ = io.Copy(b, b)
		}
	})
	return a, func() {
		echo.Wait()
		p.note("closed")
	}, nil
}

// forward is the socket that QEMU would have.
func (p *pair) forward(own Identity, target func() Target) string {
	path := filepath.Join(p.t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.run(func(ctx context.Context) { Forward(ctx, l, own, target, p.problem) })
	return path
}

func (p *pair) connect(path string) net.Conn {
	p.t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// echoes reports whether what is said comes back.
func echoes(c net.Conn, greeted bool) error {
	if !greeted {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return err
		}
	}
	text := []byte("hello")
	if _, err := c.Write(text); err != nil {
		return err
	}
	back := make([]byte, len(text))
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if string(back) != "hello" {
		return errors.New("it was " + string(back))
	}
	return nil
}

// hears is told whether somebody speaks at the other end.
func hears(c io.ReadWriter) error {
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// What is said at one end is heard at the other, again after a connection has ended,
// and at another address.
func TestTunnelCarries(t *testing.T) {
	p := newPair(t)
	target := p.target
	var mu sync.Mutex
	path := p.forward(p.client, func() Target {
		mu.Lock()
		defer mu.Unlock()
		return target
	})
	for range 2 {
		c := p.connect(path)
		if err := echoes(c, false); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if err := Probe(t.Context(), p.target, p.client, hears); err != nil {
		t.Error(err)
	}
	other := newPair(t)
	mu.Lock()
	target = Target{other.target.Address, p.server.Fingerprint()} // another server is there
	mu.Unlock()
	c := p.connect(path)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger was believed")
	}
}

// Who has another key than it should is neither served nor believed.
func TestStrangers(t *testing.T) {
	p := newPair(t)
	stranger, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	if err := Probe(t.Context(), p.target, stranger, hears); err == nil {
		t.Error("a stranger was served")
	}
	if err := Probe(t.Context(), Target{p.target.Address, stranger.Fingerprint()}, p.client, hears); !errors.Is(err, ErrStranger) {
		t.Error(err)
	}
	if err := Probe(t.Context(), Target{p.target.Address, ""}, p.client, hears); !errors.Is(err, ErrStranger) {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) != 0 {
		t.Error(p.events)
	}
}

// A newer connection of the client ends the one before, and what that was carried to is
// closed before anything is opened for the new one.
func TestNewerConnectionReplacesTheOld(t *testing.T) {
	p := newPair(t)
	first, err := Dial(t.Context(), p.target, p.client)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := echoes(first, false); err != nil {
		t.Fatal(err)
	}
	second, err := Dial(t.Context(), p.target, p.client)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := second.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := echoes(second, false); err != nil {
		t.Fatal(err)
	}
	if err := first.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, first); errors.Is(err, context.DeadlineExceeded) {
		t.Error("the first one goes on")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := []string{"open", "closed", "open"}; !slices.Equal(p.events, want) {
		t.Errorf("%q", p.events)
	}
}

// BenchmarkTunnel is what the way costs: blocks of 64 KiB there and back.
func BenchmarkTunnel(b *testing.B) {
	p := newPair(b)
	c := p.connect(p.forward(p.client, func() Target { return p.target }))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	const blocks, size = 1024, 64 << 10
	b.SetBytes(blocks * size)
	for b.Loop() {
		done := make(chan error, 1)
		go func() {
			_, err := io.CopyN(c, zeros{}, blocks*size)
			done <- err
		}()
		if _, err := io.CopyN(io.Discard, c, blocks*size); err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
