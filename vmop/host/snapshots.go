package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// Each snapshot is a directory with copies of all that is restored.
const (
	snapshotsDir = "snapshots"
	snapshotFile = "snapshot.json"
)

// Snapshot is the state of a machine at one time: its disks, its UEFI variables, the state of its
// TPM and its manifest.
type Snapshot struct {
	Name    string         `json:"name"`
	Created time.Time      `json:"created"`
	Disks   []SnapshotDisk `json:"disks"`
	// Allocated is the space of the copies when they were made, in bytes. Where the file system
	// shares blocks, they take less.
	Allocated int64 `json:"allocated"`
	// Running reports that the machine ran meanwhile. Its disks are as they were at one moment; its
	// memory is not included.
	Running bool `json:"running,omitempty"`
	// Frozen reports that the guest agent had the guest flush and freeze its file systems.
	// Otherwise they are as after a power cut, and Unfrozen is why, for people.
	Frozen   bool   `json:"frozen,omitempty"`
	Unfrozen string `json:"unfrozen,omitempty"`
}

// SnapshotDisk is a disk in a snapshot.
type SnapshotDisk struct {
	Name string `json:"name"`
	// File is the copy in the snapshot's directory, Path the original image.
	File string `json:"file"`
	Path string `json:"path"`
	// Size is the file's, in bytes.
	Size int64 `json:"size"`
	// Template reports whether the machine creates the disk's image.
	Template bool `json:"template,omitempty"`
}

var snapshotName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (d Directories) snapshot(name string) (string, error) {
	if !snapshotName.MatchString(name) {
		return "", fmt.Errorf("snapshot %q: want a name of letters, digits, dots, hyphens and underscores that begins with a letter or digit", name)
	}
	return filepath.Join(d.Data, snapshotsDir, name), nil
}

// Snapshots lists a machine's snapshots, the oldest first.
func (m *Machine) Snapshots() ([]Snapshot, error) {
	names, err := subdirectories(filepath.Join(m.Data, snapshotsDir))
	if err != nil {
		return nil, err
	}
	out := []Snapshot{}
	for _, name := range names {
		s, err := m.Snapshot(name)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Snapshot) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// Snapshot returns the machine's snapshot of a name, or an [ErrNoSnapshot].
func (m *Machine) Snapshot(name string) (Snapshot, error) {
	var s Snapshot
	dir, err := m.snapshot(name)
	if err != nil {
		return s, err
	}
	data, err := os.ReadFile(filepath.Join(dir, snapshotFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s: snapshot %q: %w", m.FullName(), name, ErrNoSnapshot)
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("%s: snapshot %q: %w", m.FullName(), name, err)
	}
	s.Name = name
	return s, nil
}

// The errors of snapshots, for errors.Is.
var (
	// ErrNoSnapshot is the error when a machine has no snapshot of a name.
	ErrNoSnapshot = errors.New("there is no such snapshot")
	// ErrSnapshotExists is the error when a machine already has a snapshot of a name.
	ErrSnapshotExists = errors.New("there is a snapshot of that name already")
)
