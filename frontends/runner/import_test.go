package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
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
