package runner

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The files of the data directory that keep a machine's identity.
const (
	recordName = "machine.json"
	uuidName   = "uuid.txt" // VM-Operator's
)

// record holds the decisions of a machine's first start, which later starts keep so that the guest
// sees the same hardware.
type record struct {
	// MachineType is QEMU's versioned machine type.
	MachineType string `json:"machineType,omitempty"`
	// AddressMap is the map of PCI addresses; see qemucmd.Machine.AddressMap.
	AddressMap int `json:"addressMap,omitempty"`
	// FirstDiskSlot is qemucmd.Machine.FirstDiskSlot.
	FirstDiskSlot int `json:"firstDiskSlot,omitempty"`
	// Firmware has an entry for each firmware kind that was ever used.
	Firmware map[qemucmd.FirmwareKind]firmwareRecord `json:"firmware,omitempty"`
	// Disks has an entry for each image file by its path.
	Disks map[string]diskRecord `json:"disks,omitempty"`
}

type firmwareRecord struct {
	Code string `json:"code"`
	// Vars is the name of the variables' file in the data directory.
	Vars string `json:"vars"`
}

func readRecord(dir string) (record, error) {
	r := record{Firmware: map[qemucmd.FirmwareKind]firmwareRecord{}, Disks: map[string]diskRecord{}}
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the machine's record: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read the machine's record %s: %w", filepath.Join(dir, recordName), err)
	}
	// null in the file leaves the map nil.
	if r.Firmware == nil {
		r.Firmware = map[qemucmd.FirmwareKind]firmwareRecord{}
	}
	if r.Disks == nil {
		r.Disks = map[string]diskRecord{}
	}
	return r, nil
}

// oldTemplateName is the copy of its template that VM-Operator's runner keeps.
const oldTemplateName = "VM.ftl.yaml"

// maxOldTemplate is larger than any such template, in bytes.
const maxOldTemplate = 1 << 20

var oldMachineType = regexp.MustCompile(`\bpc-q35-[0-9]+\.[0-9]+\b`)

func takenOverType(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, oldTemplateName))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read VM-Operator's template: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxOldTemplate))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read VM-Operator's template: %w", err)
	}
	types := slices.Compact(oldMachineType.FindAllString(string(text), -1))
	if len(types) != 1 {
		return "", nil // a custom template
	}
	return types[0], nil
}

func (r record) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the machine's record: %w", err)
	}
	data = append(data, '\n')
	path := filepath.Join(dir, recordName)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	if err := errors.Join(atomicfile.Replace(path, data), atomicfile.SyncDir(dir)); err != nil {
		return fmt.Errorf("write the machine's record: %w", err)
	}
	return nil
}

// keepUUID returns the machine's UUID: the desired one, or the one kept in the data directory, or,
// the first time, a new one. It keeps the result, so that the machine stays the same when a desired
// UUID is withdrawn.
func (e *Engine) keepUUID(desired string) (string, error) {
	dir := e.o.Directories.Data
	path := filepath.Join(dir, uuidName)
	kept, err := readUUID(path)
	switch {
	case err == nil && (desired == "" || strings.EqualFold(desired, kept)):
		return kept, nil
	case err == nil:
		e.message(LevelWarning, "the UUID changes from %s to %s, as vm.uuid says, and with it the MAC addresses that the configuration does not give", kept, desired)
	case desired != "": // regardless of the file's problem
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	uuid := desired
	if uuid == "" {
		uuid = newUUID()
	}
	if err := errors.Join(atomicfile.Replace(path, []byte(uuid+"\n")), atomicfile.SyncDir(dir)); err != nil {
		return "", fmt.Errorf("keep the machine's UUID: %w", err)
	}
	return uuid, nil
}

func readUUID(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the machine's UUID: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("%s is empty: put the machine's UUID in it, or remove it to get a new one", path)
	}
	return line, nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// chooseAddressMap gives a machine that never ran here the newest map of PCI addresses, except that
// the disks of one from VM-Operator keep their addresses. One that has run without a recorded map
// has the original one.
func (r *record) chooseAddressMap(vm *runnerconfig.VM) {
	disks := vm.Disks()
	switch {
	case r.AddressMap != 0:
	case r.MachineType == "":
		r.AddressMap = qemucmd.AddressMapFor(disks)
		if vm.BootOrder == runnerconfig.BootOrderFirmware {
			r.FirstDiskSlot = qemucmd.DiskSlotFor(len(vm.Network), disks)
		}
	default:
		r.AddressMap = 1
	}
}

// diskRecord holds the decisions at an image's first use: later the guest controls its content, and
// could write another format's header into it.
type diskRecord struct {
	Format qemucmd.DiskFormat `json:"format"`
	// Inode distinguishes the file from one that replaced it. Inode numbers are reused; Birth, in
	// nanoseconds, is not, and is 0 where the file system has no birth times.
	Inode uint64 `json:"inode"`
	Birth int64  `json:"birth,omitempty"`
	// Name is the drive's.
	Name string `json:"name,omitempty"`
	// Image is the source of the image that the disk was created from, if any.
	Image string `json:"image,omitempty"`
	// Header is the format in a raw image's header when its guest had ended; empty is raw.
	Header qemucmd.DiskFormat `json:"header,omitempty"`
}
