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

// definitionFile has what a machine is made of beside its manifest.
const definitionFile = "definition.json"

// Definition is what a machine is made of, as it was created or started last.
type Definition struct {
	Given
	// Used are the files and devices that were the machine's disks when it was
	// started last, by the names of the disks.
	Used map[string]string `json:"used,omitempty"`
	// InstanceID is what cloud-init knows the machine by, unless the manifest says it;
	// empty is NAMESPACE.NAME. A machine that got another name keeps it.
	InstanceID string `json:"instanceId,omitempty"`
	// SSH is how one gets into the guest.
	SSH SSH `json:"ssh,omitzero"`
}

// definitionPath has what the machine is made of beside its manifest.
func (d Directories) definitionPath() string { return filepath.Join(d.Data, definitionFile) }

// Definition reads what a machine is made of. A machine that was never kept has an
// empty one.
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

// write keeps a definition.
func (def Definition) write(d Directories) error {
	data, err := json.MarshalIndent(def, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(d.definitionPath(), append(data, '\n'))
}

// EmptyDiskError says that a start would give a machine an empty disk in place of
// one that it has had.
type EmptyDiskError struct {
	// Disk is the name of the disk, Path where the empty image would be made.
	Disk, Path string
	// Known is the file or device that the machine has had. If it is Path itself,
	// it is not there any more.
	Known string
	// Image is what the disk would be made of; empty is nothing.
	Image string
	// Emptied says that Path is there and has no byte in it.
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

// startDisk is a disk of a machine that is to be started.
type startDisk struct {
	name, path string
	// made says that it is an image which is not there yet, and would be made.
	made bool
	// size is what an image that is made gets, in bytes.
	size int64
	// image is what it is made of, for people; empty is nothing.
	image string
}

// knownDisks are those that a machine has had.
type knownDisks struct {
	// used are paths by the names of the disks.
	used map[string]string
	// images are paths whose names are not known, of a machine that was last run
	// before names were kept.
	images []string
	// exists reports whether a file is there.
	exists func(path string) bool
}

// checkDisks refuses to make an empty disk in place of a known one: under its name,
// at its path, or for a machine that would leave a known one out. Disks whose names
// are in fresh may be made in any case.
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

// startDisks are the disks of a configuration, without CD drives.
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

// known are the disks that a machine has had.
func (d Directories) known(def Definition) (knownDisks, error) {
	k := knownDisks{used: def.Used, exists: exists}
	if len(def.Used) > 0 {
		return k, nil
	}
	images, err := runner.KnownImages(d.Data)
	k.images = slices.Sorted(maps.Keys(images))
	return k, err
}

// hasContent reports whether something is there that is no empty file.
func hasContent(path string) bool {
	info, err := os.Stat(path)
	return exists(path) && (err != nil || !info.Mode().IsRegular() || info.Size() > 0)
}

// SSH is how one gets into a guest.
type SSH struct {
	// User of the guest, "" if that is not known.
	User string `json:"user,omitempty"`
	// Identity is the file with the private key; "" leaves it to ssh.
	Identity string `json:"identity,omitempty"`
}
