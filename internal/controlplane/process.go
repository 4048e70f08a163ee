package controlplane

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

// process is a running program that does not outlive the test, however the
// test ends.
type process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	done    chan struct{} // closed once it has been reaped
}

// startProcess runs a program with its output in dir/<name>.log.
func startProcess(dir, name, path string, args []string) (*process, error) {
	p := &process{name: name, logFile: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setpgid:   true, // Ctrl-C is for whoever started us
	}
	started := make(chan error)
	go func() {
		// The kernel sends the signal when the thread ends that started the
		// process, so that this thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = log.Close()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its end is told by done, why it ended by its log
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// stop kills the process and waits for its end.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// tail returns the end of the process's log.
func (p *process) tail() string { return logTail(p.logFile) }

// logTail returns the last lines of a file.
func logTail(file string) string {
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

// ended tells how the process ended; it may be asked once done is closed.
func (p *process) ended() error { return fmt.Errorf("%s", p.cmd.ProcessState) }
