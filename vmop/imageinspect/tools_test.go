package imageinspect

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool runs a program and returns its output. The test fails if the program is
// missing or reports an error.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("%v: install it with: make deps", err)
	}
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// sparse makes a file of size bytes without content.
func sparse(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk.raw")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return path
}

// place copies the content of a file to an offset in bytes of a disk.
func place(t *testing.T, disk, part string, offset int64) {
	t.Helper()
	b, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, offset); err != nil {
		t.Fatal(err)
	}
}

// header returns what ProbeFormat wants to see, and the file's size.
func header(t *testing.T, path string) ([]byte, int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b[:min(len(b), HeaderSize)], int64(len(b))
}

// blkid asks for the same that identifyFileSystem finds.
func blkid(t *testing.T, path string) FileSystem {
	t.Helper()
	fs := FileSystem{}
	for line := range strings.Lines(tool(t, "blkid", "-p", "-o", "export", path)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "TYPE":
			fs.Type = value
		case "LABEL":
			fs.Label = strings.ReplaceAll(value, `\ `, " ")
		case "UUID":
			fs.UUID = value
		}
	}
	return fs
}

func inspectPath(t *testing.T, path string) Report {
	t.Helper()
	report, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
