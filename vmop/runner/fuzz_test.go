package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// UEFI variables are the guest's to write.
func FuzzUEFIVars(f *testing.F) {
	f.Add(template(f, "OVMF_VARS.fd")[:64<<10])
	f.Add(template(f, "OVMF_VARS.ms.fd")[:64<<10])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		got, err := parseUEFIVars(data)
		if again, err2 := parseUEFIVars(data); got != again || (err == nil) != (err2 == nil) {
			t.Fatalf("%+v, %v, and once more %+v, %v", got, err, again, err2)
		}
		if !bytes.Equal(before, data) {
			t.Fatal("they were changed")
		}
	})
}

// What the runner keeps is on a volume that others may mount, too. What it can read it
// can write and read again.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"machineType":"pc-q35-7.2","disks":{"/a":{"format":"raw"}},"firmware":{"uefi":{"code":"x","vars":"y"}}}`))
	f.Add([]byte(`{"disks":null,"firmware":null,"addressMap":-1}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, recordName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRecord(dir)
		if err != nil {
			return
		}
		if err := r.write(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := readRecord(dir); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
	})
}

// Lines of guests and programs have no controls of terminals, however they are made.
func FuzzLines(f *testing.F) {
	f.Add("\x1b[0mred\x1b \x1b[0m[2J\u009b1m\r")
	f.Add("\x1b\x1b[0m[2J")
	f.Fuzz(func(t *testing.T, text string) {
		got := printable(plain(text))
		if strings.ContainsFunc(got, unicode.IsControl) || len(got) > 3*len(text) {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}
