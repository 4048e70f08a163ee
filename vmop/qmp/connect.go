package qmp

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Dial connects to the monitor that listens on the Unix socket at path, and negotiates
// capabilities. It does not retry.
func Dial(ctx context.Context, path string, o Options) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("qmp: %w", err)
	}
	return NewClient(ctx, conn, o)
}

// NewClient takes over conn, from which nothing may have been read yet, and negotiates
// capabilities. On an error conn is closed.
//
// ctx bounds the handshake only. The error is ErrNoGreeting, with the context's, if the monitor
// stays silent.
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

// read is the reader goroutine. It never waits for a consumer: replies go to channels with one free
// place, events to ring buffers.
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
