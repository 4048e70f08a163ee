package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const definitionFile = "definition.json"

// Definition is what a machine consists of beside its manifest, as it was last created or started.
type Definition struct {
	Given
	// Used are the files and devices of the machine's disks at its last start, by the names of the
	// disks.
	Used map[string]string `json:"used,omitempty"`
	// InstanceID is cloud-init's instance-id of the machine, unless the manifest sets it; empty is
	// NAMESPACE.NAME. A renamed machine keeps it.
	InstanceID string `json:"instanceId,omitempty"`
	// SSH is how to log in to the guest.
	SSH SSH `json:"ssh,omitzero"`
}

func (d Directories) definitionPath() string { return filepath.Join(d.Data, definitionFile) }

// Definition reads the machine's definition. It is empty for a machine that was never kept.
func (d Directories) Definition() (Definition, error) {
	var def Definition
	data, err := os.ReadFile(d.definitionPath())
	if errors.Is(err, fs.ErrNotExist) {
		return def, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &def)
	}
	if err != nil {
		return def, fmt.Errorf("read what the machine is made of, %s: %w", d.definitionPath(), err)
	}
	return def, nil
}

func (def Definition) write(d Directories) error {
	data, err := json.MarshalIndent(def, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(d.definitionPath(), append(data, '\n'))
}

// EmptyDiskError is the error when a start would give a machine an empty disk in place of one that
// it has had.
type EmptyDiskError struct {
	// Disk is the name of the disk, Path where the empty image would be created.
	Disk, Path string
	// Known is the file or device that the machine has had. If it is Path itself, that no longer
	// exists.
	Known string
	// Image is the image that the disk would be a copy of; empty is none.
	Image string
	// Emptied reports that Path exists and is empty.
	Emptied bool
}

func (e *EmptyDiskError) Error() string {
	switch {
	case e.Emptied:
		return fmt.Sprintf("disk %q: its image %s has no content any more (0 bytes), and would be an empty disk", e.Disk, e.Path)
	case e.Image != "" && e.Known == e.Path:
		return fmt.Sprintf("disk %q: its image %s is gone, and would be made anew of %s, without what was written to it", e.Disk, e.Path, e.Image)
	case e.Image != "":
		return fmt.Sprintf("disk %q would be made anew of %s, as %s, while %s, which the machine has had, would not be used", e.Disk, e.Image, e.Path, e.Known)
	case e.Known == e.Path:
		return fmt.Sprintf("disk %q: its image %s is gone, and would be made anew and empty", e.Disk, e.Path)
	}
	return fmt.Sprintf("disk %q would be a new, empty image, %s, while %s, which the machine has had, would not be used", e.Disk, e.Path, e.Known)
}

type startDisk struct {
	name, path string
	made       bool
	size       int64
	image      string
}

type knownDisks struct {
	used map[string]string
	// images are paths without names, of a machine that was last run before names were recorded.
	images []string
	exists func(path string) bool
}

// checkDisks refuses to create an empty disk in place of a known one: under its name, at its path,
// or for a machine that would leave a known one out. Disks whose names are in fresh may always be
// created.
func checkDisks(disks []startDisk, known knownDisks, fresh []string) error {
	var unused []string
	inUse := func(path string) bool {
		return slices.ContainsFunc(disks, func(d startDisk) bool { return d.path == path && !d.made })
	}
	all := slices.Clone(known.images)
	for _, name := range slices.Sorted(maps.Keys(known.used)) {
		all = append(all, known.used[name])
	}
	for _, path := range all {
		if !inUse(path) && known.exists(path) {
			unused = append(unused, path)
		}
	}
	var errs []error
	for _, d := range disks {
		if !d.made || slices.Contains(fresh, d.name) {
			continue
		}
		switch before := known.used[d.name]; {
		case before != "" && !inUse(before):
			errs = append(errs, &EmptyDiskError{Disk: d.name, Path: d.path, Known: before, Image: d.image, Emptied: before == d.path && known.exists(d.path)})
		case slices.Contains(all, d.path):
			errs = append(errs, &EmptyDiskError{Disk: d.name, Path: d.path, Known: d.path, Image: d.image, Emptied: known.exists(d.path)})
		case len(unused) > 0:
			errs = append(errs, &EmptyDiskError{Disk: d.name, Path: d.path, Known: unused[0], Image: d.image})
		}
	}
	return errors.Join(errs...)
}

func startDisks(c *runnerconfig.Config, exists func(string) bool) []startDisk {
	var out []startDisk
	for _, d := range c.Runner.VM.Drives {
		if d.Type == runnerconfig.DriveCD || d.Ephemeral() {
			continue // there is nothing to lose
		}
		path := d.Where()
		s := startDisk{name: d.Name, path: path, made: d.File != "" && d.Size > 0 && !exists(path), size: int64(d.Size)}
		if d.Image != nil {
			s.image = imagesource.Source{Location: d.Image.Source}.String()
		}
		out = append(out, s)
	}
	return out
}

func (d Directories) known(def Definition) (knownDisks, error) {
	k := knownDisks{used: def.Used, exists: exists}
	if len(def.Used) > 0 {
		return k, nil
	}
	images, err := runner.KnownImages(d.Data)
	k.images = slices.Sorted(maps.Keys(images))
	return k, err
}

func hasContent(path string) bool {
	info, err := os.Stat(path)
	return exists(path) && (err != nil || !info.Mode().IsRegular() || info.Size() > 0)
}

// SSH is how to log in to a guest.
type SSH struct {
	// User is the user in the guest, "" if unknown.
	User string `json:"user,omitempty"`
	// Identity is the file with the private key; "" leaves the choice to ssh.
	Identity string `json:"identity,omitempty"`
}
