package host

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

func TestPublicImages(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range PublicImages() {
		for _, text := range []string{p.URL, p.Checksums} {
			if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Host == "" {
				t.Errorf("%s: %s, %v", p.Name, text, err)
			}
		}
		if seen[p.Name] || filepath.Base(p.Name) != p.Name || (Image{Source: p.URL}).Check() != nil {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
		if found, ok := FindPublicImage(p.Name); !ok || found != p {
			t.Errorf("%+v", found)
		}
	}
	if got := NameOfImage("ubuntu-24.04"); got != "ubuntu-24-04" {
		t.Error(got)
	}
	if _, ok := FindPublicImage("debian"); ok || len(seen) < 4 {
		t.Error(seen)
	}
}

// The image has to have the checksum that its list says.
func TestImageWithListedChecksum(t *testing.T) {
	content := append([]byte("\x00boot sector"), bytes.Repeat([]byte{1}, 1<<16)...)
	lists := map[string]string{
		"/right": fmt.Sprintf("%x *disk.raw\n", sha256.Sum256(content)), "/wrong": fmt.Sprintf("%x *disk.raw\n", sha256.Sum256(nil)), "/none": "nothing\n",
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if list, ok := lists[r.URL.Path]; ok {
			_, _ = w.Write([]byte(list))
			return
		}
		if r.URL.Path == "/disk.raw" {
			_, _ = w.Write(content)
			return
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	for list, want := range map[string]string{"/right": "", "/wrong": "its checksum is", "/none": "there is none of disk.raw", "/missing": "the server answers 404"} {
		h := imageHost(t)
		_, err := h.CreateFromImage(t.Context(), desiredObject(t, "1Mi"), Given{Accelerator: "tcg"}, Image{Source: s.URL + "/disk.raw", Checksums: s.URL + list, Size: 1 << 20}, ImageOptions{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", list, err)
		}
	}
}
