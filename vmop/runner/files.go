package runner

import (
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/vmop/runnerconfig"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// KnownImages are the image files that the machine of a data directory has had as
// disks, by their paths, with the formats that were decided when they were first seen.
func KnownImages(dataDir string) (map[string]qemucmd.DiskFormat, error) {
	r, err := readRecord(dataDir)
	out := map[string]qemucmd.DiskFormat{}
	for path, d := range r.Disks {
		out[path] = d.Format
	}
	return out, err
}

// IdentityFile reports whether a file of that name in a data directory is one in
// which the runner keeps what the content of the machine's disks may depend on,
// and what it holds, in words for people; empty for a lock of the TPM's state.
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
