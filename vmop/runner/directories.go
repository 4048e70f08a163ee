package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/vmop/sdk/internal/answercd"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Directories are where a machine's files are.
type Directories struct {
	// Data keeps what must survive the machine's stop.
	Data string
	// Runtime keeps sockets and process ids; it is removed when the machine ends.
	Runtime string
}

// Surroundings are the inputs of the default directories.
type Surroundings struct {
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
	// UserName is the user's name, Home the home directory.
	UserName, Home string
	// Creatable reports whether a directory exists and is writable, or could be created; nil is
	// [Creatable].
	Creatable func(dir string) bool
}

// DefaultDirectories returns the configured directories, or VM-Operator's defaults:
// $XDG_DATA_HOME/vmrunner/<vm> or ~/.local/share/vmrunner/<vm> for data;
// $XDG_RUNTIME_DIR/vmrunner/<vm>, /run/<user>/vmrunner/<vm> or /tmp/<user>/vmrunner/<vm>, whichever
// is possible, at run time.
func DefaultDirectories(c *runnerconfig.Config, s Surroundings) Directories {
	if c == nil {
		return Directories{}
	}
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	if s.Creatable == nil {
		s.Creatable = Creatable
	}
	d := Directories{Data: c.Runner.DataDir, Runtime: c.Runner.RuntimeDir}
	sub := filepath.Join("vmrunner", c.Runner.VM.Name)
	if d.Data == "" {
		base := s.Getenv("XDG_DATA_HOME")
		if base == "" {
			base = filepath.Join(s.Home, ".local", "share")
		}
		d.Data = filepath.Join(base, sub)
	}
	if d.Runtime == "" {
		base := s.Getenv("XDG_RUNTIME_DIR")
		if base == "" {
			base = filepath.Join("/run", s.UserName)
			if !s.Creatable(base) {
				base = filepath.Join(os.TempDir(), s.UserName)
			}
		}
		d.Runtime = filepath.Join(base, sub)
	}
	return d
}

// Creatable creates a directory private to its user and reports whether that worked. It is the
// usual [Surroundings.Creatable].
func Creatable(dir string) bool {
	return os.MkdirAll(dir, 0o700) == nil && syscall.Access(dir, 2 /* W_OK */) == nil
}

// makeDataDir creates the data directory, which may be a volume of another owner: it only has to be
// writable.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("data directory %s is not writable: %w", dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	return nil
}

// makeRuntimeDir creates the runtime directory. Its sockets control the machine: it must belong to
// this user and be closed to all others.
func makeRuntimeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("runtime directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("runtime directory: %w", err)
	}
	if err := checkParents(dir, ownerOf); err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("runtime directory %s does not belong to the user %d: choose another with runtimeDir", dir, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("runtime directory: %w", err)
		}
	}
	return nil
}

// overflowUser is the kernel's owner of files outside of the user namespace
// (/proc/sys/kernel/overflowuid).
const overflowUser = 65534

func ownerOf(dir string) (int, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s has no owner", dir)
	}
	return int(st.Uid), nil
}

// checkParents refuses a runtime directory below a directory of another user, such as a /tmp/NAME
// that another user created first: its owner could replace the runtime directory and its sockets.
func checkParents(dir string, owner func(string) (int, error)) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("runtime directory: %w", err)
	}
	for parent := filepath.Dir(real); ; parent = filepath.Dir(parent) {
		user, err := owner(parent)
		if err != nil {
			return fmt.Errorf("runtime directory: %w", err)
		}
		if user != 0 && user != os.Geteuid() && user != overflowUser {
			return fmt.Errorf("runtime directory %s is within %s, which belongs to the user %d, who could replace it: choose another with runtimeDir or $XDG_RUNTIME_DIR", dir, parent, user)
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

// ConfigFile is a file of the runtime directory in which the program that runs the engine may give
// it a new configuration; see [ConfigFollower]. It is removed with the directory.
const ConfigFile = "config.json"

// StartedFile is a file of the runtime directory in which the program that runs the engine may keep
// the manifest that the machine was started with, for comparison with later ones. It is removed
// with the directory.
const StartedFile = "started.yaml"

// RuntimeStateFile is a file of the runtime directory in which the program that runs the engine may
// keep its state, because the data directory's file system may be full.
const RuntimeStateFile = "state.json"

// runtimeFiles are the only files that are ever removed: a user may have chosen a directory with
// files of their own.
func runtimeFiles() []string {
	names := append(qemucmd.RuntimeFiles(),
		ConfigFile, StartedFile, RuntimeStateFile, "runner.pid", "qemu.pid",
		// VM-Operator's runner leaves these when it is killed.
		"cloudInitImg.pid", "ticket.txt",
	)
	for port := range qemucmd.HotPlugPorts {
		names = append(names, qemucmd.AttachedSocketName(port))
	}
	for _, helper := range qemucmd.HelperNames() {
		names = append(names, helper+".pid")
	}
	return names
}

func cleanRuntimeDir(dir string) error {
	var errs []error
	// A killed runner may have left it.
	if err := os.RemoveAll(filepath.Join(dir, qemucmd.AnswerCDFileName+answercd.WorkSuffix)); err != nil {
		errs = append(errs, err)
	}
	for _, name := range runtimeFiles() {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func removeRuntimeDir(dir string) error {
	err := cleanRuntimeDir(dir)
	if rerr := os.Remove(filepath.Join(dir, LockFile)); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if rerr := os.Remove(dir); rerr != nil && !errors.Is(rerr, syscall.ENOTEMPTY) && !errors.Is(rerr, syscall.EBUSY) && !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

func writePID(dir, name string, pid int) error {
	if err := os.WriteFile(filepath.Join(dir, name+".pid"), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
		return fmt.Errorf("process id of %s: %w", name, err)
	}
	return nil
}

// LockFile is the lock file in a machine's data and runtime directories.
const LockFile = "lock"

// ErrLocked is the error when another process has the lock of a directory.
var ErrLocked = errors.New("the directory is locked")
