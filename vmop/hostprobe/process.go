package hostprobe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	stdout *output
	done   chan struct{} // closed when err is set
	err    error
}

func start(ctx context.Context, qemu string, files []*os.File, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, qemu, args...), done: make(chan struct{}), stdout: newOutput()}
	p.cmd.ExtraFiles = files
	p.cmd.Stderr = &p.stderr
	p.cmd.Stdout = p.stdout
	p.cmd.WaitDelay = time.Second // for a pipe that another process holds open
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // end waits for it
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

func (p *process) end(patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		<-p.done
	}
	if text := strings.TrimSpace(p.stderr.String()); p.err != nil && text != "" {
		return fmt.Errorf("%w: %s", p.err, text)
	}
	return p.err
}

type output struct {
	mu   sync.Mutex
	text []byte
	seen chan struct{}
}

const proof = "vmop"

func newOutput() *output { return &output{seen: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !bytes.Contains(o.text, []byte(proof)) && len(o.text) < 4096 {
		o.text = append(o.text, b...)
		if bytes.Contains(o.text, []byte(proof)) {
			close(o.seen)
		}
	}
	return len(b), nil
}
