package tinyguest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// promptText is the guest's prompt.
const promptText = "> "

// ErrCommand reports that the guest answered a command with "error: ...".
var ErrCommand = errors.New("guest")

// Console is a conversation with a guest over its serial port. It reads all the time, so that the
// guest never blocks on its console, and keeps everything for error messages. Its methods may be
// called concurrently; commands are serialized.
type Console struct {
	rw   io.ReadWriter
	done chan struct{} // closed when reading has ended

	asking sync.Mutex // held during a command

	mu      sync.Mutex
	text    []byte        // everything read, without carriage returns
	next    int           // where the next expectation starts
	changed chan struct{} // closed and replaced when text grows or reading ends
	err     error         // why reading ended
}

// NewConsole starts reading from rw. The caller must close the console.
func NewConsole(rw io.ReadWriter) *Console {
	c := &Console{rw: rw, done: make(chan struct{}), changed: make(chan struct{})}
	go c.read()
	return c
}

// Close closes the connection, if it is an [io.Closer], and then waits until reading has ended. A
// connection that is not one must have ended by itself.
func (c *Console) Close() error {
	var err error
	if closer, ok := c.rw.(io.Closer); ok {
		err = closer.Close()
	}
	<-c.done
	return err
}

func (c *Console) read() {
	defer close(c.done)
	buf := make([]byte, 4096)
	for {
		n, err := c.rw.Read(buf)
		c.mu.Lock()
		c.text = append(c.text, bytes.ReplaceAll(buf[:n], []byte("\r"), nil)...)
		c.err = err
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Transcript returns everything that the guest has printed, without carriage returns.
func (c *Console) Transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}

// Expect waits until the guest has printed text and returns everything from the end of the last
// expectation to the end of text. Returned text is not searched again. The error has the end of the
// transcript.
func (c *Console) Expect(ctx context.Context, text string) (string, error) {
	return c.expect(ctx, "", text)
}

// expect waits for before and text, where before may have been returned by the last expectation.
func (c *Console) expect(ctx context.Context, before, text string) (string, error) {
	for {
		c.mu.Lock()
		start := c.next
		if bytes.HasSuffix(c.text[:c.next], []byte(before)) {
			start -= len(before)
		}
		if i := bytes.Index(c.text[start:], []byte(before+text)); i >= 0 {
			end := start + i + len(before) + len(text)
			out := string(c.text[c.next:end])
			c.next = end
			c.mu.Unlock()
			return out, nil
		}
		err, changed := c.err, c.changed
		c.mu.Unlock()
		if err != nil {
			return "", fmt.Errorf("console: waiting for %q: %w; the guest's last words:\n%s", text, err, c.tail())
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", fmt.Errorf("console: waiting for %q: %w; the guest's last words:\n%s", text, ctx.Err(), c.tail())
		}
	}
}

func (c *Console) tail() string {
	const lines = 40
	all := strings.Split(c.Transcript(), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// WaitReady waits until the guest has booted and shows its prompt.
func (c *Console) WaitReady(ctx context.Context) error {
	if _, err := c.Expect(ctx, Ready+"\n"); err != nil {
		return err
	}
	_, err := c.Expect(ctx, "\n"+promptText)
	return err
}

// Send types a line. Use it instead of Command where the guest does not return to its prompt, as
// with poweroff.
func (c *Console) Send(line string) error {
	if strings.ContainsAny(line, "\r\n") {
		return fmt.Errorf("console: a command is one line, not %q", line)
	}
	return c.Type(line + "\n")
}

// Type sends keys as they are: control characters, or an incomplete line.
func (c *Console) Type(keys string) error {
	if _, err := io.WriteString(c.rw, keys); err != nil {
		return fmt.Errorf("console: send %q: %w", keys, err)
	}
	return nil
}

// Command types a line and returns the answer, without the final line feed. The guest must be
// ready. An answer that is an error is returned with an error that wraps [ErrCommand].
func (c *Console) Command(ctx context.Context, line string) (string, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := c.Send(line); err != nil {
		return "", err
	}
	// The guest's echo; asynchronous messages may have torn an earlier one, but it is repeated
	// after them.
	if _, err := c.expect(ctx, promptText, line+"\n"); err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		part, err := c.Expect(ctx, promptText)
		if err != nil {
			return "", err
		}
		out.WriteString(part)
		// The prompt is at the start of a line, anything else is text.
		if answer, ok := strings.CutSuffix(out.String(), promptText); ok && (answer == "" || strings.HasSuffix(answer, "\n")) {
			answer = strings.TrimSuffix(answer, "\n")
			if message, failed := strings.CutPrefix(answer, "error: "); failed {
				return answer, fmt.Errorf("%w: %s: %s", ErrCommand, line, message)
			}
			return answer, nil
		}
	}
}
