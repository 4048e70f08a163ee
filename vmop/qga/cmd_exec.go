package qga

import (
	"context"
	"time"
)

// Intervals at which Run polls: short at first, because most programs are.
const (
	firstPoll = 20 * time.Millisecond
	lastPoll  = time.Second
)

// Program is a program to run in the guest, without a shell.
type Program struct {
	Path  string   // looked up in the agent's PATH if it has no slash
	Args  []string // without the program's name
	Env   []string // entries KEY=VALUE; nil: the agent's environment
	Input []byte   // what the program reads from its standard input
	// Capture keeps the program's output. The agent keeps up to 16 MiB and the client accepts up to
	// MaxReply, encoded; beyond that the error is ErrTooLarge.
	Capture bool
}

// ExecStatus is the status of a program.
type ExecStatus struct {
	Exited          bool   `json:"exited"`
	ExitCode        int    `json:"exitcode"` // of a program that ended by itself
	Signal          int    `json:"signal"`   // that ended it, or 0; on Windows an exception's code
	Stdout          []byte `json:"out-data"`
	Stderr          []byte `json:"err-data"`
	StdoutTruncated bool   `json:"out-truncated"`
	StderrTruncated bool   `json:"err-truncated"`
}

// Exec starts a program and returns its process ID (guest-exec). It does not wait for it; see
// ExecStatus and Run. The agent keeps the result until it is queried.
func (c *Client) Exec(ctx context.Context, p Program) (pid int, err error) {
	r, err := call[struct {
		PID int `json:"pid"`
	}](ctx, c, "guest-exec", struct {
		Path    string   `json:"path"`
		Args    []string `json:"arg,omitempty"`
		Env     []string `json:"env,omitempty"`
		Input   []byte   `json:"input-data,omitempty"`
		Capture bool     `json:"capture-output,omitempty"`
	}{p.Path, p.Args, p.Env, p.Input, p.Capture})
	return r.PID, err
}

// ExecStatus queries a program that Exec has started (guest-exec-status). The agent forgets an
// exited program once it has reported the exit.
func (c *Client) ExecStatus(ctx context.Context, pid int) (ExecStatus, error) {
	return call[ExecStatus](ctx, c, "guest-exec-status", struct {
		PID int `json:"pid"`
	}{pid})
}

// Run executes a program and waits until it has exited or the context ends, in which case the
// program keeps running. The protocol has no message for a program's end, so Run polls, at least
// once a second.
func (c *Client) Run(ctx context.Context, p Program) (ExecStatus, error) {
	pid, err := c.Exec(ctx, p)
	if err != nil {
		return ExecStatus{}, err
	}
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		status, err := c.ExecStatus(ctx, pid)
		if err != nil || status.Exited {
			return status, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return status, ctx.Err()
		}
	}
}
