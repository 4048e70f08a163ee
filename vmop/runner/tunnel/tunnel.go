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
	// connectTimeout bounds everything before the first byte of the disk's protocol, for which QEMU
	// and its guest block.
	connectTimeout = 5 * time.Second
	// silence is how long sent data may stay unacknowledged (TCP_USER_TIMEOUT).
	silence = 30 * time.Second
	// keepAlive detects a peer that vanished within about half a minute.
	keepAlive   = 10 * time.Second
	acceptPause = 100 * time.Millisecond
	// maxStrangers bounds the connections in their handshake at a time.
	maxStrangers = 16
)

// Target is the other end of a tunnel.
type Target struct {
	// Address is HOST:PORT.
	Address string
	// Fingerprint is the fingerprint of its key.
	Fingerprint string
}

// Dial connects to a target, and fails with [ErrStranger] if that has another key.
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

// Forward accepts connections of a listener, one after the other, and forwards each to the current
// target, until ctx ends, when it closes the listener. problem is called with the reason why a
// connection was not forwarded; such a connection is closed at once.
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
	// With TLS 1.3, a client with the wrong key gets the error when it first reads.
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

// Probe returns an error unless the target would serve a client with this key now: it has the
// expected key, accepts ours, and answers say within a time limit.
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

// Server accepts connections from one client, authenticated by its key.
type Server struct {
	// Own is the server's identity, and Client the fingerprint of the only client.
	Own    Identity
	Client string
	// Open opens the connection to forward to. The function that it returns is called when that
	// connection has ended, before another one is opened.
	Open func(context.Context) (net.Conn, func(), error)
	// Problem is called with the reason why a client was not served; it may be nil.
	Problem func(error)
	// Busy is called when a connection begins and when it ends; it may be nil.
	Busy func(bool)
}

// Serve serves until ctx ends, and closes the listener then. A newer connection of the client ends
// the one before, which the client has given up.
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
			_ = conn.Close() // with so many, it is unlikely to be the client
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

// carry copies in both directions until one of them or ctx ends, and closes both connections.
func carry(ctx context.Context, a, b net.Conn) {
	defer context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })()
	var both sync.WaitGroup
	for _, c := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			buffer := make([]byte, bufferSize)
			_, _ = io.CopyBuffer(struct{ io.Writer }{c[1]}, struct{ io.Reader }{c[0]}, buffer) // an error ends the connection, as EOF does
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
