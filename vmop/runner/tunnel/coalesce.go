package tunnel

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
)

// secure is a TLS connection. TLS writes records of 16 KiB; here the records of one Write are sent
// at once, and all available ones are received at once, which halves the cost.
type secure struct {
	*tls.Conn
	under *coalescing
}

// overTLS wraps tls.Client or tls.Server; the handshake has not happened yet.
func overTLS(conn net.Conn, c *tls.Config, make func(net.Conn, *tls.Config) *tls.Conn) *secure {
	under := &coalescing{Conn: conn, r: bufio.NewReaderSize(conn, bufferSize)}
	return &secure{make(under, c), under}
}

// coalesce is called after the handshake.
func (s *secure) coalesce() {
	s.under.mu.Lock()
	defer s.under.mu.Unlock()
	// The overhead of the records is added.
	s.under.w = bufio.NewWriterSize(s.under.Conn, bufferSize+bufferSize/16)
}

// Write writes p and flushes it.
func (s *secure) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if ferr := s.under.flush(); err == nil {
		err = ferr
	}
	return n, err
}

// coalescing is the connection below TLS. It buffers writes until it is flushed.
type coalescing struct {
	net.Conn
	r *bufio.Reader

	mu sync.Mutex
	w  *bufio.Writer // nil during the handshake: everything is sent at once
}

func (c *coalescing) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c *coalescing) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w == nil {
		return c.Conn.Write(p)
	}
	return c.w.Write(p)
}

func (c *coalescing) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w == nil {
		return nil
	}
	return c.w.Flush()
}

// bufferSize holds a few TLS records.
const bufferSize = 128 << 10
