package tinyguest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file for the guest's initial file system.
type File struct {
	Name string      // its path, such as "/bin/agent"
	Mode fs.FileMode // its permissions
	Data []byte
}

// WithFiles returns the guest with more files in its initial file system, which is written into
// dir. The console's command "exec" starts programs; they must be linked statically. A program's
// output on the console tears the prompt: send an empty line before the next command then.
func (g Guest) WithFiles(dir string, files ...File) (Guest, error) {
	initrd, err := os.ReadFile(g.Initrd)
	if err != nil {
		return Guest{}, fmt.Errorf("tiny guest: add files: %w", err)
	}
	var entries []entry
	for _, f := range files {
		name, absolute := strings.CutPrefix(f.Name, "/")
		if !absolute || !fs.ValidPath(name) || name == "." || f.Mode&^fs.ModePerm != 0 {
			return Guest{}, fmt.Errorf("tiny guest: add files: %q with mode %v: want a clean absolute path and permissions", f.Name, f.Mode)
		}
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if !slices.ContainsFunc(entries, func(e entry) bool { return e.name == parent }) {
				entries = append(entries, entry{name: parent, mode: modeDir | 0o755})
			}
		}
		entries = append(entries, entry{name: name, mode: modeFile | uint32(f.Mode), data: f.Data})
	}
	// The kernel requires concatenated archives to start at a multiple of four.
	g.Initrd = filepath.Join(dir, fileInitrd)
	if err := os.WriteFile(g.Initrd, append(initrd, writeCPIO(entries)...), 0o600); err != nil {
		return Guest{}, fmt.Errorf("tiny guest: add files: %w", err)
	}
	return g, nil
}
