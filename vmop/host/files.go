package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/runner"
)

// FileKind is the kind of a file in a machine's directory.
type FileKind int

// The kinds of files.
const (
	// FileForeign was not created by this package or a runner.
	FileForeign FileKind = iota
	// FileOwn describes the machine as it was run.
	FileOwn
	// FileIdentity may be needed with the content of the disks.
	FileIdentity
	// FileDisk is a disk image.
	FileDisk
	// FileSnapshots is the directory with the machine's snapshots.
	FileSnapshots
	// FileOverlays is the directory with the guest's writes during a copy that are not in the
	// disks' images yet.
	FileOverlays
)

// File is an entry of a machine's directory.
type File struct {
	// Name is relative to the directory.
	Name string
	Kind FileKind
	// Size is in bytes.
	Size int64
	// Holds describes the content of an identity file, for people.
	Holds string
}

// classify goes by the name. Only regular files and known directories are ours.
func classify(name string, mode fs.FileMode) (kind FileKind, holds string) {
	is := func(patterns ...string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, name); return ok })
	}
	switch {
	case mode.IsDir() && name == snapshotsDir:
		return FileSnapshots, "snapshots"
	case mode.IsDir() && name == overlay.Dir:
		return FileOverlays, "what its guest wrote during a copy that was interrupted"
	case mode.IsDir() && is(stagingName, pendingPrefix+"*"): // of a change that never took effect
		return FileOwn, ""
	case !mode.IsRegular():
		return FileForeign, ""
	}
	if is(manifestFile, definitionFile, stateFile, logFile, oldLogFile, knownHostsFile, knownHostsFile+".old", runner.LockFile, "."+manifestFile+".*", "."+definitionFile+".*", "."+stateFile+".*") {
		return FileOwn, ""
	}
	if holds, ok := runner.IdentityFile(name); ok {
		return FileIdentity, holds
	}
	if is("*.img") {
		return FileDisk, ""
	}
	return FileForeign, ""
}

// removedBy removes the identity only with the disks: a disk, wherever it is, may be unreadable
// without its TPM.
func (f File) removedBy(o DeleteOptions) bool {
	switch f.Kind {
	case FileOwn:
		return true
	case FileIdentity, FileDisk, FileSnapshots, FileOverlays:
		return o.Disks
	}
	return false
}

// Files lists the entries of the machine's directory.
func (m *Machine) Files() ([]File, error) {
	entries, err := os.ReadDir(m.Data)
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", m.FullName(), err)
	}
	var out []File
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // replaced meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("files of %s: %w", m.FullName(), err)
		}
		f := File{Name: e.Name(), Size: info.Size()}
		f.Kind, f.Holds = classify(e.Name(), info.Mode())
		if f.Kind == FileSnapshots {
			snapshots, err := m.Snapshots()
			if err != nil {
				return nil, err
			}
			f.Size = 0
			for _, s := range snapshots {
				f.Size += s.Allocated
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// Identity lists the files that the guest depends on beside its disks, in the order of Holds.
func (m *Machine) Identity() ([]File, error) {
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f File) bool { return f.Kind != FileIdentity || f.Holds == "" })
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Holds, b.Holds) })
	return files, nil
}

// DeleteOptions select what is removed with a machine.
type DeleteOptions struct {
	// Disks also removes the images in the machine's directory and what belongs to them: UUID, UEFI
	// variables, TPM state, snapshots. This cannot be undone.
	Disks bool
	// Confirm is called, if not nil, before anything is removed, with the images and identity files
	// to be removed; the machine cannot be started meanwhile. Its error cancels the deletion.
	Confirm func([]File) error
}

const knownHostsFile = "known_hosts"

// identityNames are the files that the guest depends on beside its disks, except the record and the
// UUID, which a copy handles separately.
func (m *Machine) identityNames() ([]string, error) {
	files, err := m.Identity()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		if f.Name != runner.RecordFile && f.Name != runner.UUIDFile {
			out = append(out, f.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}
