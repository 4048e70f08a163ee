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

// A disk is made once, in a place where there is none; an attempt after one that was cut
// short finds what is its own, and nothing of somebody else's is written to.
func TestImport(t *testing.T) {
	content := append([]byte("\x00boot sector"), bytes.Repeat([]byte{1}, 1<<20)...)
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/a.img", func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = w.Write(content) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	last := filepath.Join(t.TempDir(), "last words")
	run := func(job runnerconfig.Import) (runnerconfig.Imported, int) {
		t.Helper()
		text, err := job.Encode()
		if err != nil || strings.Contains(text, "$") {
			t.Fatalf("%s: %v", text, err)
		}
		var out bytes.Buffer
		code := importDisk(text, last, &out, &out)
		said, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		return runnerconfig.ParseImported(string(said)), code
	}
	job := func(disk, dir, source string, size int64) runnerconfig.Import {
		j := runnerconfig.Import{Disk: disk, File: filepath.Join(dir, "disk.img"), Size: size}
		if source != "" {
			j.Image = &runnerconfig.DriveImage{Source: source}
		}
		return j
	}

	dir := t.TempDir()
	for range 2 { // the second finds it
		got, code := run(job("u1", dir, server.URL+"/a.img?$(HOME)", 2<<20))
		if code != 0 || got != (runnerconfig.Imported{Format: "raw", Size: 2 << 20}) {
			t.Fatalf("%d: %+v", code, got)
		}
	}
	disk, err := os.ReadFile(filepath.Join(dir, "disk.img"))
	if err != nil || len(disk) != 2<<20 || !bytes.HasPrefix(disk, content) || asked != 1 {
		t.Errorf("%v, %d bytes, asked %d times", err, len(disk), asked)
	}
	got, code := run(job("u2", dir, server.URL+"/a.img", 4<<20))
	if now, _ := os.ReadFile(filepath.Join(dir, "disk.img")); code == 0 || !got.Final || !strings.Contains(got.Error, "left alone") || !bytes.Equal(now, disk) {
		t.Errorf("the disk of another: %d, %+v", code, got)
	}

	empty := t.TempDir()
	if got, code := run(job("u1", empty, "", 5000)); code != 0 || got != (runnerconfig.Imported{Format: "raw", Size: 8192}) {
		t.Errorf("an empty disk: %d, %+v", code, got)
	}
	for _, c := range []struct {
		source, want string
		final        bool
	}{{"/none", "404", false}, {"/a.img", "no disk is made smaller", true}} {
		dir := t.TempDir()
		got, code := run(job("u1", dir, server.URL+c.source, 4096))
		if _, err := os.Stat(filepath.Join(dir, "disk.img")); code == 0 || !strings.Contains(got.Error, c.want) || got.Final != c.final || err == nil {
			t.Errorf("%s: %d, %+v, %v", c.source, code, got, err)
		}
	}
}

// An image is kept as what it is: neither enlarged nor refused because the disk in it is
// larger than its volume, and that of a CD is called so. A copy of it is the same again.
func TestImportOfAnImage(t *testing.T) {
	iso := make([]byte, 20*2048)
	copy(iso[16*2048:], "\x01CD001\x01")
	large := filepath.Join(t.TempDir(), "large.qcow2")
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", large, "50G").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nqemu-img is installed by \"make deps\"", err, out)
	}
	qcow2, err := os.ReadFile(large)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"/cd": iso, "/large": qcow2, "/raw": bytes.Repeat([]byte{7}, 5000), "/huge": make([]byte, 2<<20)}
	mux := http.NewServeMux()
	for at, content := range files {
		mux.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		from, format string
		size         int64
		says         string
	}{{"/cd", "iso", int64(len(iso)), ""}, {"/large", "qcow2", 50 << 30, ""}, {"/raw", "raw", 5000, ""}, {"/huge", "", 0, "too large"}} {
		t.Run(c.from[1:], func(t *testing.T) {
			run := func(job runnerconfig.Import) runnerconfig.Imported {
				t.Helper()
				job.Disk, job.File, job.Size, job.Keep = "u1", filepath.Join(t.TempDir(), "disk.img"), 1<<20, true
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
				got := runnerconfig.ParseImported(string(said))
				if now, _ := os.ReadFile(job.File); c.says == "" && !bytes.Equal(now, files[c.from]) {
					t.Errorf("it has %d bytes, and %d are kept", len(files[c.from]), len(now))
				}
				if !strings.Contains(got.Error, c.says) || (got.Error == "") != (c.says == "") || got.Final != (c.says != "") ||
					got.Format != c.format || got.Size != c.size || (got.Stored > 0) != (c.says == "") {
					t.Errorf("%+v\n%s", got, &out)
				}
				return got
			}
			run(runnerconfig.Import{Image: &runnerconfig.DriveImage{Source: server.URL + c.from}})
			if c.says != "" {
				return
			}
			file := filepath.Join(t.TempDir(), "kept")
			if err := os.WriteFile(file, files[c.from], 0o400); err != nil {
				t.Fatal(err)
			}
			from := &runnerconfig.ImportCopy{File: file, Format: c.format}
			if from.CD = c.format == "iso"; from.CD {
				from.Format = "raw"
			}
			run(runnerconfig.Import{Copy: from})
		})
	}
	if _, err := runnerconfig.ParseImport(`{"disk":"a","file":"b","size":1,"keep":true}`); err == nil {
		t.Error("nothing is kept")
	}
}

// What a container says that was killed, or that lies, is no disk.
func TestImported(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"format":"vmdk"}`, `{"format":1}`, "\x00"} {
		if got := runnerconfig.ParseImported(text); got.Error == "" || got.Final {
			t.Errorf("%q: %+v", text, got)
		}
	}
	long := runnerconfig.Imported{Error: strings.Repeat("ä", 3000)}
	if data := long.Encode(); len(data) > 4096 || runnerconfig.ParseImported(string(data)).Error == "" {
		t.Errorf("%d bytes", len(data))
	}
	if _, err := runnerconfig.ParseImport(`{"disk":"a"}`); err == nil {
		t.Error("an import without a file is taken")
	}
}
