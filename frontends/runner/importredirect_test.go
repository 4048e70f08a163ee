package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A server that leads to where nothing is fetched from leads there again: no attempt after
// this one is of any use.
func TestRedirectsAreFinal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	}))
	defer server.Close()
	got := runImport(t, runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "disk.img"), Size: 1 << 20, Image: &runnerconfig.DriveImage{Source: server.URL + "/disk"}})
	if !got.Final || !strings.Contains(got.Error, "not allowed: the server leads to file:///etc/passwd, which is neither http nor https") {
		t.Errorf("%+v", got)
	}
}
