package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// The files of this package in a machine's directory, beside the runner's.
const (
	manifestFile = "manifest.yaml"
	stateFile    = "state.json"
	logFile      = "run.log"
	oldLogFile   = "run.log.old"
)

const machinesDir = "machines"

// DefaultNamespace is the namespace of a machine without one.
const DefaultNamespace = "default"

// Options configure [Open]. The zero value selects the usual directories.
type Options struct {
	// DataDir is the directory of the machines with their disks; empty is $XDG_DATA_HOME/vmop, or
	// ~/.local/share/vmop.
	DataDir string
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
}

// Host has the machines of one user on this host.
type Host struct {
	root    string // the data directory
	runtime string // the directory of all runtime directories
	getenv  func(string) string
}

var errNotOpened = errors.New("the host was not opened: see Open")

// Open determines the directories of the user's machines. It creates none.
func Open(o Options) (*Host, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	dir := o.DataDir
	if base := o.Getenv("XDG_DATA_HOME"); dir == "" && filepath.IsAbs(base) {
		dir = filepath.Join(base, "vmop")
	}
	if dir == "" {
		home := o.Getenv("HOME")
		if home == "" {
			return nil, errors.New("there is no home directory to keep machines in: choose a data directory")
		}
		dir = filepath.Join(home, ".local", "share", "vmop")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return &Host{root: abs, runtime: runtimeBase(o.Getenv, os.Geteuid()), getenv: o.Getenv}, nil
}

func (h *Host) env(name string) string {
	if h.getenv == nil {
		return os.Getenv(name)
	}
	return h.getenv(name)
}

// DataDir is the directory with the machines and what they share.
func (h *Host) DataDir() string { return h.root }

// ImagesDir is the directory of relative names of CD images and kernels, unless a machine has
// another.
func (h *Host) ImagesDir() string { return filepath.Join(h.root, "images") }

// TemplatesDir is the directory of custom machine types.
func (h *Host) TemplatesDir() string { return filepath.Join(h.root, "templates") }

// Directories are the directories of a machine.
type Directories struct {
	// Data survives the machine's stop.
	Data string
	// Runtime has the sockets.
	Runtime string
}

// StateFile is the file with the last state that the machine's runner wrote.
func (d Directories) StateFile() string { return filepath.Join(d.Data, stateFile) }

// ManifestFile is the manifest that the machine is run from.
func (d Directories) ManifestFile() string { return filepath.Join(d.Data, manifestFile) }

// LogFile is the log of a machine that runs in the background.
func (d Directories) LogFile() string { return filepath.Join(d.Data, logFile) }

func (d Directories) oldLogFile() string { return filepath.Join(d.Data, oldLogFile) }

// Directories are the directories of a machine, which need not exist.
func (h *Host) Directories(namespace, name string) (Directories, error) {
	if h.root == "" {
		return Directories{}, errNotOpened
	}
	namespace = namespaceOr(namespace)
	for _, part := range []string{namespace, name} {
		// The names may not have been validated.
		if !filepath.IsLocal(part) || strings.ContainsRune(part, filepath.Separator) {
			return Directories{}, fmt.Errorf("%q cannot be the name of a directory", part)
		}
	}
	return Directories{
		Data:    filepath.Join(h.root, machinesDir, namespace, name),
		Runtime: runtimeDir(h.runtime, namespace, name),
	}, nil
}

func namespaceOr(namespace string) string {
	if namespace == "" {
		return DefaultNamespace
	}
	return namespace
}

// FullName is NAMESPACE/NAME.
func FullName(namespace, name string) string { return namespaceOr(namespace) + "/" + name }

func runtimeBase(getenv func(string) string, uid int) string {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "vmop")
	}
	dir := filepath.Join("/run/user", strconv.Itoa(uid))
	if mine, err := ownedBy(dir, uid); err == nil && mine {
		return filepath.Join(dir, "vmop")
	}
	return filepath.Join(os.TempDir(), "vmop-"+strconv.Itoa(uid))
}

// maxSocketDir is the longest runtime directory whose sockets' paths Linux accepts.
func maxSocketDir() int {
	longest := 0
	for _, s := range qemucmd.SocketPurposes() {
		longest = max(longest, len(s.FileName()))
	}
	return limits.MaxSocketPath - len("/") - longest
}

// tooLong returns why no machine's sockets can be below base, "" if they can.
func tooLong(base string, getenv func(string) string) string {
	most := maxSocketDir() - len("/") - shortDir
	if len(base) <= most {
		return ""
	}
	variable := "TMPDIR"
	if filepath.IsAbs(getenv("XDG_RUNTIME_DIR")) {
		variable = "XDG_RUNTIME_DIR"
	}
	return fmt.Sprintf("%s has %d bytes, and the paths of the machines' sockets below it would be longer than the %d bytes that Linux takes: set %s to a directory of your own whose path has at most %d bytes, such as /run/user/%d",
		filepath.Dir(base), len(filepath.Dir(base)), limits.MaxSocketPath, variable, most-len(base)+len(filepath.Dir(base)), os.Geteuid())
}

// shortDir is the length of the hashed name of a runtime directory whose own would be too long, in
// bytes.
const shortDir = 16

func runtimeDir(base, namespace, name string) string {
	dir := filepath.Join(base, namespace, name)
	if len(dir) <= maxSocketDir() {
		return dir
	}
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return filepath.Join(base, hex.EncodeToString(sum[:shortDir/2]))
}

// ownedBy reports whether there is a directory of that user, which is no link to one. The error is
// that of looking.
func ownedBy(dir string, uid int) (bool, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return false, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(st.Uid) == uid, nil
}

// makePrivate creates a directory that only this user can enter. In a directory that is writable
// for all, another user may have created it first. The error is fs.ErrNotExist if it was removed
// meanwhile.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	switch mine, err := ownedBy(dir, os.Geteuid()); {
	case err != nil:
		return err
	case !mine:
		return fmt.Errorf("%s does not belong to this user: remove it, or set XDG_RUNTIME_DIR", dir)
	}
	return os.Chmod(dir, 0o700)
}

func (h *Host) makeDirectories(d Directories) error {
	if err := makePrivate(d.Data); err != nil {
		return fmt.Errorf("directory of the machine: %w", err)
	}
	for _, dir := range []string{h.runtime, filepath.Dir(d.Runtime)} {
		if err := makePrivate(dir); err != nil {
			return fmt.Errorf("runtime directory: %w", err)
		}
	}
	return nil
}
