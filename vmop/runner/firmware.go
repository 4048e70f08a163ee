package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

var firmwareKinds = []qemucmd.FirmwareKind{qemucmd.FirmwareUEFI, qemucmd.FirmwareUEFI4M, qemucmd.FirmwareSecure, qemucmd.FirmwareSecure4M}

func isSecure(k qemucmd.FirmwareKind) bool {
	return k == qemucmd.FirmwareSecure || k == qemucmd.FirmwareSecure4M
}

func needsFourMiB(k qemucmd.FirmwareKind) bool {
	return k == qemucmd.FirmwareUEFI4M || k == qemucmd.FirmwareSecure4M
}

type firmwareFacts struct {
	kind     qemucmd.FirmwareKind
	recorded map[qemucmd.FirmwareKind]firmwareRecord
	files    map[string]varsFile
	// codes reports for each recorded code that exists whether its flash layout is the 4 MiB one.
	codes  map[string]bool
	images []qemucmd.FirmwareImage
}

// varsFile describes a file of variables; err is why it is not one.
type varsFile struct {
	uefiVars
	err error
}

type firmwareChoice struct {
	vars    string // name in the data directory
	code    string // "" is the host's first choice, for variables yet to be created
	warning string
}

// ownVars returns the file name of a kind's variables if [runnerconfig.FirmwareVars] belongs to
// another kind.
func ownVars(k qemucmd.FirmwareKind) string { return "fw-vars." + string(k) + ".fd" }

// decideFirmware finds the machine's variables for a kind of firmware, and code with their flash
// layout. Existing variables are never abandoned for others:
//
//   - what was recorded for the kind stays;
//   - kinds that differ in the layout that they demand share variables that have
//     the layout;
//   - the first kind of a machine takes VM-Operator's fw-vars.fd, from wherever it
//     came;
//   - all else gets a file of its own, beside those that are there.
//
// A file without variables is an error: the firmware would initialize it, and would then not
// enforce Secure Boot.
func decideFirmware(f firmwareFacts) (firmwareChoice, error) {
	c := firmwareChoice{vars: f.varsName()}
	file, exists := f.files[c.vars]
	if !exists {
		if _, recorded := f.recorded[f.kind]; recorded {
			c.warning = fmt.Sprintf("the UEFI variables %s are gone: new ones are made, without the boot entries and keys of the old ones", c.vars)
		} else if _, taken := f.files[runnerconfig.FirmwareVars]; taken && len(f.recorded) == 0 {
			c.warning = fmt.Sprintf("the UEFI variables %s have the 2 MiB flash layout and stay as they are: %s gets others, in %s", runnerconfig.FirmwareVars, f.kind, c.vars)
		}
		return c, nil
	}
	if file.err != nil {
		return c, fmt.Errorf("UEFI variables %s: %w; put back a copy, or move the file away for new variables without boot entries and keys", c.vars, file.err)
	}
	if isSecure(f.kind) && !file.enrolled {
		c.warning = fmt.Sprintf("the UEFI variables %s have no platform key: Secure Boot enforces nothing. Enroll keys in the firmware's setup, or move the file away for variables with enrolled keys", c.vars)
	}
	for _, k := range slices.Concat([]qemucmd.FirmwareKind{f.kind}, firmwareKinds) {
		r := f.recorded[k]
		if layout, found := f.codes[r.Code]; found && r.Vars == c.vars && isSecure(k) == isSecure(f.kind) && layout == file.fourMiB {
			c.code = r.Code
			return c, nil
		}
	}
	for _, i := range f.images {
		if i.Secure == isSecure(f.kind) && i.FourMiB == file.fourMiB {
			c.code = i.Code
			return c, nil
		}
	}
	layout := "2 MiB"
	if file.fourMiB {
		layout = "4 MiB"
	}
	return c, fmt.Errorf("the UEFI variables %s have the %s flash layout, and this host has no %s firmware with that: run the machine with an image of the runner, or on a host, that has it; they stay as they are (Debian's package ovmf has the 2 MiB layout until Debian 12, and the runner's recipe for Debian brings that along)", c.vars, layout, f.kind)
}

func (f firmwareFacts) varsName() string {
	if r, recorded := f.recorded[f.kind]; recorded {
		return r.Vars
	}
	fits := func(name string) bool {
		file, exists := f.files[name]
		return exists && (file.err != nil || file.fourMiB || !needsFourMiB(f.kind))
	}
	if fits(ownVars(f.kind)) {
		return ownVars(f.kind) // its record was lost
	}
	for _, k := range firmwareKinds {
		if r, recorded := f.recorded[k]; recorded && isSecure(k) == isSecure(f.kind) && fits(r.Vars) {
			return r.Vars
		}
	}
	_, taken := f.files[runnerconfig.FirmwareVars]
	if len(f.recorded) == 0 && (!taken || fits(runnerconfig.FirmwareVars)) {
		return runnerconfig.FirmwareVars
	}
	return ownVars(f.kind)
}

func (e *Engine) chooseFirmware(kind qemucmd.FirmwareKind, rec record, facts *runnerconfig.Facts) error {
	if kind == qemucmd.FirmwareBIOS {
		return nil
	}
	f := firmwareFacts{
		kind: kind, recorded: rec.Firmware, images: e.o.Host.Firmware,
		files: map[string]varsFile{}, codes: map[string]bool{},
	}
	names := []string{runnerconfig.FirmwareVars, ownVars(kind)}
	for _, r := range rec.Firmware {
		// A manipulated record must not lead elsewhere.
		if r.Vars != filepath.Base(r.Vars) {
			return fmt.Errorf("the machine's record %s names UEFI variables %q that are not in the data directory", recordName, r.Vars)
		}
		names = append(names, r.Vars)
		if info, err := os.Stat(r.Code); err == nil {
			f.codes[r.Code] = info.Size() > code2M
		}
	}
	for _, name := range names {
		vars, err := readUEFIVars(filepath.Join(facts.DataDir, name))
		if !errors.Is(err, os.ErrNotExist) {
			f.files[name] = varsFile{vars, err}
		}
	}
	c, err := decideFirmware(f)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", facts.DataDir, err)
	}
	if c.warning != "" {
		e.message(LevelWarning, "%s", c.warning)
	}
	facts.FirmwareVars, facts.FirmwareCode = c.vars, c.code
	return nil
}
