package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// isTerminal says whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// interactive says whether a person is at both ends.
func (p *program) interactive() bool { return isTerminal(p.stdin) && isTerminal(p.stdout) }

// rawTerminal passes every key on as it is typed, until it is restored.
type rawTerminal struct {
	f   *os.File
	old *term.State
}

func makeRaw(stdin io.Reader) (*rawTerminal, error) {
	f, ok := stdin.(*os.File)
	if !ok {
		return nil, errors.New("the standard input is no terminal")
	}
	old, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("set up the terminal: %w", err)
	}
	return &rawTerminal{f: f, old: old}, nil
}

// restore may be called more than once.
func (t *rawTerminal) restore() {
	// It fails if the terminal is gone, and then nobody is there to tell.
	_ = term.Restore(int(t.f.Fd()), t.old)
}

// interruptible reads a file until it is told to stop: a plain read of a
// terminal ends when somebody types, and not before.
type interruptible struct {
	f    *os.File
	pipe [2]int
}

func newInterruptible(f *os.File) (*interruptible, error) {
	r := &interruptible{f: f}
	if err := unix.Pipe2(r.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return r, nil
}

// Read implements io.Reader; after interrupt it returns io.EOF.
func (r *interruptible) Read(b []byte) (int, error) {
	for {
		fds := []unix.PollFd{
			{Fd: int32(r.f.Fd()), Events: unix.POLLIN},
			{Fd: int32(r.pipe[0]), Events: unix.POLLIN},
		}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for input: %w", err)
		case fds[1].Revents != 0:
			return 0, io.EOF
		default:
			return r.f.Read(b)
		}
	}
}

// interrupt ends the reading. It may be called while Read waits.
func (r *interruptible) interrupt() {
	_, _ = unix.Write(r.pipe[1], []byte{0}) // a full pipe is readable as well
}

// close gives the pipe back; nobody may read any more.
func (r *interruptible) close() {
	_ = unix.Close(r.pipe[0])
	_ = unix.Close(r.pipe[1])
}
