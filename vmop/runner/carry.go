package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// CarriedDisk is a disk image whose file was replaced or renamed.
type CarriedDisk struct {
	// Path is the machine's new path of it.
	Path string
	// File is its present path, from which it will be renamed to Path.
	File string
	// Left reports whether the file was copied while its guest ran: the header of a raw disk is
	// then what that guest has written.
	Left bool
}

// CarriedRecord returns the new content of a data directory's machine.json after its disks, given
// by their recorded paths, became other files with the same content: the decisions about them
// remain valid. The entries of other disks are kept unless others is false. The content is nil if
// there is no record.
func CarriedRecord(dataDir string, disks map[string]CarriedDisk, others bool) ([]byte, error) {
	r, err := readRecord(dataDir)
	if err != nil || r.empty() {
		return nil, err
	}
	carried := map[string]diskRecord{}
	if others {
		carried = maps.Clone(r.Disks)
	}
	for before := range disks {
		delete(carried, before)
	}
	for before, now := range disks {
		d, known := r.Disks[before]
		if !known {
			continue
		}
		f, err := os.Open(now.File)
		if err != nil {
			return nil, err
		}
		i, err := look(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("disk image %s: %w", now.File, err)
		}
		d.Inode, d.Birth = i.inode, i.birth
		if now.Left && d.Format == qemucmd.DiskFormatRaw {
			d.Header = i.header
		}
		carried[now.Path] = d
	}
	r.Disks = carried
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// NoteImage records an image that becomes a machine's disk while it runs, as a start does: the
// decision about its format remains valid.
func NoteImage(dataDir, path, name string, format qemucmd.DiskFormat) error {
	r, err := readRecord(dataDir)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	i, err := look(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("disk image %s: %w", path, err)
	}
	r.Disks[path] = diskRecord{Format: format, Inode: i.inode, Birth: i.birth, Name: name}
	return r.write(dataDir)
}

func (r *record) empty() bool {
	return r.MachineType == "" && r.AddressMap == 0 && len(r.Firmware) == 0 && len(r.Disks) == 0
}

// RecordFile is the file in a data directory with the decisions of the machine's first start,
// UUIDFile the one with its UUID.
const (
	RecordFile = recordName
	UUIDFile   = uuidName
)
