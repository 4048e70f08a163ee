package spice

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// The types of channels.
const (
	Main    = 1
	Display = 2
	Inputs  = 3
	Cursor  = 4
)

// Channel names a channel of a server.
type Channel struct {
	Type, ID uint8
}

// Client is a viewer: a session with its channels, each a connection of its own.
type Client struct {
	// Offered are the channels of the server besides the main one.
	Offered []Channel

	dial     func(context.Context) (net.Conn, error)
	password string
	session  uint32
	main     *channel

	mu       sync.Mutex
	attached map[Channel]*channel
}

// Open begins a session. Each channel is dialed by itself. The error is [ErrRefused] if the
// password is wrong. The caller must close the client.
func Open(ctx context.Context, dial func(context.Context) (net.Conn, error), password string) (*Client, error) {
	c := &Client{dial: dial, password: password, attached: map[Channel]*channel{}}
	var err error
	if c.main, err = c.open(ctx, Channel{Type: Main}); err != nil {
		return nil, err
	}
	if err := c.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("main channel: %w", err), c.main.close())
	}
	return c, nil
}

func (c *Client) begin(ctx context.Context) error {
	body, err := c.main.wait(ctx, msgMainInit)
	if err != nil {
		return err
	}
	init, err := decode[mainInit](body)
	if err != nil {
		return err
	}
	c.session = init.Session
	if err := c.main.send(msgAttachChannels, nil); err != nil {
		return err
	}
	if body, err = c.main.wait(ctx, msgMainChannels); err != nil {
		return err
	}
	n, err := decode[uint32](body)
	if err != nil {
		return err
	}
	for i := range int(n) {
		ch, err := decode[Channel](body[min(4+2*i, len(body)):])
		if err != nil {
			return err
		}
		c.Offered = append(c.Offered, ch)
	}
	return nil
}

// Attach opens an offered channel and waits until the server uses it. For a display channel it
// returns the size of the screen in pixels.
func (c *Client) Attach(ctx context.Context, ch Channel) (width, height int, err error) {
	if !slices.Contains(c.Offered, ch) {
		return 0, 0, fmt.Errorf("channel %+v: the server offers %+v", ch, c.Offered)
	}
	conn, err := c.open(ctx, ch)
	if err != nil {
		return 0, 0, err
	}
	c.mu.Lock()
	c.attached[ch] = conn
	c.mu.Unlock()
	if ch.Type != Display {
		_, err := conn.wait(ctx, 0)
		return 0, 0, err
	}
	if err := conn.send(msgDisplayInit, displayInit{CacheID: 1, CacheSize: 1 << 20, DictionaryID: 1, DictionaryBytes: 1 << 20}); err != nil {
		return 0, 0, err
	}
	body, err := conn.wait(ctx, msgDisplaySurface)
	if err != nil {
		return 0, 0, err
	}
	s, err := decode[surface](body)
	return int(s.Width), int(s.Height), err
}

// Detach closes an attached channel.
func (c *Client) Detach(ch Channel) error {
	c.mu.Lock()
	conn := c.attached[ch]
	delete(c.attached, ch)
	c.mu.Unlock()
	if conn == nil {
		return fmt.Errorf("channel %+v is not attached", ch)
	}
	return conn.close()
}

// LocalAddr is the client's end of the main channel.
func (c *Client) LocalAddr() net.Addr { return c.main.conn.LocalAddr() }

// Done is closed when the session has ended, on either side.
func (c *Client) Done() <-chan struct{} { return c.main.done }

// Close ends the session and waits until all of it has ended.
func (c *Client) Close() error {
	err := c.main.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.attached {
		err = errors.Join(err, conn.close())
	}
	clear(c.attached)
	return err
}

func (c *Client) open(ctx context.Context, ch Channel) (*channel, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(deadline)
	}
	if err == nil {
		err = link(conn, c.session, ch, c.password)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	out := &channel{conn: conn, done: make(chan struct{}), heard: map[uint16][]byte{}, news: make(chan struct{})}
	go out.read()
	return out, nil
}

// channel is a connection that is read all the time: a server waits for its clients.
type channel struct {
	conn net.Conn
	done chan struct{} // closed when reading has ended

	writing sync.Mutex
	serial  uint64

	mu    sync.Mutex
	heard map[uint16][]byte // the last message of each type
	any   bool
	news  chan struct{} // closed and replaced when a message arrives
}

func (c *channel) close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

func (c *channel) send(kind uint16, body any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	size := 0
	if body != nil {
		size = binary.Size(body)
	}
	c.serial++
	var out bytes.Buffer
	if err := binary.Write(&out, binary.LittleEndian, header{Serial: c.serial, Type: kind, Size: uint32(size)}); err != nil {
		return err
	}
	if body != nil {
		if err := binary.Write(&out, binary.LittleEndian, body); err != nil {
			return err
		}
	}
	_, err := c.conn.Write(out.Bytes())
	return err
}

// read answers pings and acknowledgements until the connection ends.
func (c *channel) read() {
	defer close(c.done)
	var ack setAck
	left := uint32(0) // messages until the next acknowledgement
	for {
		kind, body, err := readMessage(c.conn)
		if err != nil {
			return
		}
		if ack.Window > 0 {
			if left--; left == 0 {
				err, left = c.send(msgAck, nil), ack.Window
			}
		}
		switch kind {
		case msgSetAck:
			var bad error
			if ack, bad = decode[setAck](body); bad != nil {
				return
			}
			left = ack.Window
			err = errors.Join(err, c.send(msgAckSync, ack.Generation))
		case msgPing:
			p, bad := decode[ping](body)
			if bad != nil {
				return
			}
			err = errors.Join(err, c.send(msgPong, p))
		}
		if err != nil {
			return
		}
		c.mu.Lock()
		c.heard[kind], c.any = body, true
		close(c.news)
		c.news = make(chan struct{})
		c.mu.Unlock()
	}
}

// wait waits for a message of a type, 0 for any; it may have arrived before.
func (c *channel) wait(ctx context.Context, kind uint16) ([]byte, error) {
	for ended := false; ; {
		c.mu.Lock()
		body, ok := c.heard[kind]
		if kind == 0 {
			ok = c.any
		}
		news := c.news
		c.mu.Unlock()
		if ok {
			return body, nil
		}
		if ended {
			return nil, fmt.Errorf("the server has closed the channel before message %d", kind)
		}
		select {
		case <-news:
		case <-c.done:
			ended = true
		case <-ctx.Done():
			return nil, fmt.Errorf("message %d: %w", kind, ctx.Err())
		}
	}
}
