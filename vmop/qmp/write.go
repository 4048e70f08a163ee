package qmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// errFile means that the file to be passed is unusable; nothing was written.
var errFile = errors.New("pass file")

func passesFiles(conn net.Conn) bool {
	_, ok := conn.(*net.UnixConn)
	return ok
}

// writeLine writes a whole command, and f with its first byte. It ends when ctx does and returns
// how much was written. The caller holds the token of Client.write.
func (c *Client) writeLine(ctx context.Context, line []byte, f *os.File) (n int, err error) {
	if ctx.Done() != nil {
		interrupted := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(interrupted)
			_ = c.conn.SetWriteDeadline(time.Unix(1, 0)) // long past: ends a write at once
		})
		defer func() {
			if !stop() {
				<-interrupted
				_ = c.conn.SetWriteDeadline(time.Time{})
			}
		}()
	}
	if f != nil {
		n, err = sendFile(c.conn.(*net.UnixConn), line, f)
		if err != nil || n == len(line) {
			return n, err
		}
	}
	more, err := c.conn.Write(line[n:])
	return n + more, err
}

func sendFile(conn *net.UnixConn, line []byte, f *os.File) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errFile, err)
	}
	// Within Control the descriptor cannot be closed and reused by others.
	controlErr := raw.Control(func(fd uintptr) {
		n, _, err = conn.WriteMsgUnix(line, syscall.UnixRights(int(fd)), nil)
	})
	if controlErr != nil {
		return 0, fmt.Errorf("%w: %w", errFile, controlErr)
	}
	return n, err
}
