package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// KnownImages returns the paths of the image files that the machine of a data directory has had as
// disks, with their recorded formats.
func KnownImages(dataDir string) (map[string]qemucmd.DiskFormat, error) {
	r, err := readRecord(dataDir)
	out := map[string]qemucmd.DiskFormat{}
	for path, d := range r.Disks {
		out[path] = d.Format
	}
	return out, err
}

// CheckImages inspects images that the machine of a data directory is to have as disks, and returns
// by path why the machine would not start with one: it is no longer the recorded one, or cannot be
// used at all. It returns nothing for a running machine: what its guest writes is recorded when it
// ends.
func CheckImages(dataDir string, paths []string) (map[string]error, error) {
	r, err := readRecord(dataDir)
	if err != nil {
		return nil, err
	}
	problems := map[string]error{}
	for _, path := range paths {
		if err := r.check(path); err != nil {
			problems[path] = fmt.Errorf("%s %w", path, err)
		}
	}
	return problems, nil
}

func (r record) check(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now, err := look(f)
	if err != nil {
		return err
	}
	known, recorded := r.Disks[path]
	_, _, err = known.next(now, recorded)
	return err
}

// IdentityFile reports whether a file of that name in a data directory is one in which the runner
// keeps what the content of the machine's disks may depend on, and describes its content; empty for
// a lock of the TPM's state.
func IdentityFile(name string) (holds string, ok bool) {
	own, _ := filepath.Match("fw-vars.*.fd", name)
	switch {
	case name == uuidName:
		return "UUID", true
	case name == recordName:
		return "machine type, firmware, disk formats", true
	case name == templateName:
		return "machine template", true
	case name == runnerconfig.FirmwareVars || own:
		return "UEFI variables", true
	case strings.HasPrefix(name, "tpm2-"):
		return "TPM state", true
	}
	return "", name == ".lock"
}
