package main

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

// The keys that the view of a console does not pass on.
const (
	keyDetach    = 0x1d // Ctrl-]
	keyInterrupt = 0x03 // Ctrl-C, in run only
)

// view shows a serial console.
type view struct {
	conn   net.Conn
	stdin  io.Reader // nil takes no input
	stdout io.Writer
	// interrupt is called for Ctrl-C; nil passes the key on to the guest.
	interrupt func()
	// keys says that stdin is a terminal in raw mode, whose Ctrl-] ends the view.
	keys bool
}

// viewEnd says why a view ended.
type viewEnd int

const (
	viewMachineEnded viewEnd = iota // the runner closed the console
	viewDetached                    // Ctrl-], or ctx ended
)

// run shows the console until the machine ends, ctx ends or somebody detaches.
func (v *view) run(ctx context.Context) (viewEnd, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Whatever ends first ends the other: a closed connection ends both copies.
	stop := context.AfterFunc(ctx, func() { _ = v.conn.Close() })
	defer stop()

	var wg sync.WaitGroup
	defer wg.Wait()
	if f, ok := v.stdin.(*os.File); ok {
		// A plain read of a terminal ends when somebody types, and not before.
		// Files and /dev/null, which cannot be waited for (epoll_ctl(2): EPERM), make
		// nobody wait.
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
	_, err := io.Copy(v.stdout, v.conn)
	switch {
	case ctx.Err() != nil:
		return viewDetached, nil
	case err != nil && !errors.Is(err, net.ErrClosed):
		return viewMachineEnded, fmt.Errorf("serial console: %w", err)
	}
	return viewMachineEnded, nil
}

// plainReader is a file whose reads never wait. It is not closed: it is the program's.
type plainReader struct{ io.Reader }

// Cancel implements [cancelreader.CancelReader].
func (plainReader) Cancel() bool { return false }

// Close implements [io.Closer].
func (plainReader) Close() error { return nil }

// input passes on what is typed, and says whether the view shall end. Input that
// ends does not end the view: the rest of the output is still wanted.
func (v *view) input(in io.Reader) (detach bool) {
	buf := make([]byte, 1024)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			keys, detached := v.keystrokes(buf[:n])
			if len(keys) > 0 {
				if _, werr := v.conn.Write(keys); werr != nil {
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

// keystrokes takes out what the guest shall not get. What stands behind Ctrl-]
// is not typed for the guest.
func (v *view) keystrokes(typed []byte) (keys []byte, detached bool) {
	if !v.keys {
		return typed, false
	}
	if i := bytes.IndexByte(typed, keyDetach); i >= 0 {
		typed, detached = typed[:i], true
	}
	if v.interrupt == nil {
		return typed, detached
	}
	for _, k := range typed {
		if k == keyInterrupt {
			v.interrupt()
		} else {
			keys = append(keys, k)
		}
	}
	return keys, detached
}

// dialConsole connects to the console that a runner serves.
func dialConsole(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("serial console: %w", err)
	}
	return conn, nil
}
