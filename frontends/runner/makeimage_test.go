package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A disk has its name once its image is whole; what fails, or is too large, leaves
// none, and what is at an address of the pod's own is fetched only if the source says
// that address itself.
func TestMakeImage(t *testing.T) {
	content := append([]byte("\x00boot sector"), bytes.Repeat([]byte{1}, 1<<20)...)
	mux := http.NewServeMux()
	mux.HandleFunc("/a.img", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	inner := httptest.NewServer(mux)
	t.Cleanup(inner.Close)
	mux.HandleFunc("/metadata", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL+"/a.img", http.StatusFound)
	})
	for _, c := range []struct {
		source string
		size   int64
		want   string // of the error
	}{
		{server.URL + "/a.img", 2 << 20, ""},
		{server.URL + "/a.img", 0, ""},
		{server.URL + "/a.img", 1 << 10, "no disk is made smaller"},
		{server.URL + "/none", 2 << 20, "404"},
		{server.URL + "/metadata", 2 << 20, "not allowed"},
	} {
		to := filepath.Join(t.TempDir(), "disk.img")
		if err := os.WriteFile(to+".making", []byte("of an earlier one"), 0o600); err != nil {
			t.Fatal(err)
		}
		var told []string
		err := makeImage(t.Context(), runnerconfig.Drive{File: to, Size: runnerconfig.Bytes(c.size), Image: &runnerconfig.DriveImage{Source: c.source}},
			func(text string) { told = append(told, text) })
		got, rerr := os.ReadFile(to)
		switch {
		case c.want == "" && (err != nil || !bytes.Equal(got, content) || len(told) == 0):
			t.Errorf("%s: %v, %d bytes, told %q", c.source, err, len(got), told)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.source)):
			t.Errorf("%s: %v; want %q", c.source, err, c.want)
		case c.want != "" && !errors.Is(rerr, fs.ErrNotExist):
			t.Errorf("%s: there is a disk", c.source)
		}
		if _, err := os.Stat(to + ".making"); err == nil {
			t.Errorf("%s: a part is left", c.source)
		}
	}
}
