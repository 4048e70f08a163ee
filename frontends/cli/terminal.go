package main

import (
	"os"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a terminal.
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

// interactive reports whether a person is at both ends.
func (p *program) interactive() bool { return isTerminal(p.stdin) && isTerminal(p.stdout) }

// listWidth is how wide a list may be: as the terminal, unless all is wanted.
func (p *program) listWidth(format string) int {
	if format == formatWide {
		return 0
	}
	return terminalWidth(p.stdout)
}
