package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// StartOptions are the options of starting a machine in the background.
type StartOptions struct {
	// Supervisor is the command of a program that calls [Supervise], with its arguments. It runs as
	// long as the machine. Empty is the calling program, which must call [SuperviseIfAsked].
	Supervisor []string
	// Progress is called with descriptions of the progress; it may be nil.
	Progress func(string)
}

// Started is a machine that was started in the background.
type Started struct {
	// PID is the supervising process.
	PID int
	// Ended reports that the machine has already ended properly.
	Ended bool
	// Service is the systemd unit that runs the machine; empty if none.
	Service string
	// Outside is why a machine that systemd starts with the host was not started by its service;
	// empty if it was, or if there is none.
	Outside string
}

// StartError is the error when a machine in the background did not start.
type StartError struct {
	// Name is NAMESPACE/NAME.
	Name string
	// ExitCode is the supervising process's exit code, State how it ended.
	ExitCode int
	State    string
	// Reason is the runner's last message; "" if there is none.
	Reason string
	// Log are the last lines of the machine's log.
	Log []string
}

func (e *StartError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("%s did not start (%s)", e.Name, e.State)
	}
	return e.Name + " did not start: " + e.Reason
}

func openLog(d Directories) (*os.File, int64, error) {
	path := d.LogFile()
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, d.oldLogFile()); err != nil {
			return nil, 0, fmt.Errorf("put the old log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("log of the machine: %w", err)
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, end, nil
}

// OpenLog opens the log of the job's machine for appending; see [Directories.LogFile].
func (j *Job) OpenLog() (io.WriteCloser, error) {
	f, _, err := openLog(j.Directories)
	if err != nil {
		return nil, err // not a typed nil
	}
	return f, nil
}

func logSince(path string, start int64) []string {
	f, err := os.Open(path)
	if err != nil {
		return []string{err.Error()}
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, start, maxLog))
	if err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(string(bytes.TrimRight(data, "\n")), "\n")
	return lines[max(0, len(lines)-shownLog):]
}

const (
	// startDeadline bounds the start of a machine: it is longer than the engine's own deadlines.
	startDeadline = 5 * time.Minute
	abortGrace    = 30 * time.Second
	maxLog        = 1 << 20
	shownLog      = 10
)
