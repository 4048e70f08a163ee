package imageinspect

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckUpload(t *testing.T) {
	zeros := make([]byte, HeaderSize)
	mbr := bytes.Clone(zeros)
	copy(mbr, "Invalid partition table\x00")
	tar := bytes.Clone(zeros)
	copy(tar[257:], "ustar")
	for _, c := range []struct {
		name   string
		header []byte
		want   error
		text   string
	}{
		{"empty file", nil, nil, ""},
		{"blank disk", zeros, nil, ""},
		{"boot sector", mbr, nil, ""},
		{"qcow2", qcow2Bytes(nil)[:HeaderSize], nil, ""},
		{"gzip", []byte("\x1f\x8b\x08\x00"), ErrCompressed, "gunzip"},
		{"xz", []byte("\xfd7zXZ\x00\x00\x04"), ErrCompressed, "unxz"},
		{"zip", []byte("PK\x03\x04"), ErrCompressed, "unzip"},
		{"ova", tar, ErrCompressed, "tar -x"},
		{"page", []byte("\n<!DOCTYPE html><html>404"), ErrText, "web page"},
		{"note", []byte("a manifest\nby mistake\n"), ErrText, "it is text"},
		{"cut character", []byte("a" + strings.Repeat("ü", 400))[:HeaderSize], ErrText, ""},
		{"descriptor of a vmdk, which ProbeFormat knows", []byte("# Disk DescriptorFile\nversion=1\n"), nil, ""},
	} {
		err := CheckUpload(c.header)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What the tools pack is known by its content, whatever the file is called.
func TestCheckUploadOfToolsOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"gzip", "xz", "bzip2", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			continue // each is a table's row above, too
		}
		out, err := exec.Command(tool, "-c", file).Output()
		if err != nil {
			t.Fatal(tool, err)
		}
		if err := CheckUpload(out[:min(len(out), HeaderSize)]); !errors.Is(err, ErrCompressed) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// A disk with a null byte in its first sector is never called text, and what has a
// known format is ProbeFormat's to judge.
func TestCheckUploadLeavesDisksAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		header := rapid.SliceOfN(rapid.Byte(), HeaderSize, HeaderSize).Draw(t, "header")
		header[rapid.IntRange(8, 250).Draw(t, "at")] = 0
		if err := CheckUpload(header); errors.Is(err, ErrText) {
			t.Fatal(err)
		}
		if identify(header) == FormatQcow2 && CheckUpload(header) != nil {
			t.Fatal("qcow2 was refused")
		}
	})
}
