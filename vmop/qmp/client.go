package qmp

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxMessage is the limit for one message from QEMU, in bytes, when Options.MaxMessage is
// zero. The largest message of a plain QEMU is its schema, about 200 KiB.
const DefaultMaxMessage = 16 << 20

// maxInBand is the maximum of unanswered in-band commands on a connection with out-of-band
// execution. QEMU stops reading at eight, out-of-band commands included (QMP specification,
// "Out-of-band execution"; QMP_REQ_QUEUE_LEN_MAX).
const maxInBand = 7

const maxIdle = 4

// Options configure a connection. The zero value is right for most uses.
type Options struct {
	// OOB negotiates out-of-band execution if the greeting offers it; Client.OOB reports whether it
	// was granted. It limits the connection to seven unanswered in-band commands; further calls
	// wait for their turn.
	OOB bool

	// Handshake bounds the wait for the greeting and the capability negotiation. Zero leaves that
	// to the context.
	Handshake time.Duration

	// MaxMessage limits one message from QEMU, in bytes; a longer one ends the connection with
	// ErrTooLarge. Zero means DefaultMaxMessage.
	MaxMessage int
}

// Client is one connection to a QMP monitor. It is safe for concurrent use. Its
// only goroutine reads the socket and ends with the connection.
type Client struct {
	conn     net.Conn
	greeting Greeting
	oob      bool

	write chan struct{} // a token in it is the right to write
	file  chan struct{} // a token in it is an unanswered call that carries a file
	slots chan struct{} // tokens are unanswered in-band calls; nil without OOB

	idle chan chan reply // empty reply channels for reuse

	mu      sync.Mutex
	pending pendingCalls
	subs    []*Subscription
	cause   error         // why the connection is ending; nothing more is sent
	err     error         // why it ended; set once, equal to cause
	done    chan struct{} // closed after all waiting calls and subscriptions received err

	greeted chan Greeting // receives the greeting, once
	reader  chan struct{} // closed when the reader goroutine has ended

	schemaTurn chan struct{}
	schema     atomic.Pointer[Schema]
}

func (c *Client) made() bool { return c != nil && c.done != nil }

// Greeting returns QEMU's greeting.
func (c *Client) Greeting() Greeting { return c.greeting.clone() }

// OOB reports whether out-of-band execution was requested and is available.
func (c *Client) OOB() bool { return c.oob }

// Done returns a channel that is closed when the connection has ended. Err then returns the reason.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection is up, and then why it ended: an error that matches
// ErrClosed, ErrDisconnected, ErrProtocol, ErrTooLarge or ErrPartialWrite.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection. Calls in progress and subscriptions end with ErrClosed. It may be
// called more than once and at any time, and does not wait for consumers of events. When it
// returns, the client's goroutine has ended.
func (c *Client) Close() error {
	_ = c.setCause(ErrClosed)
	err := c.conn.Close()
	<-c.reader
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("qmp: close: %w", err)
	}
	return nil
}

func (c *Client) setCause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = err
	}
	return c.cause
}

// giveUp ends a connection on which nothing can be sent any more, and returns the reason recorded
// first. What QEMU sent before is still read, so that the event that explains the end is not lost.
func (c *Client) giveUp(err error) error {
	err = c.setCause(err)
	if half, ok := c.conn.(interface{ CloseRead() error }); ok && half.CloseRead() == nil {
		return err
	}
	_ = c.conn.Close()
	return err
}
