package qmp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Command is a QMP command together with the type of its result. The value itself is encoded as the
// command's arguments.
type Command[R any] interface {
	// QMP returns the command's name and a value that the result is decoded into, usually the zero
	// value.
	QMP() (name string, result R)
}

// None is the result of commands without a result.
type None struct{}

// Do runs cmd and waits for its own reply.
//
// A refusal by QEMU is an *Error. If ctx ends first, the error wraps the context's error, and the
// connection stays usable; QEMU may have run the command nevertheless. If the connection ends, the
// error wraps Client.Err.
func Do[R any](ctx context.Context, c *Client, cmd Command[R], opts ...CallOption) (R, error) {
	name, result := cmd.QMP()
	raw, err := c.call(ctx, name, cmd, opts)
	if err != nil {
		return result, err
	}
	switch r := any(&result).(type) {
	case *None:
	case *json.RawMessage:
		*r = raw
	default:
		if err := json.Unmarshal(raw, r); err != nil {
			return result, fmt.Errorf("qmp: %s: decode result: %w", name, err)
		}
	}
	return result, nil
}

// Execute runs a command by name, for those that have no type here. args is encoded as the
// arguments and must be a JSON object; nil and an empty object are left out. The result is QEMU's,
// undecoded. Errors are as with Do.
func (c *Client) Execute(ctx context.Context, name string, args any, opts ...CallOption) (json.RawMessage, error) {
	return c.call(ctx, name, args, opts)
}

// CallOption is an option of one call.
type CallOption struct {
	file *os.File
	oob  bool
}

// WithFile passes a file descriptor along with the command, as getfd and add-fd need it. QEMU gets
// a duplicate; f stays the caller's. It requires a Unix socket. Such calls run one at a time,
// because QEMU keeps only the last descriptor that it received.
func WithFile(f *os.File) CallOption { return CallOption{file: f} }

// OutOfBand has the command executed at once, before those that are queued. It needs a connection
// with Options.OOB; QEMU refuses commands that do not allow it.
func OutOfBand() CallOption { return CallOption{oob: true} }

func (c *Client) call(ctx context.Context, name string, args any, opts []CallOption) (json.RawMessage, error) {
	var o CallOption
	for _, opt := range opts {
		if opt.file != nil {
			o.file = opt.file
		}
		o.oob = o.oob || opt.oob
	}
	if !c.made() {
		return nil, fmt.Errorf("qmp: %s: %w", name, ErrNotConnected)
	}
	if err := c.callable(ctx, o); err != nil {
		return nil, fmt.Errorf("qmp: %s: %w", name, err)
	}
	req := requests.Get().(*request)
	defer req.recycle()
	if err := req.begin(name, args, o.oob); err != nil {
		return nil, err
	}

	ch := c.replyChannel()
	number, err := c.send(ctx, req, pendingCall{name: name, reply: ch, oob: o.oob}, o.file)
	r := reply{err: err}
	if err == nil {
		r = c.await(ctx, number, ch)
	}
	c.keepReplyChannel(ch)
	if r.err != nil {
		if _, refused := r.err.(*Error); refused {
			return nil, r.err
		}
		return nil, fmt.Errorf("qmp: %s: %w", name, r.err)
	}
	return r.value, nil
}

// replyChannel returns a channel with one free place. Channels are reused, but not across clients,
// because a channel belongs to one synctest bubble.
func (c *Client) replyChannel() chan reply {
	select {
	case ch := <-c.idle:
		return ch
	default:
		return make(chan reply, 1)
	}
}

func (c *Client) keepReplyChannel(ch chan reply) {
	select {
	case c.idle <- ch:
	default:
	}
}

func (c *Client) callable(ctx context.Context, o CallOption) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	if o.oob && !c.oob {
		return ErrNoOutOfBand
	}
	if o.file != nil && !passesFiles(c.conn) {
		return ErrNoFiles
	}
	return nil
}

// send waits for the call's turn, registers it and writes it. When it returns an error, the call's
// reply channel is empty and stays so.
func (c *Client) send(ctx context.Context, req *request, call pendingCall, file *os.File) (number uint64, err error) {
	if c.slots != nil && !call.oob {
		if err := c.acquire(ctx, c.slots); err != nil {
			return 0, err
		}
		call.slot = true
	}
	if file != nil {
		if err := c.acquire(ctx, c.file); err != nil {
			c.release(call)
			return 0, err
		}
		call.file = true
	}
	if err := c.acquire(ctx, c.write); err != nil {
		c.release(call)
		return 0, err
	}
	defer func() { <-c.write }()
	number, id, err := c.register(call)
	if err != nil {
		c.release(call)
		return 0, err
	}
	line := req.finish(id)
	n, err := c.writeLine(ctx, line, file)
	if err == nil {
		return number, nil
	}
	switch {
	case errors.Is(err, errFile):
	case ctx.Err() == nil:
		err = c.giveUp(fmt.Errorf("%w: %w", ErrDisconnected, err))
	case n == 0:
		err = contextError(ctx) // QEMU has received nothing of it
	default:
		err = c.giveUp(fmt.Errorf("%w, %d of %d bytes of %s: %w", ErrPartialWrite, n, len(line), call.name, contextError(ctx)))
	}
	if c.unregister(number) {
		c.release(call)
	} else if r := <-call.reply; r.err != nil {
		err = r.err // the connection ended meanwhile, for another reason
	}
	return 0, err
}

// acquire puts a token into sem, waiting at most until ctx or the connection ends.
func (c *Client) acquire(ctx context.Context, sem chan struct{}) error {
	select {
	case sem <- struct{}{}:
		return nil
	default:
	}
	select {
	case sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	case <-c.done:
		return c.Err()
	}
}

func (c *Client) release(call pendingCall) {
	if call.file {
		<-c.file
	}
	if call.slot {
		<-c.slots
	}
}

func (c *Client) register(call pendingCall) (number, id uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return 0, 0, c.cause
	}
	number, id = c.pending.add(call, c.oob)
	return number, id, nil
}

// unregister withdraws a call. It returns false if the reader was faster; then the call's reply
// channel holds a reply.
func (c *Client) unregister(number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.pending.remove(number)
	return ok
}

func (c *Client) await(ctx context.Context, number uint64, ch chan reply) reply {
	select {
	case r := <-ch:
		return r
	case <-ctx.Done():
	}
	c.mu.Lock()
	abandoned := c.pending.abandon(number)
	c.mu.Unlock()
	if !abandoned {
		return <-ch // it came at the same moment
	}
	return reply{err: contextError(ctx)}
}

func (c *Client) answer(m *message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	call, err := c.pending.answered(m)
	if err != nil {
		return err
	}
	if call.reply != nil {
		r, err := m.reply(call.name)
		if err != nil {
			call.reply <- reply{err: err}
			return err
		}
		call.reply <- r
	}
	c.release(call)
	return nil
}
