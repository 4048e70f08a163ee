package vmopagent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// maxLine is the longest line that is parsed, in bytes; the rest of a longer one is skipped.
const maxLine = 4096

// writeTimeout bounds the wait for QEMU to accept a line; usually there is room at once.
const writeTimeout = 10 * time.Second

// ErrDisconnected is the error when the connection to the agent's port has ended.
var ErrDisconnected = errors.New("connection to the VMOP agent lost")

// Inputs are the runner's inputs while Run works. Channels may be nil and are not closed.
type Inputs struct {
	Users <-chan string // the wanted user, "" for none
	Ports <-chan bool   // whether the guest has the port open (VSERPORT_CHANGE)
}

// Run talks to the agent behind conn, the host's end of its port, until the context or the
// connection ends, and closes conn. report is called with the first state and with each that
// differs, from Run's goroutine: it must not block. m belongs to Run meanwhile and can be used for
// the next connection to the same machine afterwards.
//
// In the last report no agent is connected. The result is the context's error, or one that matches
// ErrDisconnected.
func Run(ctx context.Context, conn net.Conn, m *Machine, in Inputs, report func(State)) error {
	if m == nil {
		return errors.Join(errors.New("vmopagent: there is no machine: the pointer is nil"), conn.Close())
	}
	stop := make(chan struct{})
	lines := make(chan string)
	ended := make(chan error, 1)
	go func() { ended <- read(conn, lines, stop) }()
	// It also ends a blocked write.
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		release()
		close(stop)
		_ = conn.Close()
		for range lines { // until read closes it, as its last step
		}
	}()

	last := m.State()
	report(last)
	tell := func() {
		if s := m.State(); s != last {
			last = s
			report(s)
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if wake := m.Wake(); wake.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(wake))
		}
		var send []string
		var failed error
		select {
		case line, ok := <-lines:
			if ok {
				send = m.Line(time.Now(), line)
			} else {
				failed = <-ended
			}
		case user := <-in.Users:
			send = m.Want(time.Now(), user)
		case open := <-in.Ports:
			if open {
				send = m.Opened(time.Now())
			} else {
				m.Closed(time.Now())
			}
		case now := <-timer.C:
			send = m.Tick(now)
		case <-ctx.Done():
			failed = ctx.Err()
		}
		if failed == nil {
			failed = write(conn, send)
		}
		if failed != nil {
			m.Closed(time.Now())
		}
		tell()
		switch {
		case failed != nil && ctx.Err() != nil:
			return ctx.Err()
		case failed != nil:
			return fmt.Errorf("vmopagent: %w: %w", ErrDisconnected, failed)
		}
	}
}

func write(conn net.Conn, lines []string) error {
	for _, line := range lines {
		if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func read(conn io.Reader, lines chan<- string, stop <-chan struct{}) error {
	defer close(lines)
	r := bufio.NewReaderSize(conn, maxLine)
	skipping := false
	for {
		part, err := r.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !tooLong {
			return err
		}
		if !skipping {
			select {
			case lines <- string(part):
			case <-stop:
				return net.ErrClosed
			}
		}
		skipping = tooLong
	}
}
