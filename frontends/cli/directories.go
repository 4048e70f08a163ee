package main

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

	"github.com/urfave/cli/v2"
)

// The files of a machine's directory that are this program's. The runner has
// its own beside them.
const (
	manifestName = "manifest.yaml"
	stateName    = "state.json"
	logName      = "run.log"
	oldLogName   = "run.log.old"
)

// machinesName is the directory of all machines in the data directory.
const machinesName = "machines"

func dataDirFlag() cli.Flag {
	return &cli.StringFlag{Name: "data-dir", EnvVars: []string{"VMOP_DATA_DIR"}, Usage: "`DIR` in which machines have their disks (default: $XDG_DATA_HOME/vmop or ~/.local/share/vmop)"}
}

// dataRoot is the data directory.
func (p *program) dataRoot(c *cli.Context) (string, error) {
	dir := c.String("data-dir")
	if base := p.getenv("XDG_DATA_HOME"); dir == "" && filepath.IsAbs(base) {
		dir = filepath.Join(base, "vmop")
	}
	if dir == "" {
		home := p.getenv("HOME")
		if home == "" {
			return "", errors.New("there is no home directory to keep machines in: choose a place with --data-dir")
		}
		dir = filepath.Join(home, ".local", "share", "vmop")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return abs, nil
}

// directories are where a machine is.
type directories struct {
	root    string // the data directory
	machine string // in it, what is this machine's
	runtime string // for sockets
}

func (d directories) stateFile() string    { return filepath.Join(d.machine, stateName) }
func (d directories) manifestFile() string { return filepath.Join(d.machine, manifestName) }
func (d directories) logFile() string      { return filepath.Join(d.machine, logName) }
func (d directories) oldLogFile() string   { return filepath.Join(d.machine, oldLogName) }

// machineDirectories are the directories of a machine, which need not exist.
func (p *program) machineDirectories(c *cli.Context, namespace, name string) (directories, error) {
	root, err := p.dataRoot(c)
	if err != nil {
		return directories{}, err
	}
	namespace = namespaceOr(namespace)
	for _, part := range []string{namespace, name} {
		// Valid names are; a manifest that nobody validated gets no further.
		if !filepath.IsLocal(part) || strings.ContainsRune(part, filepath.Separator) {
			return directories{}, fmt.Errorf("%q cannot be the name of a directory", part)
		}
	}
	base := runtimeBase(p.getenv, os.Geteuid())
	return directories{
		root:    root,
		machine: filepath.Join(root, machinesName, namespace, name),
		runtime: runtimeDir(base, namespace, name),
	}, nil
}

// runtimeBase is the directory of all runtime directories.
func runtimeBase(getenv func(string) string, uid int) string {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "vmop")
	}
	dir := filepath.Join("/run/user", strconv.Itoa(uid))
	if owner(dir) == uid {
		return filepath.Join(dir, "vmop")
	}
	return filepath.Join(os.TempDir(), "vmop-"+strconv.Itoa(uid))
}

// maxSocketDir is the longest runtime directory whose sockets have paths that
// Linux takes: 107 bytes (unix(7)) with the longest socket's name.
const maxSocketDir = 107 - len("/org.jdrupes.vmop_agent.0")

// runtimeDir is the runtime directory of a machine.
func runtimeDir(base, namespace, name string) string {
	dir := filepath.Join(base, namespace, name)
	if len(dir) <= maxSocketDir {
		return dir
	}
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return filepath.Join(base, hex.EncodeToString(sum[:8]))
}

// owner is the user id of a directory's owner, -1 if there is no directory.
func owner(dir string) int {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return -1
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// ensurePrivate makes a directory that nobody else can enter. In a directory
// that is everybody's, somebody else may have been there first.
func ensurePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if owner(dir) != os.Geteuid() {
		return fmt.Errorf("%s does not belong to this user: remove it, or set XDG_RUNTIME_DIR", dir)
	}
	return os.Chmod(dir, 0o700)
}
