package runner

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	sigTERM = syscall.SIGTERM
	sigKILL = syscall.SIGKILL
)

type child struct {
	name    string
	process *os.Process
	done    chan struct{} // closed once it has ended and all its output was read
	status  *os.ProcessState
	tail    *tail
	serves  string
	// readable replaces names in the child's output by those that users know, and means returns an
	// explanation of the output, "" if it has none; both may be nil.
	readable, means func(string) string
}

// outputGrace is how long a child's output is read after its end if a process that it left behind
// keeps the pipe open.
const outputGrace = 2 * time.Second

// awaitsMonitor is in what QEMU says when it waits for the client of its monitor, which is the
// runner.
const awaitsMonitor = ": info: QEMU waiting for connection on: "

// startChild starts a process in its own process group, so that a Ctrl-C at the terminal reaches
// only the runner. When the runner ends, even if it is killed, the kernel sends the child SIGTERM.
func startChild(name, executable string, args []string, files []*os.File, line func(source, text string)) (*child, error) {
	c := &child{name: name, done: make(chan struct{}), tail: &tail{}}
	out := &lineWriter{line: func(text string) {
		if strings.Contains(text, awaitsMonitor) {
			return
		}
		c.tail.add(printable(text))
		line(name, text)
	}}
	cmd := exec.Command(executable, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = files
	cmd.WaitDelay = outputGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		// For Pdeathsig the parent is the thread: it must not end before the child does.
		runtime.LockOSThread()
		defer close(c.done)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		c.process = cmd.Process
		started <- nil
		_ = cmd.Wait() // ProcessState has the result
		c.status = cmd.ProcessState
		out.flush()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of %s: %w", c.name, context.Cause(ctx))
	}
}

func (c *child) signal(sig os.Signal) {
	_ = c.process.Signal(sig)
}

func (c *child) describe() string {
	s := c.name + " ended: " + c.status.String()
	last := strings.Join(c.tail.last(), "\n")
	if c.readable != nil {
		last = c.readable(last)
	}
	if c.means != nil {
		if means := c.means(last); means != "" {
			return means
		}
	}
	if last != "" {
		s += ": " + strings.ReplaceAll(last, "\n", "; ")
	}
	return s
}

type lineWriter struct {
	mu   sync.Mutex
	buf  []byte
	line func(string)
}

// maxLine bounds a line of a child's output, in bytes.
const maxLine = 8 << 10

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	for {
		i := bytes.IndexByte(w.buf, '\n')
		if i < 0 {
			if len(w.buf) > maxLine {
				i = maxLine
			} else {
				return len(p), nil
			}
		}
		text := strings.TrimRight(string(w.buf[:i]), "\r\n")
		w.buf = w.buf[min(i+1, len(w.buf)):]
		if text != "" {
			w.line(text)
		}
	}
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf) > 0 {
		w.line(string(w.buf))
		w.buf = nil
	}
}

type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 10

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}
