package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// isTerminal says whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is how many columns the terminal has that a stream goes to; 0 if it is
// none.
func terminalWidth(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// interactive says whether a person is at both ends.
func (p *program) interactive() bool { return isTerminal(p.stdin) && isTerminal(p.stdout) }

// rawTerminal passes every key on as it is typed, until it is restored.
type rawTerminal struct {
	f   *os.File
	old *term.State
	// drop throws away, once, what was typed and not read.
	drop sync.Once
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
	// What a guest prints can make terminals answer as if somebody typed: the shell
	// must not get that. Both fail if the terminal is gone, and then nobody is there
	// to tell.
	t.drop.Do(func() { _ = unix.IoctlSetInt(int(t.f.Fd()), unix.TCFLSH, unix.TCIFLUSH) })
	_ = term.Restore(int(t.f.Fd()), t.old)
}
