package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// A raw disk into which its guest wrote another format's header is a raw disk in a
// machine that is a copy, too.
func TestCarriedRecord(t *testing.T) {
	s := newShelf(t)
	s.starts(qemucmd.DiskFormatRaw)
	data := s.e.o.Directories.Data
	if got, err := CarriedRecord(t.TempDir(), nil, true); got != nil || err != nil {
		t.Errorf("a machine without a record has %q, %v", got, err)
	}
	before := s.drive.File
	if err := os.WriteFile(before, []byte(qcow2Magic+"\x00\x00\x00\x03 and more of the guest's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.e.noteImages(); err != nil { // as at the machine's end
		t.Fatal(err)
	}
	content, err := os.ReadFile(before)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.img")
	if err := os.WriteFile(copied, content, 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := CarriedRecord(data, map[string]CarriedDisk{before: {Path: copied, File: copied}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, RecordFile), record, 0o600); err != nil {
		t.Fatal(err)
	}
	s.drive.File = copied
	s.starts(qemucmd.DiskFormatRaw)
	if known, err := KnownImages(data); err != nil || len(known) != 1 {
		t.Errorf("%v, %v", known, err)
	}
}
