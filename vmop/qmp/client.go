package qmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxMessage is the limit for one message from QEMU, in bytes, when
// Options.MaxMessage is zero. The largest message of a plain QEMU is its
// schema, about 200 KiB.
const DefaultMaxMessage = 16 << 20

// maxInBand is how many in-band commands may be unanswered on a connection with
// out-of-band execution. QEMU stops reading at eight, out-of-band commands
// included (QMP specification, "Out-of-band execution"; QMP_REQ_QUEUE_LEN_MAX).
const maxInBand = 7

// maxIdle is how many reply channels a client keeps for reuse.
const maxIdle = 4

// Options configure a connection. The zero value is right for most uses.
type Options struct {
	// OOB negotiates out-of-band execution if the greeting offers it. It costs a limit of seven
	// unanswered in-band commands, which the client enforces by making further calls wait for their
	// turn. Client.OOB reports whether it was granted.
	OOB bool

	// Handshake bounds the wait for the greeting and the capability
	// negotiation. Zero leaves that to the context alone.
	Handshake time.Duration

	// MaxMessage limits one message from QEMU, in bytes; a longer one ends the
	// connection with ErrTooLarge. Zero means DefaultMaxMessage.
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
	cause   error         // why the connection is ending; nothing is sent any more
	err     error         // why it is gone; set once, equal to cause
	done    chan struct{} // closed after all waiting calls and subscriptions received err

	greeted chan Greeting // receives the greeting, once
	reader  chan struct{} // closed when the reader goroutine has ended

	schemaTurn chan struct{}
	schema     atomic.Pointer[Schema]
}

// Dial connects to the monitor that listens on the Unix socket at path, and
// negotiates capabilities. It does not retry: when and whether to connect again
// is the caller's decision.
func Dial(ctx context.Context, path string, o Options) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("qmp: %w", err)
	}
	return NewClient(ctx, conn, o)
}

// NewClient takes over conn, on which nothing has been read yet, and negotiates
// capabilities. On an error conn is closed.
//
// ctx bounds the handshake only. It fails with ErrNoGreeting and the context's
// error if the monitor stays silent.
func NewClient(ctx context.Context, conn net.Conn, o Options) (*Client, error) {
	limit := o.MaxMessage
	if limit <= 0 {
		limit = DefaultMaxMessage
	}
	c := &Client{
		conn:       conn,
		write:      make(chan struct{}, 1),
		file:       make(chan struct{}, 1),
		pending:    pendingCalls{calls: make(map[uint64]pendingCall)},
		idle:       make(chan chan reply, maxIdle),
		done:       make(chan struct{}),
		greeted:    make(chan Greeting, 1),
		reader:     make(chan struct{}),
		schemaTurn: make(chan struct{}, 1),
	}
	go c.read(newLineReader(conn, limit))
	if o.Handshake > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Handshake)
		defer cancel()
	}
	if err := c.handshake(ctx, o.OOB); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) handshake(ctx context.Context, oob bool) error {
	select {
	case c.greeting = <-c.greeted:
	case <-c.done:
		return fmt.Errorf("qmp: handshake: %w", c.Err())
	case <-ctx.Done():
		return fmt.Errorf("qmp: %w: %w", ErrNoGreeting, contextError(ctx))
	}
	var enable struct {
		Enable []string `json:"enable,omitempty"`
	}
	if oob && c.greeting.Offers("oob") {
		enable.Enable = []string{"oob"}
	}
	if _, err := c.Execute(ctx, "qmp_capabilities", enable); err != nil {
		return err
	}
	if enable.Enable != nil {
		c.oob = true
		c.slots = make(chan struct{}, maxInBand)
	}
	return nil
}

// made reports whether there is, or was, a connection.
func (c *Client) made() bool { return c != nil && c.done != nil }

// Greeting returns QEMU's greeting, received when the connection was made.
func (c *Client) Greeting() Greeting { return c.greeting.clone() }

// OOB reports whether out-of-band execution was requested and is available.
func (c *Client) OOB() bool { return c.oob }

// Done returns a channel that is closed when the connection is gone, for whatever reason. Err then
// returns the reason.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection is up, and afterwards why it is gone:
// an error that matches ErrClosed, ErrDisconnected, ErrProtocol, ErrTooLarge or
// ErrPartialWrite. It does not change any more.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection. Calls in progress and subscriptions end with ErrClosed. It may be
// called more than once and at any time, always returns, and does not wait for consumers of events.
// When it returns, the client's goroutine has ended.
func (c *Client) Close() error {
	_ = c.setCause(ErrClosed)
	err := c.conn.Close()
	<-c.reader
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("qmp: close: %w", err)
	}
	return nil
}

// setCause records why the connection is about to end, unless another reason
// came first, and returns the reason that counts.
func (c *Client) setCause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = err
	}
	return c.cause
}

// giveUp ends a connection on which nothing can be sent any more, and returns
// the reason that counts. What QEMU sent before is still read, so that the event
// that explains the end is not lost.
func (c *Client) giveUp(err error) error {
	err = c.setCause(err)
	if half, ok := c.conn.(interface{ CloseRead() error }); ok && half.CloseRead() == nil {
		return err
	}
	_ = c.conn.Close()
	return err
}

// read is the reader goroutine. It never waits for a consumer: replies go to
// channels with one free place, events to rings that forget.
func (c *Client) read(lines *lineReader) {
	defer close(c.reader)
	err := c.readMessages(lines)
	_ = c.conn.Close()
	c.end(err)
}

func (c *Client) readMessages(lines *lineReader) error {
	for greeted := false; ; {
		line, err := lines.next()
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		m, err := parseMessage(line)
		if err != nil {
			return err
		}
		switch {
		case m.qmp != nil && greeted:
			return fmt.Errorf("%w: second greeting", ErrProtocol)
		case m.qmp != nil:
			greeted = true
			greeting, err := m.greeting()
			if err != nil {
				return err
			}
			c.greeted <- greeting
		case m.event != nil:
			err = c.publish(&m)
		default:
			err = c.answer(&m)
		}
		if err != nil {
			return err
		}
	}
}

// end fails all waiting calls and ends all subscriptions with err.
func (c *Client) end(err error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = err
	}
	c.err = c.cause
	c.pending.end(c.err)
	subs := c.subs
	c.subs = nil
	c.mu.Unlock()
	for _, s := range subs {
		s.end(c.err)
	}
	close(c.done)
}

// Greeting is the first message of a monitor.
type Greeting struct {
	Version      Version  `json:"version"`
	Capabilities []string `json:"capabilities"` // capabilities on offer, such as "oob"
}

// Offers reports whether the monitor offers the capability.
func (g Greeting) Offers(capability string) bool {
	return slices.Contains(g.Capabilities, capability)
}

func (g Greeting) clone() Greeting {
	g.Capabilities = slices.Clone(g.Capabilities)
	return g
}

// Version is QEMU's version, for display and reports. Use Client.Schema to find out what QEMU can
// do.
type Version struct {
	QEMU struct {
		Major int `json:"major"`
		Minor int `json:"minor"`
		Micro int `json:"micro"`
	} `json:"qemu"`
	Package string `json:"package"` // the distribution's version, may be empty
}

// String returns the version as QEMU writes it, for example "7.2.22".
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v.QEMU.Major, v.QEMU.Minor, v.QEMU.Micro)
}
