package main

import (
	"fmt"

	"github.com/vmop/sdk/vmop/runner"

	"github.com/urfave/cli/v2"
)

// The exit codes of this program; see exitCodes. Those of a machine's outcome are the runner's.
const (
	exitOK      = runner.ExitOK
	exitError   = 1
	exitUsage   = runner.ExitUsage
	exitForced  = runner.ExitForced
	exitFailure = runner.ExitFailure
	// exitNoProgram is for a program that the guest does not have, as with shells.
	exitNoProgram = 127
	// exitSignal is added to the number of the signal that ended a program, as by shells.
	exitSignal = 128
	// exitNoByte is for a command whose code is not valid on this host, and for ssh without a
	// connection.
	exitNoByte = 255
)

type usageError struct {
	command string // "" for the program itself
	message string
}

func (e *usageError) Error() string { return e.message }

func usagef(c *cli.Context, format string, args ...any) error {
	e := &usageError{message: fmt.Sprintf(format, args...)}
	if c.Command != nil && c.Command.Name != c.App.Name {
		e.command = c.Command.Name
	}
	return e
}

// exitStatus ends the program with a code. A nil error has been reported already, or need not be.
type exitStatus struct {
	code int
	err  error
}

func (e *exitStatus) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitStatus) Unwrap() error { return e.err }

// errSilent ends the program with exit code 1 and no message.
var errSilent error = &exitStatus{code: exitError}
