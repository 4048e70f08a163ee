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

// Raw is a terminal that passes every key on as it is typed, until it is restored.
type Raw struct {
	f   *os.File
	old *term.State
	// drop throws away, once, what was typed and not read.
	drop sync.Once
}

// MakeRaw has the terminal that a program reads from pass every key on. It is an error
// where that is no terminal.
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

// Restore gives the terminal back as it was. It may be called more than once.
func (t *Raw) Restore() {
	if t.f == nil {
		return
	}
	// What a guest prints can make terminals answer as if somebody typed: the shell
	// must not get that. Both fail if the terminal is gone, and then nobody is there
	// to tell.
	t.drop.Do(func() { _ = unix.IoctlSetInt(int(t.f.Fd()), unix.TCFLSH, unix.TCIFLUSH) })
	_ = term.Restore(int(t.f.Fd()), t.old)
}
