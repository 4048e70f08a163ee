package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/live"
)

// StateFile writes the last [State] to a file for other programs. The file is replaced as a whole:
// a reader sees the old state or the new one.
type StateFile struct {
	// Path is the file.
	Path string

	mu    sync.Mutex
	err   error
	phase Phase     // of the last durable state
	at    time.Time // of the last durable state
}

// statePause is the least time between two states of one phase that are synced to storage: a guest
// can cause more than a thousand a second.
const statePause = time.Second

// durable decides whether a state is synced. A state that a power failure loses is about a machine
// that the failure ended, too.
func (f *StateFile) durable(phase Phase, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since := now.Sub(f.at); phase == f.phase && since >= 0 && since < statePause {
		return false
	}
	f.phase, f.at = phase, now
	return true
}

// State implements [Reporter]. It writes nothing about a machine that another engine may have.
func (f *StateFile) State(s State) {
	if s.Unlocked {
		return
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		replace := atomicfile.ReplaceSoon
		if f.durable(s.Phase, time.Now()) {
			replace = atomicfile.Replace
		}
		err = replace(f.Path, append(data, '\n'))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Message implements [Reporter]; messages are not written.
func (f *StateFile) Message(Message) {}

// Err is the error of the last write.
func (f *StateFile) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// ReadState reads the file of a [StateFile]. The error is fs.ErrNotExist if it does not exist.
func ReadState(path string) (State, error) {
	var s State
	data, err := readRegular(path)
	if err != nil {
		return s, fmt.Errorf("read machine state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read machine state %s: %w", path, err)
	}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == "RestartRequired" { // from a runner of 0.3 or before
			c.Type, c.Reason = live.RestartRequired, live.ReasonNoRestartRequired
			if c.Status == live.True {
				c.Reason = live.ReasonChangesPendingRestart
			}
		}
	}
	return s, nil
}

// readRegular fails for other files: reading a FIFO would block.
func readRegular(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return io.ReadAll(f)
}
