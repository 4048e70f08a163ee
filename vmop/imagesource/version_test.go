package imagesource

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A server is asked whether it has another version, and one that has not sends nothing;
// whichever way it has of telling versions apart.
func TestWhatHasNotChangedIsNotFetched(t *testing.T) {
	disk, other := diskOf(300_000), diskOf(200_000)
	for _, c := range []struct {
		name, tag string
		at        bool
	}{{"by its tag", `"one"`, false}, {"by a weak tag", `W/"one"`, true}, {"by its time", "", true}} {
		t.Run(c.name, func(t *testing.T) {
			var sent atomic.Int64
			content, tag, at := disk, c.tag, time.Time{}
			if c.at {
				at = time.Now().Add(-time.Hour)
			}
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tag != "" {
					w.Header().Set("ETag", tag)
				}
				http.ServeContent(&counting{w, &sent}, r, "disk.raw", at, bytes.NewReader(content))
			})) + "/disk.raw"
			dir := t.TempDir()
			fetch := func(name string, have Version) (Result, error) {
				o := testOptions()
				o.Have = have
				return Fetch(t.Context(), Source{Location: url}, filepath.Join(dir, name), o)
			}
			first, err := fetch("first", "")
			if err != nil || first.Version == "" {
				t.Fatalf("%+v, %v", first, err)
			}
			sent.Store(0)
			if r, err := fetch("again", first.Version); !errors.Is(err, ErrUnchanged) || sent.Load() != 0 {
				t.Errorf("%+v, %v; %d bytes were sent", r, err, sent.Load())
			}
			if left := files(t, dir); len(left) != 1 {
				t.Errorf("left: %v", left)
			}
			content, at = other, at.Add(time.Minute)
			if tag != "" {
				tag = `"two"`
			}
			r, err := fetch("second", first.Version)
			if err != nil || r.Version == first.Version || r.VirtualSize != int64(len(other)) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// A server that says that something has not changed, of which it was not asked, is not
// believed.
func TestUnchangedThatNobodyAskedFor(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	_, err := Fetch(t.Context(), Source{Location: url + "/disk.raw"}, filepath.Join(t.TempDir(), "image"), testOptions())
	if err == nil || errors.Is(err, ErrUnchanged) || !strings.Contains(err.Error(), "304 Not Modified") {
		t.Error(err)
	}
}

// Of a container image that is the one that is there, no layer is fetched.
func TestContainerImageThatHasNotChanged(t *testing.T) {
	location := push(t, imageOf(t, layerOf(t, false, entry{name: "disk/a.img", content: diskOf(300_000)})))
	dir := t.TempDir()
	r, err := Fetch(t.Context(), Source{Location: location}, filepath.Join(dir, "first"), testOptions())
	if err != nil || r.Version != Version("sha256:"+r.SHA256) {
		t.Fatalf("%+v, %v", r, err)
	}
	o := testOptions()
	o.Have = r.Version
	if _, err := Fetch(t.Context(), Source{Location: location}, filepath.Join(dir, "again"), o); !errors.Is(err, ErrUnchanged) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// What a server says about versions is bounded, and asks for nothing but what it said.
func TestVersionsOfServers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		said := http.Header{}
		for _, name := range []string{"ETag", "Last-Modified"} {
			if value := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[ -~]{1,40}`), rapid.Just(strings.Repeat("x", maxVersion))).Draw(rt, name); value != "" {
				said.Set(name, value)
			}
		}
		v := versionOf(said)
		if len(v) > maxVersion || strings.ContainsFunc(string(v), func(r rune) bool { return r < ' ' || r > '~' }) {
			rt.Errorf("version %q", v)
		}
		asked := http.Header{}
		v.ask(asked)
		tag, at := asked.Get("If-None-Match"), asked.Get("If-Modified-Since")
		switch {
		case len(asked) > 1 || v == "" && len(asked) != 0 || v != "" && tag+at == "":
			rt.Errorf("%q asks %v", v, asked)
		case tag != "" && tag != strings.TrimSpace(said.Get("ETag")), at != "" && at != strings.TrimSpace(said.Get("Last-Modified")):
			rt.Errorf("%q asks %v", v, asked)
		}
	})
}

// counting counts what is written of a body.
type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counting) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}
