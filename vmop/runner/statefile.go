package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/vmop/sdk/internal/atomicfile"
)

// StateFile keeps the last [State] in a file, for other programs to read. The
// file is replaced as a whole: a reader sees the old state or the new one.
type StateFile struct {
	// Path of the file.
	Path string

	mu  sync.Mutex
	err error
}

// State implements [Reporter].
func (f *StateFile) State(s State) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = atomicfile.Replace(f.Path, append(data, '\n'))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Message implements [Reporter]; messages are not kept.
func (f *StateFile) Message(Message) {}

// Err is the error of the last write.
func (f *StateFile) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// ReadState reads a file that a [StateFile] wrote. A file that does not exist
// is fs.ErrNotExist.
func ReadState(path string) (State, error) {
	var s State
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read machine state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read machine state %s: %w", path, err)
	}
	return s, nil
}
