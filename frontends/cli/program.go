package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/vmop/sdk/internal/textout"

	"github.com/urfave/cli/v2"
)

// program holds what commands use instead of globals.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

func (p *program) failed(err error) int {
	var usage *usageError
	if errors.As(err, &usage) {
		help := strings.TrimRight("vmop-cli "+usage.command, " ")
		p.errorf("%s", usage.message)
		fmt.Fprintf(p.stderr, "See: %s --help\n", help)
		return exitUsage
	}
	var status *exitStatus
	if errors.As(err, &status) {
		// An error that was already printed may be wrapped in one with another code.
		if status.err != nil && !errors.Is(status.err, errSilent) {
			p.errorf("%v", status.err)
		}
		return status.code
	}
	p.errorf("%v", err)
	if exit := cli.ExitCoder(nil); errors.As(err, &exit) && !errors.As(err, new(*exec.ExitError)) {
		return exitUsage // the help command's, about a command that does not exist
	}
	return exitError
}

// errorf prints an error, escaping control characters from files and machines.
func (p *program) errorf(format string, args ...any) {
	p.note("vmop-cli: "+format, args...)
}

func (p *program) note(format string, args ...any) {
	fmt.Fprintln(p.stderr, textout.Printable(fmt.Sprintf(format, args...)))
}
