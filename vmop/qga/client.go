package qga

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// DefaultTimeout bounds a call whose context has no deadline.
const DefaultTimeout = 10 * time.Second

// maxUnansweredSyncs is how many calls in a row each send a synchronization request while none is
// answered; after that, one call in as many does. Each request takes about 70 bytes in a socket
// that possibly no agent reads, but a restarted agent has lost all earlier ones, so the requests
// never cease.
const maxUnansweredSyncs = 8

// aLongTimeAgo is a deadline that ends pending reads and writes at once.
var aLongTimeAgo = time.Unix(1, 0)

// Client is a connection to a guest agent. It is safe for concurrent use.
type Client struct {
	conn net.Conn

	turn  chan struct{} // a token in it is the right to use the fields below
	in    *replyReader
	ready bool  // the next reply is that to the next request
	syncs int   // synchronization requests that were not answered
	quiet int   // calls in a row that sent none, because many were not answered
	last  int64 // the number of the latest synchronization request
	gone  error // why the connection is unusable

	closing sync.Once
	closed  chan struct{}
}

// Dial connects to the Unix socket of the agent's port. It does not wait for an agent: the first
// call does.
func Dial(ctx context.Context, socket string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("qga: %w", err)
	}
	return New(conn), nil
}

// New takes over a connection to the agent's port, which others may have used before.
func New(conn net.Conn) *Client {
	return &Client{
		conn:   conn,
		turn:   make(chan struct{}, 1),
		in:     newReplyReader(conn, MaxReply),
		closed: make(chan struct{}),
	}
}

// Close ends the connection and the call in progress, which fails with ErrClosed. It may be called
// more than once.
func (c *Client) Close() error {
	var err error
	c.closing.Do(func() {
		close(c.closed)
		err = c.conn.Close()
	})
	if err != nil {
		return fmt.Errorf("qga: close: %w", err)
	}
	return nil
}

// Sync makes sure that an agent is listening and that the next reply is that to the next command.
// Calls synchronize by themselves where needed.
func (c *Client) Sync(ctx context.Context) error {
	return c.exclusively(ctx, "guest-sync-delimited", c.synchronize)
}

// Execute runs a command that has no method of its own. arguments is encoded as the command's
// arguments and must become a JSON object; nil leaves them out. The result is the agent's,
// undecoded. A refusal is an *Error.
func (c *Client) Execute(ctx context.Context, command string, arguments any) (json.RawMessage, error) {
	request, err := encodeRequest(command, arguments)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	err = c.exclusively(ctx, command, func() error {
		if err := c.prepare(); err != nil {
			return err
		}
		c.ready = false // until its own reply has come
		if _, err := c.conn.Write(request); err != nil {
			return err
		}
		line, err := c.in.answer(command)
		if err != nil {
			return err
		}
		r, err := parseReply(line)
		if err != nil {
			return err
		}
		c.ready = true
		if r.Error != nil {
			r.Error.Command = command
			return r.Error
		}
		result = r.Return
		return nil
	})
	return result, err
}

// executeSilent runs a command that is answered only when it fails. A synchronization request
// follows immediately: the agent works in order, so a refusal comes before the answer to that.
func (c *Client) executeSilent(ctx context.Context, command string, arguments any) error {
	request, err := encodeRequest(command, arguments)
	if err != nil {
		return err
	}
	sent := false
	err = c.exclusively(ctx, command, func() error {
		// Always synchronize: an earlier reply does not prove that the agent still answers.
		if err := c.synchronize(); err != nil {
			return err
		}
		c.ready = false
		id, follow := newSync()
		c.last, c.syncs = id, c.syncs+1
		// The follower has no sentinel in front: the agent would answer it with an error that looks
		// like a refusal.
		if _, err := c.conn.Write(append(request, follow[1:]...)); err != nil {
			return err
		}
		sent = true
		var refusal *Error
		err := c.in.synchronize(syncReply{id: id, sent: c.syncs, refused: func(line []byte) {
			if r, err := parseReply(line); err == nil && r.Error != nil && refusal == nil {
				refusal = r.Error
			}
		}})
		if refusal != nil {
			c.ready, c.syncs, c.quiet = err == nil, 0, 0
			refusal.Command = command
			return refusal
		}
		if err == nil {
			c.ready, c.syncs, c.quiet = true, 0, 0
		}
		return err
	})
	if sent && errors.Is(err, ErrDisconnected) {
		return nil // the machine was gone before the answer came
	}
	return err
}

// exclusively calls do when it is the caller's turn, with a deadline on the connection that follows
// the context, and wraps its error.
func (c *Client) exclusively(ctx context.Context, command string, do func() error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	if ctx.Err() != nil { // send nothing then
		return fmt.Errorf("qga: %s: %w: %w", command, ErrNoAnswer, ctx.Err())
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("qga: %s: %w: %w", command, ErrNoAnswer, ctx.Err())
	case <-c.closed:
		return fmt.Errorf("qga: %s: %w", command, ErrClosed)
	}
	defer func() { <-c.turn }()
	if c.gone != nil {
		return fmt.Errorf("qga: %s: %w", command, c.gone)
	}
	release, err := c.follow(ctx)
	if err == nil {
		err = do()
		release()
	}
	var refusal *Error
	switch {
	case err == nil || errors.As(err, &refusal):
		return err
	case c.isClosed():
		c.gone = ErrClosed
		return fmt.Errorf("qga: %s: %w", command, ErrClosed)
	case errors.Is(err, ErrProtocol), errors.Is(err, ErrTooLarge):
		return fmt.Errorf("qga: %s: %w", command, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("qga: %s: %w: %w", command, ErrNoAnswer, ctx.Err())
	}
	c.gone = fmt.Errorf("%w: %w", ErrDisconnected, err)
	return fmt.Errorf("qga: %s: %w", command, c.gone)
}

// follow lets the connection's deadline pass when the context ends, until release is called. After
// that the deadline is no longer changed.
func (c *Client) follow(ctx context.Context) (release func(), err error) {
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = c.conn.SetDeadline(aLongTimeAgo) // fails on a closed connection only
	})
	return func() {
		if !stop() {
			<-done
		}
	}, nil
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c *Client) prepare() error {
	if c.ready && !c.in.unread() {
		return nil
	}
	return c.synchronize()
}

// synchronize sends a synchronization request, unless many are unanswered, and skips everything up
// to the answer to the latest.
func (c *Client) synchronize() error {
	c.ready = false
	want := syncReply{}
	if c.syncs < maxUnansweredSyncs || c.quiet+1 >= maxUnansweredSyncs {
		if err := c.sendSync(); err != nil {
			return err
		}
	} else {
		c.quiet++
		// An answer to an earlier request shows that an agent reads now. It may have lost the
		// latest one.
		want.other = func() (int64, error) {
			err := c.sendSync()
			return c.last, err
		}
	}
	want.id, want.sent = c.last, c.syncs
	if err := c.in.synchronize(want); err != nil {
		return err
	}
	c.ready, c.syncs, c.quiet = true, 0, 0
	return nil
}

func (c *Client) sendSync() error {
	id, request := newSync()
	c.last, c.syncs, c.quiet = id, c.syncs+1, 0
	_, err := c.conn.Write(request)
	return err
}

// newSync returns a synchronization request with a random number. It begins with the sentinel.
func newSync() (id int64, request []byte) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	// 52 bits: exact also in an agent that reads numbers as floating point.
	id = int64(binary.LittleEndian.Uint64(b[:]) >> 12)
	return id, fmt.Appendf([]byte{sentinel}, `{"execute":"guest-sync-delimited","arguments":{"id":%d}}`+"\n", id)
}

func encodeRequest(command string, arguments any) ([]byte, error) {
	request, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return nil, fmt.Errorf("qga: %s: encode arguments: %w", command, err)
	}
	return append(request, '\n'), nil
}

func call[R any](ctx context.Context, c *Client, command string, arguments any) (R, error) {
	var result R
	raw, err := c.Execute(ctx, command, arguments)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, fmt.Errorf("qga: %s: %w: %w", command, ErrProtocol, err)
	}
	return result, nil
}
