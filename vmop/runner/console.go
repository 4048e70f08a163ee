package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
)

const (
	// scrollback is the earlier output that a new client gets, in bytes.
	scrollback = 64 << 10
	// viewerBacklog is the number of reads that a client may lag behind before it loses output.
	viewerBacklog = 256
	acceptRetry   = 100 * time.Millisecond
)

// console reads the serial port while it is open, even without clients: an unread port stops the
// guest. Output is kept for later clients and copied to connected ones; a slow client loses output
// and delays no other.
type console struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	serial  net.Conn // nil until connected
	past    []byte
	viewers map[*viewer]bool
	closed  bool
}

type viewer struct {
	conn net.Conn
	out  chan []byte
}

func listenConsole(runtimeDir string) (*console, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(runtimeDir, qemucmd.SocketConsole.FileName()), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("serial console: %w", err)
	}
	c := &console{listener: l, viewers: map[*viewer]bool{}}
	c.wg.Add(1)
	go c.accept()
	return c, nil
}

func (c *console) connect(socket string) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("serial console: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.Join(net.ErrClosed, conn.Close())
	}
	c.serial = conn
	c.wg.Add(1)
	go c.drain(conn)
	return nil
}

func (c *console) drain(conn net.Conn) {
	defer c.wg.Done()
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			c.publish(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

func (c *console) publish(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past = append(c.past, p...)
	if over := len(c.past) - scrollback; over > 0 {
		c.past = append(c.past[:0], c.past[over:]...)
	}
	if len(c.viewers) == 0 {
		return
	}
	shared := append([]byte(nil), p...)
	for v := range c.viewers {
		select {
		case v.out <- shared:
		default: // it is too slow
		}
	}
}

func (c *console) accept() {
	defer c.wg.Done()
	for {
		conn, err := c.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files
			time.Sleep(acceptRetry)
		default:
			c.serve(conn)
		}
	}
}

func (c *console) serve(conn net.Conn) {
	v := &viewer{conn: conn, out: make(chan []byte, viewerBacklog)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return
	}
	if len(c.past) > 0 {
		v.out <- append([]byte(nil), c.past...)
	}
	c.viewers[v] = true
	c.wg.Add(2)
	go c.show(v)
	go c.input(v)
}

func (c *console) show(v *viewer) {
	defer c.wg.Done()
	var failed bool
	for p := range v.out {
		if failed {
			continue
		}
		if _, err := v.conn.Write(p); err != nil {
			failed = true
			c.drop(v)
		}
	}
	_ = v.conn.Close()
}

func (c *console) input(v *viewer) {
	defer c.wg.Done()
	defer c.drop(v)
	buf := make([]byte, 1024)
	for {
		n, err := v.conn.Read(buf)
		if n > 0 {
			c.mu.Lock()
			serial := c.serial
			c.mu.Unlock()
			if serial != nil {
				if _, err := serial.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *console) drop(v *viewer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.viewers[v] {
		c.dismiss(v)
	}
}

// dismiss ends a viewer once it has what is queued for it. One that does not read must not hold up
// the end of the console, which waits for all viewers, also for those it knows no more.
func (c *console) dismiss(v *viewer) {
	_ = v.conn.SetDeadline(deadlineIn(consoleFlush))
	delete(c.viewers, v)
	close(v.out)
}

// close ends the console after QEMU's end: clients get what is queued for them before the end of
// the stream.
func (c *console) close() error {
	c.mu.Lock()
	c.closed = true
	serial := c.serial
	c.mu.Unlock()
	var errs []error
	errs = append(errs, c.listener.Close())
	if serial != nil {
		errs = append(errs, serial.Close())
	}
	c.mu.Lock()
	for v := range c.viewers {
		c.dismiss(v)
	}
	c.mu.Unlock()
	c.wg.Wait()
	return ignoreClosed(errors.Join(errs...))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
