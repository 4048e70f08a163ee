package tunnel

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
)

// secure is a connection within TLS. TLS cuts what is written into records of 16 KiB;
// here those of one Write are sent at once, and as many are received at once as there
// are: that is half of what the way costs.
type secure struct {
	*tls.Conn
	under *coalescing
}

// overTLS makes a connection of tls.Client or tls.Server, whose handshake is still to come.
func overTLS(conn net.Conn, c *tls.Config, make func(net.Conn, *tls.Config) *tls.Conn) *secure {
	under := &coalescing{Conn: conn, r: bufio.NewReaderSize(conn, bufferSize)}
	return &secure{make(under, c), under}
}

// coalesce is called after the handshake.
func (s *secure) coalesce() {
	s.under.mu.Lock()
	defer s.under.mu.Unlock()
	// With room for what the records have beside their content.
	s.under.w = bufio.NewWriterSize(s.under.Conn, bufferSize+bufferSize/16)
}

// Write sends all of it.
func (s *secure) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if ferr := s.under.flush(); err == nil {
		err = ferr
	}
	return n, err
}

// coalescing is the connection below TLS. It keeps what is written until it is flushed.
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

// bufferSize is a few records of TLS.
const bufferSize = 128 << 10
