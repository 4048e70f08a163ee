package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
)

// keeper keeps a machine's state and definition in files. It waits until the engine has the
// machine's lock: until then, they may be another runner's.
type keeper struct {
	file *runner.StateFile
	job  *Job

	running chan struct{}

	mu   sync.Mutex
	ours bool
	err  error
	full error // of writing the last state

	executed bool // the guest has executed
}

// State implements runner.Reporter.
func (k *keeper) State(s runner.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ours && s.Phase != runner.PhaseStarting {
		return
	}
	k.keep(s)
}

// Message implements runner.Reporter.
func (k *keeper) Message(runner.Message) {}

func (k *keeper) keep(s runner.State) {
	s = inManifest(s)
	if !k.ours {
		k.ours = true
		d := k.job.Directories
		k.err = errors.Join(k.job.Definition.write(d), atomicfile.Replace(d.ManifestFile(), k.job.Manifest))
		if s.Phase != runner.PhaseStopped {
			k.err = errors.Join(k.err, atomicfile.Replace(filepath.Join(d.Runtime, runner.StartedFile), k.job.Manifest))
		}
	}
	// The file that is read first is written first, so that a reader never sees an earlier phase in
	// the other one.
	if s.Phase != runner.PhaseStopped { // its directory was deleted by then
		(&runner.StateFile{Path: filepath.Join(k.job.Directories.Runtime, runner.RuntimeStateFile)}).State(s)
	}
	k.file.State(s)
	if errors.Is(k.file.Err(), unix.ENOSPC) {
		k.full = overwrite(k.file.Path, s)
	} else {
		k.full = k.file.Err()
	}
	if s.Phase == runner.PhaseBooting && k.running != nil {
		close(k.running)
		k.running = nil
		k.executed = true
	}
}

var configField = regexp.MustCompile(`\b(?:vm|cloudInit)\.[][A-Za-z0-9.-]*[]A-Za-z0-9]`)

func inManifest(s runner.State) runner.State {
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == live.RestartRequired {
			c.Message = configField.ReplaceAllStringFunc(c.Message, machineconfig.ManifestField)
		}
	}
	return s
}

// overwrite writes a state into the allocated blocks of its file, since there is no room for
// another file. A state that does not fit is not written.
func overwrite(path string, s runner.State) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if info, serr := f.Stat(); serr != nil || info.Size() < int64(len(data)) {
		return errors.Join(fmt.Errorf("%s: %w", path, unix.ENOSPC), serr, f.Close())
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

func (k *keeper) booted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.executed
}

// ended keeps the last state of an engine that did not start QEMU, unless another runner has the
// machine.
func (k *keeper) ended(s runner.State, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ours && !errors.Is(err, runner.ErrRunning) && !errors.Is(err, runner.ErrLocked) {
		// An engine that was stopped early does not know about another runner.
		if holders, err := runner.Holders(filepath.Dir(k.file.Path)); err == nil && len(holders) == 0 {
			k.keep(s)
		}
	}
	if !k.ours {
		return nil
	}
	return errors.Join(k.err, k.full)
}
