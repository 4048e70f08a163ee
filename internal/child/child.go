package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Command is what [Start] starts.
type Command struct {
	// Name is the program's name in messages, and its log is <Name>.log.
	Name string
	// Path and Args are the program and its arguments, without its name.
	Path string
	Args []string
	// Dir is the working directory, which also has the log. An existing log is appended to.
	Dir string
	// Env is its environment; nil means that of the caller.
	Env []string
	// Namespaces are flags of clone(2) for namespaces of its own.
	Namespaces uintptr
}

// Process is a running program.
type Process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	done    chan struct{} // closed once it has been reaped
}

// Start starts a program. It is killed when the caller dies.
func Start(c Command) (*Process, error) {
	p := &Process{name: c.Name, logFile: filepath.Join(c.Dir, c.Name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir, p.cmd.Env = c.Dir, c.Env
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // Ctrl-C is for the parent process
		Cloneflags: c.Namespaces,
	}
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread ends that started the process, so this thread
		// must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = log.Close()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // done reports the end, the log its reason
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop kills the process and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// Tail returns the end of the process's log.
func (p *Process) Tail() string { return LogTail(p.logFile) }

// Ended returns how the process ended; it may only be called after Done is closed.
func (p *Process) Ended() error { return fmt.Errorf("%s", p.cmd.ProcessState) }

// LogTail returns the last lines of a file.
func LogTail(file string) string {
	const most = 8 << 10
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	if len(data) > most {
		data = data[len(data)-most:]
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			data = data[i+1:]
		}
	}
	return strings.TrimSpace(string(data))
}
