package runner

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// An image that is only read is a disk of two machines at a time, whatever its format,
// and neither its guests nor its runners can write to it; that of a CD is in a drive.
func TestDisksThatAreOnlyRead(t *testing.T) {
	t.Parallel()
	dir := testDirs(t).Data
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 4<<20)
	copy(content[1<<20:], "of the image")
	raw, packed, cd := filepath.Join(dir, "raw.img"), filepath.Join(dir, "packed.img"), filepath.Join(dir, "cd.img")
	for _, path := range []string{raw, cd} {
		if err := os.WriteFile(path, content, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, packed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nqemu-img is installed by \"make deps\"", err, out)
	}
	before, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	drives := []runnerconfig.Drive{
		{Type: runnerconfig.DriveRaw, Name: "raw", File: raw, ReadOnly: true},
		{Type: runnerconfig.DriveRaw, Name: "packed", File: packed, ReadOnly: true},
		{Type: runnerconfig.DriveCD, Name: "cd", File: cd, ReadOnly: true},
	}
	for _, name := range []string{"one", "two"} {
		c := cdConfig(t)
		c.Runner.VM.Name, c.Runner.VM.Drives = name, drives
		d := testDirs(t)
		console := start(t, c, d).console(t)
		if got, err := console.Command(withPatience(t), "disks"); err != nil || strings.Count(got, "read-only") != 3 {
			t.Errorf("%s has %q, %v", name, got, err)
		}
		for _, dev := range []string{"vda", "vdb", "sr0"} {
			if got, err := console.Command(withPatience(t), "read "+dev+" 1048576 12"); err != nil || !strings.Contains(got, "of the image") {
				t.Errorf("%s reads %q of %s, %v", name, got, dev, err)
			}
			if got, err := console.Command(withPatience(t), "write "+dev+" 1048576 overwritten"); err == nil {
				t.Errorf("%s writes to %s: %q, %v", name, dev, got, err)
			}
		}
		if data, err := os.ReadFile(filepath.Join(d.Data, recordName)); err == nil && bytes.Contains(data, []byte("packed.img")) {
			t.Errorf("what is not the machine's is recorded as its disk: %s", data)
		}
	}
	if now, err := os.ReadFile(packed); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the image is another one: %v", err)
	}
	if now, err := os.ReadFile(raw); err != nil || !bytes.Equal(now, content) {
		t.Errorf("the image is another one: %v", err)
	}
}
