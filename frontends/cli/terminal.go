package main

import (
	"os"

	"golang.org/x/term"
)

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the number of columns of a stream's terminal; 0 if it is none.
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

func (p *program) interactive() bool { return isTerminal(p.stdin) && isTerminal(p.stdout) }

// listWidth is the maximum width of a list: the terminal's, unless everything is requested.
func (p *program) listWidth(format string) int {
	if format == formatWide {
		return 0
	}
	return terminalWidth(p.stdout)
}
