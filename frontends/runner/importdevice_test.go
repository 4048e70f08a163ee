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
	whole := append(bytes.Clone(disk), make([]byte, size-len(disk))...)
	used := bytes.Clone(whole)
	copy(used[1<<20:], "of a guest")
	for source, c := range map[string]struct {
		before []byte
		says   string
	}{
		"raw":             {dirty(nil), ""},
		"qcow2":           {dirty(nil), ""},
		"vmdk":            {dirty(nil), ""},
		"vdi":             {dirty(headOf(job)), ""}, // after an attempt that was cut short
		"raw?whole":       {whole, ""},              // and after one that was not
		"qcow2?whole":     {whole, ""},
		"raw?used":        {used, "left alone"}, // another disk of the same image
		"qcow2?used":      {used, "left alone"},
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
				if got != (runnerconfig.Imported{Format: "raw", Size: size}) || !bytes.Equal(now, whole) {
					t.Errorf("copied %v: %+v, the same %v", copied, got, bytes.Equal(now, whole))
				}
			}
			if left, err := os.ReadDir(job.Scratch); err != nil || len(left) > 0 && source != "none" {
				t.Errorf("%v are left, %v", left, err)
			}
		})
	}
}

// A device whose first 4 KiB are zeros may have a file system on it, or what is left of a partition
// table: it is left alone. An image of that is made on a device nevertheless, and the disk is known
// again after an attempt that was not able to report it.
func TestImportBesideAFileSystem(t *testing.T) {
	tool := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s is installed by \"make deps\"", err, out, name)
		}
	}
	const size = 120 << 20 // btrfs needs that
	dir := t.TempDir()
	for name, maker := range map[string][]string{"btrfs": {"mkfs.btrfs", "-q"}, "table": {"sgdisk", "-n", "1:1M:+1M"}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		tool(maker[0], append(maker[1:], path)...)
	}
	for name, content := range map[string]string{"iso": "CD001", "other": "other"} {
		image := make([]byte, 1<<20)
		copy(image[32<<10+1:], content)
		if err := os.WriteFile(filepath.Join(dir, name), image, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool("qemu-img", "convert", "-f", "raw", "-O", "qcow2", filepath.Join(dir, "btrfs"), filepath.Join(dir, "btrfs.qcow2"))
	tool("qemu-img", "convert", "-f", "raw", "-O", "qcow2", filepath.Join(dir, "other"), filepath.Join(dir, "other.qcow2"))
	head := make([]byte, deviceHead)
	for _, c := range []struct {
		device, image string
		refused       string
	}{
		{"btrfs", "other", "btrfs: there is something"},
		{"btrfs", "other.qcow2", "btrfs: there is something"},
		{"btrfs", "iso", "btrfs: there is something"},
		{"table", "other", "a partition table: there is something"},
		{"iso", "other", "ISO 9660: there is something"},
		{"btrfs", "btrfs", ""},
		{"btrfs", "btrfs.qcow2", ""},
		{"iso", "iso", ""},
		{"other", "iso", ""},
	} {
		t.Run(c.image+" on "+c.device, func(t *testing.T) {
			before, err := os.ReadFile(filepath.Join(dir, c.device))
			if err != nil {
				t.Fatal(err)
			}
			copy(before, head)
			format := "raw"
			if strings.HasSuffix(c.image, ".qcow2") {
				format = "qcow2"
			}
			job := runnerconfig.Import{Disk: "u1", Size: int64(len(before)), Device: true, File: filepath.Join(t.TempDir(), "device"), Copy: &runnerconfig.ImportCopy{File: filepath.Join(dir, c.image), Format: format}}
			if err := os.WriteFile(job.File, before, 0o600); err != nil {
				t.Fatal(err)
			}
			got := runImport(t, job)
			now, err := os.ReadFile(job.File)
			if err != nil {
				t.Fatal(err)
			}
			if c.refused != "" {
				if !strings.Contains(got.Error, c.refused) || !got.Final || !bytes.Equal(now, before) {
					t.Errorf("%+v, untouched %v", got, bytes.Equal(now, before))
				}
				return
			}
			want, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(c.image, ".qcow2")))
			if err != nil {
				t.Fatal(err)
			}
			if got.Error != "" || !bytes.Equal(now, want) {
				t.Errorf("%+v, the same %v", got, bytes.Equal(now, want))
			}
		})
	}
}

// Every sign is in a place that is compared before a device is taken for the disk's own.
func TestSignsAreInTheirPlaces(t *testing.T) {
	const size = 5<<20 + 4096 + 512
	for _, s := range signs {
		device := make([]byte, size)
		at := s.at
		if at < 0 {
			at += size / s.unit * s.unit
		}
		copy(device[at:], s.magic)
		what, err := recognized(bytes.NewReader(device), size)
		if err != nil || what != s.what {
			t.Errorf("%+v is taken for %q, %v", s, what, err)
		}
		seen := false
		for _, p := range signedPlaces(size) {
			seen = seen || p.from <= at && at+int64(len(s.magic)) <= p.to
		}
		if !seen {
			t.Errorf("%+v is in none of the places", s)
		}
	}
	for _, size := range []int64{0, 512, 4096, 40 << 10} {
		if what, err := recognized(bytes.NewReader(make([]byte, size)), size); what != "" || err != nil {
			t.Errorf("%d zeros are taken for %q, %v", size, what, err)
		}
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
