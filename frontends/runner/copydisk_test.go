package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A copy of a disk is what the disk was, enlarged, in the format that is told; what a
// guest has made to look like an image of another format is none.
func TestCopyOfADisk(t *testing.T) {
	dir := t.TempDir()
	content := append([]byte("boot sector"), make([]byte, 3<<20)...)
	copy(content[2<<20:], "data")
	raw, qcow2, hostile := filepath.Join(dir, "raw"), filepath.Join(dir, "qcow2"), filepath.Join(dir, "hostile")
	for path, data := range map[string][]byte{raw: content, hostile: append([]byte("QFI\xfb\x00\x00\x00\x03"), content...)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", qcow2, "2M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nqemu-img is installed by \"make deps\"", err, out)
	}
	for name, c := range map[string]struct {
		from, format string
		size         int64
		want         runnerconfig.Imported
		says         string
	}{
		"raw":            {raw, "raw", 8 << 20, runnerconfig.Imported{Format: "raw", Size: 8 << 20}, ""},
		"qcow2":          {qcow2, "qcow2", 8 << 20, runnerconfig.Imported{Format: "qcow2", Size: 2 << 20}, ""},
		"smaller":        {raw, "raw", 1 << 20, runnerconfig.Imported{Final: true}, "no disk is made smaller"},
		"smaller qcow2":  {qcow2, "qcow2", 1 << 20, runnerconfig.Imported{Final: true}, "no disk is made smaller"},
		"hostile":        {hostile, "raw", 8 << 20, runnerconfig.Imported{Final: true}, "looks like"},
		"not what it is": {raw, "qcow2", 8 << 20, runnerconfig.Imported{Final: true}, "looks like"},
	} {
		t.Run(name, func(t *testing.T) {
			job := runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "disk.img"), Size: c.size, Copy: &runnerconfig.ImportCopy{File: c.from, Format: c.format}}
			text, err := job.Encode()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second finds what the first has made
				last := filepath.Join(t.TempDir(), "last words")
				var out bytes.Buffer
				importDisk(text, last, &out, &out)
				said, err := os.ReadFile(last)
				if err != nil {
					t.Fatal(err)
				}
				got := runnerconfig.ParseImported(string(said))
				if !strings.Contains(got.Error, c.says) || (c.says == "") != (got.Error == "") {
					t.Errorf("%+v\n%s", got, &out)
				}
				if got.Error = ""; got != c.want {
					t.Errorf("%+v, want %+v", got, c.want)
				}
			}
			now, err := os.ReadFile(job.File)
			if (c.says == "") != (err == nil) {
				t.Fatal(err)
			}
			if before, _ := os.ReadFile(c.from); err == nil && !bytes.HasPrefix(now, before) {
				t.Error("the copy is another one")
			}
		})
	}
}

// What is zero on a block device takes no space of its copy.
func TestCopyOfADevice(t *testing.T) {
	content := make([]byte, 5<<20+4096)
	copy(content, "first")
	copy(content[3<<20+512:], "middle")
	copy(content[len(content)-4:], "last")
	dst, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	var done int64
	if err := copyDevice(t.Context(), dst, bytes.NewReader(content), int64(len(content)), func(n int64) { done += n }); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(dst.Name()); err != nil || !bytes.Equal(now, content) || done != int64(len(content)) {
		t.Errorf("%v, %d bytes, %d told", err, len(now), done)
	}
}
