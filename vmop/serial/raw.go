package serial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Raw is a terminal in raw mode, which passes every key on until it is restored.
type Raw struct {
	f   *os.File
	old *term.State
	// drop discards, once, typed input that was not read.
	drop sync.Once
}

// MakeRaw sets the terminal that a program reads from to raw mode. It is an error if stdin is not a
// terminal.
func MakeRaw(stdin io.Reader) (*Raw, error) {
	f, ok := stdin.(*os.File)
	if !ok {
		return nil, errors.New("the standard input is no terminal")
	}
	old, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("set up the terminal: %w", err)
	}
	return &Raw{f: f, old: old}, nil
}

// Restore restores the terminal's mode. It may be called more than once.
func (t *Raw) Restore() {
	if t.f == nil {
		return
	}
	// A guest's output can make a terminal answer as if a user typed: the shell must not get that.
	// Both calls fail only if the terminal is gone.
	t.drop.Do(func() { _ = unix.IoctlSetInt(int(t.f.Fd()), unix.TCFLSH, unix.TCIFLUSH) })
	_ = term.Restore(int(t.f.Fd()), t.old)
}
