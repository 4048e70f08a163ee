package serial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/muesli/cancelreader"
)

// The keys that a view does not pass on.
const (
	keyDetach    = 0x1d // Ctrl-]
	keyInterrupt = 0x03 // Ctrl-C, in run only
)

// View shows a serial console. It needs at least a connection.
type View struct {
	// Conn is the connection to the console, for example that of host.Machine.Console. The view
	// closes it.
	Conn net.Conn
	// Stdin is sent to the guest; nil sends nothing. A file that can be polled, such as a terminal,
	// is not read after the view ends.
	Stdin io.Reader
	// Stdout gets the guest's output, unchanged; nil discards it.
	Stdout io.Writer
	// Interrupt is called for Ctrl-C; nil passes the key on to the guest.
	Interrupt func()
	// Keys is set if Stdin is a terminal in raw mode ([MakeRaw]), whose Ctrl-] ends the view.
	Keys bool
}

// End is why a view ended.
type End int

// The ends of a view.
const (
	MachineEnded End = iota // the runner closed the console
	Detached                // Ctrl-], or the context ended
)

// Run shows the console until the machine ends, ctx ends or the user detaches.
func (v *View) Run(ctx context.Context) (End, error) {
	if v.Conn == nil {
		return MachineEnded, errors.New("serial console: there is no connection")
	}
	out := v.Stdout
	if out == nil {
		out = io.Discard
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Closing the connection ends both copies, whichever ends first.
	stop := context.AfterFunc(ctx, func() { _ = v.Conn.Close() })
	defer stop()

	var wg sync.WaitGroup
	defer wg.Wait()
	if f, ok := v.Stdin.(*os.File); ok {
		// A plain read of a terminal returns only when a key is typed. Files and /dev/null cannot
		// be polled (epoll_ctl(2): EPERM), but their reads do not block.
		in, err := cancelreader.NewReader(f)
		if err != nil {
			in = plainReader{f}
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			if v.input(in) {
				cancel()
			}
		}()
		defer in.Close()
		defer wg.Wait()
		defer in.Cancel()
	}
	_, err := io.Copy(out, v.Conn)
	switch {
	case ctx.Err() != nil:
		return Detached, nil
	case err != nil && !errors.Is(err, net.ErrClosed):
		return MachineEnded, fmt.Errorf("serial console: %w", err)
	}
	return MachineEnded, nil
}

// plainReader is a file whose reads do not block. It is not closed: it belongs to the program.
type plainReader struct{ io.Reader }

// Cancel implements [cancelreader.CancelReader].
func (plainReader) Cancel() bool { return false }

// Close implements [io.Closer].
func (plainReader) Close() error { return nil }

// input passes on what is typed, and reports whether the view is to end. The end of the input does
// not end the view: the rest of the output is still wanted.
func (v *View) input(in io.Reader) (detach bool) {
	buf := make([]byte, 1024)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			keys, detached := v.keystrokes(buf[:n])
			if len(keys) > 0 {
				if _, werr := v.Conn.Write(keys); werr != nil {
					return false
				}
			}
			if detached {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

// keystrokes returns the keys for the guest. Nothing after Ctrl-] is for the guest.
func (v *View) keystrokes(typed []byte) (keys []byte, detached bool) {
	if !v.Keys {
		return typed, false
	}
	if i := bytes.IndexByte(typed, keyDetach); i >= 0 {
		typed, detached = typed[:i], true
	}
	if v.Interrupt == nil {
		return typed, detached
	}
	for _, k := range typed {
		if k == keyInterrupt {
			v.Interrupt()
		} else {
			keys = append(keys, k)
		}
	}
	return keys, detached
}

// Dial connects to the console that a runner serves at the path of its socket.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("serial console: %w", err)
	}
	return conn, nil
}
