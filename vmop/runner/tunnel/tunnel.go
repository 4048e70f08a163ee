package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// connectTimeout bounds everything before the first byte of the disk's protocol:
	// QEMU waits for that, and its guest with it.
	connectTimeout = 5 * time.Second
	// silence is how long what was sent may stay unanswered by the other end's kernel.
	silence = 30 * time.Second
	// keepAlive finds a peer that is gone without a word, within about half a minute.
	keepAlive = 10 * time.Second
	// acceptPause is between two attempts to take a connection that cannot be taken.
	acceptPause = 100 * time.Millisecond
	// maxStrangers bounds how many connections may wait for their handshake at a time.
	maxStrangers = 16
)

// Target is the other end of a tunnel.
type Target struct {
	// Address is HOST:PORT.
	Address string
	// Fingerprint is that of its key.
	Fingerprint string
}

// Dial connects with a target, and fails with [ErrStranger] if that has another key.
func Dial(ctx context.Context, t Target, own Identity) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) (err error) {
			cerr := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
			})
			return errors.Join(cerr, err)
		},
	}
	conn, err := d.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, fmt.Errorf("connect with the exporter at %s: %w", t.Address, err)
	}
	s := overTLS(conn, own.TLS(t.Fingerprint), tls.Client)
	if err := s.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect with the exporter at %s: %w", t.Address, err), conn.Close())
	}
	s.coalesce()
	return s, nil
}

// Forward takes connections of a listener, one after the other, and carries each to the target of
// that moment, until ctx ends; it closes the listener then. problem is called with the reason why
// one could not be carried. What cannot be carried is closed at once.
//
// The target speaks first; a connection for which it does not do so in time is closed.
func Forward(ctx context.Context, l net.Listener, own Identity, target func() Target, problem func(error)) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			problem(err)
			if !sleep(ctx, acceptPause) {
				return
			}
			continue
		}
		if err := forward(ctx, conn, own, target()); err != nil && ctx.Err() == nil {
			problem(err)
		}
	}
}

func forward(ctx context.Context, conn net.Conn, own Identity, t Target) error {
	defer conn.Close()
	other, err := Dial(ctx, t, own)
	if err != nil {
		return err
	}
	defer other.Close()
	// A client with the wrong key learns of it when it reads first (TLS 1.3).
	greeting := make([]byte, 1)
	err = other.SetReadDeadline(time.Now().Add(connectTimeout))
	if err == nil {
		_, err = io.ReadFull(other, greeting)
	}
	if err == nil {
		err = other.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return fmt.Errorf("the exporter at %s does not answer: %w", t.Address, err)
	}
	if _, err := conn.Write(greeting); err != nil {
		return nil // QEMU has given up
	}
	carry(ctx, conn, other)
	return nil
}

// Probe reports whether the target would serve a client with this key now: it has the other key,
// takes ours, and answers what is said to it. All of that has a time.
func Probe(ctx context.Context, t Target, own Identity, say func(io.ReadWriter) error) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := Dial(ctx, t, own)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := say(conn); err != nil {
		return fmt.Errorf("the exporter at %s does not answer: %w", t.Address, err)
	}
	return nil
}

// Server takes connections from one client, by its key.
type Server struct {
	// Own is the server's identity, and Client the fingerprint of the only client.
	Own    Identity
	Client string
	// Open opens what a connection is carried to. The function that it returns is
	// called when that connection has ended, before another one is opened.
	Open func(context.Context) (net.Conn, func(), error)
	// Problem is called with the reason why a client was not served; it may be nil.
	Problem func(error)
	// Busy is called when a connection begins and ends; it may be nil.
	Busy func(bool)
}

// Serve serves until ctx ends, and closes the listener then. There is one connection at
// a time: a newer one of the same client ends the one before, which it has given up.
func (s *Server) Serve(ctx context.Context, l net.Listener) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	var mu sync.Mutex // held by the connection that is served
	var endLast context.CancelFunc = func() {}
	var last sync.Mutex // guards endLast
	places := make(chan struct{}, maxStrangers)
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			s.problem(err)
			if !sleep(ctx, acceptPause) {
				return
			}
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			_ = conn.Close() // of so many, none is likely to be the client
			continue
		}
		all.Go(func() {
			defer conn.Close()
			secure := overTLS(conn, s.Own.TLS(s.Client), tls.Server)
			hand, cancel := context.WithTimeout(ctx, connectTimeout)
			err := secure.HandshakeContext(hand)
			cancel()
			<-places
			if errors.Is(err, io.EOF) {
				return // it only checked that the server answers
			}
			if err != nil {
				s.problem(fmt.Errorf("%s was not served: %w", conn.RemoteAddr(), err))
				return
			}
			secure.coalesce()
			mine, end := context.WithCancel(ctx)
			defer end()
			last.Lock()
			endLast()
			endLast = end
			last.Unlock()
			mu.Lock()
			defer mu.Unlock()
			if mine.Err() == nil {
				s.serve(mine, secure)
			}
		})
	}
}

func (s *Server) problem(err error) {
	if s.Problem != nil {
		s.Problem(err)
	}
}

func (s *Server) serve(ctx context.Context, client net.Conn) {
	if s.Busy != nil {
		s.Busy(true)
		defer s.Busy(false)
	}
	if s.Open == nil {
		s.problem(errors.New("there is nothing that connections are carried to"))
		return
	}
	conn, closed, err := s.Open(ctx)
	if err != nil {
		s.problem(err)
		return
	}
	defer closed()
	defer conn.Close()
	carry(ctx, client, conn)
}

// carry copies in both directions until one of them ends, or ctx; both ends are closed
// then.
func carry(ctx context.Context, a, b net.Conn) {
	defer context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })()
	var both sync.WaitGroup
	for _, c := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			buffer := make([]byte, bufferSize)
			_, _ = io.CopyBuffer(struct{ io.Writer }{c[1]}, struct{ io.Reader }{c[0]}, buffer) // an end is an end
			_, _ = a.Close(), b.Close()
		})
	}
	both.Wait()
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
