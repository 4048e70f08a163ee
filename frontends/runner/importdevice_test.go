package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// deviceImages are images of one disk, by their names, and what the disk is.
func deviceImages(t *testing.T) (dir string, disk []byte) {
	t.Helper()
	dir = t.TempDir()
	disk = make([]byte, 3<<20)
	for at, text := range map[int]string{0: "\x00boot sector", 5000: "second block", 2<<20 + 4096: "behind a hole", len(disk) - 4: "last"} {
		copy(disk[at:], text)
	}
	raw := filepath.Join(dir, "raw")
	if err := os.WriteFile(raw, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"qcow2", "vmdk", "vdi"} {
		if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "raw", "-O", format, raw, filepath.Join(dir, format)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\nqemu-img is installed by \"make deps\"", err, out)
		}
	}
	return dir, disk
}

// runImport runs an import, and returns its last words.
func runImport(t *testing.T, job runnerconfig.Import) runnerconfig.Imported {
	t.Helper()
	text, err := job.Encode()
	if err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(t.TempDir(), "last words")
	var out bytes.Buffer
	importDisk(text, last, &out, &out)
	said, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	return runnerconfig.ParseImported(string(said))
}

// A file is used as a block device here, which a test needs no rights for: whatever was on
// it behind its beginning, and at its end, is the disk's then, or zero. What begins with
// something else is left alone.
func TestImportOnADevice(t *testing.T) {
	dir, disk := deviceImages(t)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	const size = 5 << 20
	job := runnerconfig.Import{Disk: "u1", Size: size, Device: true, Scratch: t.TempDir()}
	dirty := func(head []byte) []byte {
		out := bytes.Repeat([]byte{0xee}, size)
		copy(out, make([]byte, deviceHead))
		copy(out, head)
		return out
	}
	for source, c := range map[string]struct {
		before []byte
		says   string
	}{
		"raw":             {dirty(nil), ""},
		"qcow2":           {dirty(nil), ""},
		"vmdk":            {dirty(nil), ""},
		"vdi":             {dirty(headOf(job)), ""},       // after an attempt that was cut short
		"raw?whole":       {dirty(disk[:deviceHead]), ""}, // and after one that was not
		"qcow2?whole":     {dirty(disk[:deviceHead]), ""},
		"raw?occupied":    {dirty([]byte("somebody")), "left alone"},
		"qcow2?another's": {dirty(headOf(runnerconfig.Import{Disk: "u2"})), "left alone"},
		"raw?small":       {dirty(nil)[:2<<20], "no disk is made smaller"},
		"qcow2?small":     {dirty(nil)[:2<<20], "no disk is made smaller"},
		"none":            {dirty(nil), "404"},
	} {
		t.Run(source, func(t *testing.T) {
			for _, copied := range []bool{false, true} {
				name, _, _ := strings.Cut(source, "?")
				job := job
				job.File = filepath.Join(t.TempDir(), "device")
				if err := os.WriteFile(job.File, c.before, 0o600); err != nil {
					t.Fatal(err)
				}
				switch {
				case !copied:
					job.Image = &runnerconfig.DriveImage{Source: server.URL + "/" + name}
				case name == "raw" || name == "qcow2":
					job.Scratch = ""
					job.Copy = &runnerconfig.ImportCopy{File: filepath.Join(dir, name), Format: name}
				default:
					continue
				}
				got := runImport(t, job)
				now, err := os.ReadFile(job.File)
				if err != nil {
					t.Fatal(err)
				}
				if c.says != "" {
					if !strings.Contains(got.Error, c.says) || got.Final != (name != "none") || !bytes.Equal(now, c.before) {
						t.Errorf("copied %v: %+v", copied, got)
					}
					continue
				}
				want := append(bytes.Clone(disk), make([]byte, size-len(disk))...)
				if got != (runnerconfig.Imported{Format: "raw", Size: size}) || !bytes.Equal(now, want) {
					t.Errorf("copied %v: %+v, the same %v", copied, got, bytes.Equal(now, want))
				}
			}
			if left, err := os.ReadDir(job.Scratch); err != nil || len(left) > 0 && source != "none" {
				t.Errorf("%v are left, %v", left, err)
			}
		})
	}
}

// Until everything is on the device, its beginning says that it is no disk.
func TestImportOnADeviceIsCutShort(t *testing.T) {
	dir, disk := deviceImages(t)
	job := runnerconfig.Import{Disk: "u1", Size: 5 << 20, Device: true, File: filepath.Join(t.TempDir(), "device"), Copy: &runnerconfig.ImportCopy{File: filepath.Join(dir, "raw"), Format: "raw"}}
	if err := os.WriteFile(job.File, make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if _, err := makeOnDevice(t.Context(), job, func(string) {}, func(runnerconfig.ImportProgress) {
		now, err := os.ReadFile(job.File)
		if err != nil {
			t.Fatal(err)
		}
		if seen++; !bytes.Equal(now[:deviceHead], headOf(job)) {
			t.Errorf("it begins with %q", now[:64])
		}
	}); err != nil || seen == 0 {
		t.Fatal(seen, err)
	}
	if now, err := os.ReadFile(job.File); err != nil || !bytes.Equal(now[:len(disk)], disk) {
		t.Error("it is no disk", err)
	}
}
