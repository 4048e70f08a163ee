package imagesource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/imageinspect"
)

// diskOf is a raw image of n bytes, with a hole and different everywhere else.
func diskOf(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		if i/8192%3 != 1 {
			out[i] = byte(i*7 + i>>8 + i>>16 + 1)
		}
	}
	if n > 2 {
		out[0], out[1] = 0, 0xeb
	}
	return out
}

func sha256Of(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// soon goes on at once.
func soon(ctx context.Context, _ int) error { return ctx.Err() }

// server has one content in many ways.
type server struct {
	content []byte
	// ranges and tag say whether parts are served, and of which version.
	ranges bool
	tag    string
	// cuts are after how many bytes the first answers end.
	cuts []int
	// seen are the Range headers.
	mu   sync.Mutex
	seen []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := r.Header.Get("Range")
	s.seen = append(s.seen, asked)
	body := s.content
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	code, start := http.StatusOK, 0
	if s.ranges && asked != "" && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == s.tag) {
		if _, err := fmt.Sscanf(asked, "bytes=%d-", &start); err != nil || start >= len(body) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		code, body = http.StatusPartialContent, body[start:]
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(s.content)-1, len(s.content)))
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(code)
	if len(s.cuts) > 0 {
		n := min(s.cuts[0], len(body))
		s.cuts = s.cuts[1:]
		_, _ = w.Write(body[:n])
		if n < len(body) {
			panic(http.ErrAbortHandler)
		}
		return
	}
	_, _ = w.Write(body)
}

func serve(t interface{ Cleanup(func()) }, h http.Handler) string {
	s := httptest.NewServer(h)
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	return s.URL
}

func testOptions() Options { return Options{Local: LocalAllowed, pause: soon} }

// nothing fails a test that has left something beside what it should have.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFetchOverHTTP(t *testing.T) {
	disk := diskOf(300_000)
	s := &server{content: disk}
	url := serve(t, s) + "/disk.raw"
	for _, sum := range []string{"", sha256Of(disk), fmt.Sprintf("sha512:%x", sha512.Sum512(disk))} {
		dir := t.TempDir()
		to := filepath.Join(dir, "image")
		var last Progress
		o := testOptions()
		o.Progress = func(p Progress) {
			if p.Step == Downloading {
				last = p
			}
		}
		r, err := Fetch(t.Context(), Source{Location: url, Checksum: sum}, to, o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(to)
		if err != nil || !bytes.Equal(got, disk) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if r.Format != imageinspect.FormatRaw || r.VirtualSize != int64(len(disk)) || "sha256:"+r.SHA256 != sha256Of(disk) {
			t.Errorf("%+v", r)
		}
		if last.Done != int64(len(disk)) || last.Total != last.Done {
			t.Errorf("progress %+v", last)
		}
		if names := files(t, dir); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		if info, err := os.Stat(to); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
}

// However a server cuts its answers off, and whether or not it has parts: a fetch, and
// the next ones that go on with it, make the image or say why not, and never a part.
func TestCutsAndResumes(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		disk := diskOf(rapid.IntRange(1, 40_000).Draw(t, "size"))
		s := &server{
			content: disk,
			ranges:  rapid.Bool().Draw(t, "ranges"),
			tag:     rapid.SampledFrom([]string{"", `"a"`, `W/"a"`}).Draw(t, "tag"),
			cuts:    rapid.SliceOfN(rapid.IntRange(0, 50_000), 0, 12).Draw(t, "cuts"),
		}
		src := Source{Location: serve(t, s) + "/disk?secret=1"}
		if rapid.Bool().Draw(t, "checksum") {
			src.Checksum = sha256Of(disk)
		}
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "image")
		change := rapid.IntRange(-1, 2).Draw(t, "change")
		for try := range 6 {
			s.mu.Lock()
			if try == change && src.Checksum == "" { // another version
				s.content, s.tag = append([]byte{0, 0xeb, 7}, disk...), strings.Replace(s.tag, "a", "b", 1)
			}
			s.mu.Unlock()
			_, err := Fetch(context.Background(), src, to, testOptions())
			got, rerr := os.ReadFile(to)
			if err == nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				if rerr != nil || !bytes.Equal(got, s.content) {
					t.Fatalf("%d bytes of %d: %v", len(got), len(s.content), rerr)
				}
				return
			}
			if !errors.Is(rerr, fs.ErrNotExist) {
				t.Fatalf("failed (%v), and there is an image: %v", err, rerr)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Fatal(err)
			}
		}
		// At least five attempts in each fetch, and twelve cuts at most.
		t.Fatal("it was never fetched")
	})
}

// A server with parts is asked for what is missing alone.
func TestResumeAsksForTheRest(t *testing.T) {
	disk := diskOf(100_000)
	s := &server{content: disk, ranges: true, tag: `"v1"`, cuts: []int{60_000, 0, 0, 0, 0}}
	src := Source{Location: serve(t, s) + "/disk"}
	to := filepath.Join(t.TempDir(), "image")
	if _, err := Fetch(t.Context(), src, to, testOptions()); err == nil || !strings.Contains(err.Error(), "attempts") {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), src, to, testOptions()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var from int
	if _, err := fmt.Sscanf(s.seen[len(s.seen)-1], "bytes=%d-99999", &from); err != nil || from < 50_000 || from > 60_000 {
		t.Errorf("%q: %v", s.seen, err)
	}
}

// Another content under the same tag is found by the checksum, and fetched anew.
func TestResumeOfAnotherContent(t *testing.T) {
	disk := diskOf(50_000)
	s := &server{content: bytes.Repeat([]byte{1}, len(disk)), ranges: true, tag: `"same"`, cuts: []int{20_000, 0, 0, 0, 0, 0, 0, 0}}
	src := Source{Location: serve(t, s) + "/disk", Checksum: sha256Of(disk)}
	to := filepath.Join(t.TempDir(), "image")
	if _, err := Fetch(t.Context(), src, to, testOptions()); err == nil {
		t.Fatal("fetched")
	}
	s.mu.Lock()
	s.content, s.cuts = disk, nil
	s.mu.Unlock()
	if _, err := Fetch(t.Context(), src, to, testOptions()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, disk) {
		t.Error(err)
	}
}

// What goes wrong is said in a way that helps, and without secrets.
func TestHTTPMessages(t *testing.T) {
	disk := diskOf(10_000)
	mux := http.NewServeMux()
	url := serve(t, mux)
	other := serve(t, &server{content: disk})
	mux.Handle("/disk", &server{content: disk})
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	mux.HandleFunc("/file", redirect("file:///etc/passwd"))
	mux.HandleFunc("/local", redirect(other+"/disk?token=secret"))
	mux.HandleFunc("/metadata", redirect("http://169.254.169.254/latest/"))
	mux.HandleFunc("/around", redirect("/around"))
	mux.HandleFunc("/own", redirect("/disk"))
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>log in</html>")) })
	mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		hijacked, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = hijacked.Write(append([]byte("HTTP/1.0 200 OK\r\n\r\n"), disk...))
			_ = hijacked.Close()
		}
	})
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10000")
		_, _ = w.Write(disk[:100])
		w.(http.Flusher).Flush()
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	wrong := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		path, sum string
		o         Options
		want      string
	}{
		{path: "/disk"},
		{path: "/own"},
		{path: "/none", want: "the server answers 404 Not Found"},
		{path: "/disk", sum: wrong, want: "it is another image, or damaged: its checksum is " + sha256Of(disk)[7:] + ", and not the 0000000000000000000000000000000000000000000000000000000000000000 that was given"},
		{path: "/file", want: "not allowed: the server leads to file:///etc/passwd, which is neither http nor https"},
		{path: "/local", want: "not allowed: the server leads to " + other + "/disk?…, an address of this host or its link"},
		{path: "/metadata", want: "not allowed: the server leads to http://169.254.169.254/latest/, an address of this host or its link"},
		{path: "/around", want: "not allowed: the server leads from one address to the next, 10 times"},
		{path: "/page", want: "it is text (a web page), and no raw or qcow2 image: download the image itself"},
		{path: "/empty", want: "invalid image header: it is empty"},
		{path: "/endless", want: "the server does not tell how long it is, so that nobody could tell its end from a connection that was cut off: give its checksum"},
		{path: "/endless", sum: sha256Of(disk)},
		{path: "/slow", o: Options{Stall: 50 * time.Millisecond}, want: "the server sent nothing for 50ms"},
		{path: "/disk", o: Options{MaxSize: 4096}, want: ""},
	} {
		c.o.Local, c.o.pause = LocalNamed, soon
		dir := t.TempDir()
		withSecret := strings.Replace(url, "http://", "http://ann:secret@", 1) + c.path + "?token=secret"
		_, err := Fetch(t.Context(), Source{Location: withSecret, Checksum: c.sum}, filepath.Join(dir, "image"), c.o)
		switch {
		case c.o.MaxSize > 0:
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %v", c.path, err)
			}
		case c.o.Stall > 0: // before its first byte, or after some, as the host is fast
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.path, err)
			}
		case c.want == "" && err != nil, c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s:\n got %v\nwant %s", c.path, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
		if _, serr := os.Stat(filepath.Join(dir, "image")); (serr == nil) != (err == nil) {
			t.Errorf("%s: %v", c.path, serr)
		}
	}
}

// Names that lead to this host are refused when they are connected to.
func TestLocalAddresses(t *testing.T) {
	url := serve(t, &server{content: diskOf(5000)})
	named := strings.Replace(url, "127.0.0.1", "localhost", 1)
	for _, c := range []struct {
		url   string
		local Local
		ok    bool
	}{
		{url, LocalRefused, false}, {url, LocalNamed, true}, {url, LocalAllowed, true}, {named, LocalRefused, false}, {named, LocalNamed, true},
		{strings.Replace(url, "127.0.0.1", "[::ffff:127.0.0.1]", 1), LocalRefused, false},
	} {
		_, err := Fetch(t.Context(), Source{Location: c.url}, filepath.Join(t.TempDir(), "image"), Options{Local: c.local, pause: soon})
		if (err == nil) != c.ok || !c.ok && (!errors.Is(err, errRefused) || !strings.Contains(err.Error(), "is an address of this host or its link")) {
			t.Errorf("%s, %d: %v", c.url, c.local, err)
		}
	}
	for text, outside := range map[string]bool{
		"127.0.0.1": false, "::1": false, "::": false, "0.0.0.0": false, "169.254.169.254": false, "fe80::1": false, "224.0.0.1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "10.0.0.1": true, "192.0.2.1": true, "2001:db8::1": true, "fd00::1": true,
	} {
		if got := reachesOutside(netip.MustParseAddr(text)); got != outside {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAuthorities(t *testing.T) {
	s := httptest.NewTLSServer(&server{content: diskOf(5000)})
	t.Cleanup(s.Close)
	s.Config.ErrorLog = nil
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	to := filepath.Join(t.TempDir(), "image")
	_, err := Fetch(t.Context(), Source{Location: s.URL}, to, testOptions())
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
	if _, err := Fetch(t.Context(), Source{Location: s.URL, CA: []byte("none")}, to, testOptions()); err == nil || !strings.Contains(err.Error(), "PEM") {
		t.Error(err)
	}
	if _, err := Fetch(t.Context(), Source{Location: s.URL, CA: ca}, to, testOptions()); err != nil {
		t.Error(err)
	}
	// Nothing leads from https to http.
	plain := serve(t, &server{content: diskOf(5000)})
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain, http.StatusFound) })
	_, err = Fetch(t.Context(), Source{Location: s.URL, CA: ca}, to+"2", testOptions())
	if err == nil || err.Error() != "not allowed: the server leads from https to "+plain {
		t.Error(err)
	}
}

func TestSources(t *testing.T) {
	for _, c := range []struct {
		s    Source
		kind Kind
		err  string
	}{
		{s: Source{Location: "disk.img"}, kind: File},
		{s: Source{Location: "dir:with/colon"}, kind: File},
		{s: Source{Location: "https://example.com/a.qcow2"}, kind: HTTP},
		{s: Source{Location: "oci://quay.io/containerdisks/fedora:42"}, kind: Registry},
		{s: Source{Location: "oci-archive:disk.tar"}, kind: Archive},
		{s: Source{Location: "oci-layout:dir", Path: "/disk/a.img"}, kind: Layout},
		{s: Source{Location: ""}, err: "image: want a file, or a URL of http, https or oci"},
		{s: Source{Location: "ftp://ann:secret@example.com/a"}, err: "image ftp://example.com/a: want a file, or a URL of http, https or oci"},
		{s: Source{Location: "https:///a?secret"}, err: "image https:///a?…: it is no valid URL"},
		{s: Source{Location: "oci://UPPER/case:x y"}, err: "image oci://UPPER/case:x y: want oci://REGISTRY/REPOSITORY:TAG or the same with @sha256:DIGEST"},
		{s: Source{Location: "a", Path: "b"}, err: "image a: a path is for container images"},
		{s: Source{Location: "oci-archive:a", Path: "/disk/"}, err: `path "/disk/": want that of a file in the container image, such as /disk/disk.img`},
		{s: Source{Location: "oci-archive:a", Path: "../a"}, err: `path "../a": want that of a file in the container image, such as /disk/disk.img`},
		{s: Source{Location: "a", Checksum: "sha256:00"}, err: `checksum "sha256:00": want sha256:HEX or sha512:HEX`},
		{s: Source{Location: "a", Checksum: "md5:d41d8cd98f00b204e9800998ecf8427e"}, err: `checksum "md5:d41d8cd98f00b204e9800998ecf8427e": want sha256:HEX or sha512:HEX`},
		{s: Source{Location: "oci://a/b", Checksum: "sha512:" + strings.Repeat("0", 128)}, err: "checksum: that of a container image is its digest: want sha256:HEX"},
	} {
		err := c.s.Check()
		kind, _ := c.s.Kind()
		if c.err == "" && (err != nil || kind != c.kind) || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%+v: %s, %v", c.s, kind, err)
		}
	}
	if got := (Source{Location: "https://ann:pw@example.com/a/b?token=1#x"}).String(); got != "https://example.com/a/b?…" {
		t.Error(got)
	}
}
