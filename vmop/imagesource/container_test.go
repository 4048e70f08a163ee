package imagesource

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file of a layer.
type entry struct {
	name    string
	content []byte
	kind    byte
}

func layerOf(t *testing.T, packed bool, entries ...entry) v1.Layer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		if e.kind != 0 {
			h.Typeflag, h.Linkname = e.kind, "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !packed {
		return static.NewLayer(out.Bytes(), types.OCIUncompressedLayer)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func imageOf(t *testing.T, layers ...v1.Layer) v1.Image {
	t.Helper()
	i, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// push has a registry of its own serve an image, and returns its location.
func push(t *testing.T, image v1.Image) string {
	t.Helper()
	u, err := url.Parse(serve(t, registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(u.Host + "/disks/debian:13")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	return registryPrefix + ref.String()
}

// layoutOf writes an image to a directory, and to an archive.
func layoutOf(t *testing.T, image v1.Image) (dir, archive string) {
	t.Helper()
	dir = t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	archive = filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, archive
}

// The disk of a container image is the same, wherever that is and however it is packed.
func TestContainerImages(t *testing.T) {
	disk := diskOf(300_000)
	for _, packed := range []bool{true, false} {
		image := imageOf(t, layerOf(t, true, entry{name: "etc/motd", content: []byte("hello")}), layerOf(t, packed, entry{name: "disk", kind: tar.TypeDir}, entry{name: "./disk/debian.img", content: disk}))
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		dir, archive := layoutOf(t, image)
		at := push(t, image)
		for _, s := range []Source{
			{Location: at}, {Location: at, Checksum: digest.String()}, {Location: at, Path: "/disk/debian.img"}, {Location: strings.TrimSuffix(at, ":13") + "@" + digest.String()},
			{Location: layoutPrefix + dir}, {Location: archivePrefix + archive, Checksum: digest.String()}, {Location: archivePrefix + archive, Path: "disk/debian.img"},
		} {
			to := filepath.Join(t.TempDir(), "image")
			o := testOptions()
			o.Local = LocalNamed
			r, err := Fetch(t.Context(), s, to, o)
			if err != nil || "sha256:"+r.SHA256 != digest.String() {
				t.Errorf("%s: %+v, %v", s, r, err)
				continue
			}
			if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, disk) {
				t.Errorf("%s: %d bytes, %v", s, len(got), err)
			}
			if names := files(t, filepath.Dir(to)); len(names) != 1 {
				t.Errorf("%s left %v", s, names)
			}
		}
	}
}

// A layer within a layer: a disk that is packed in a packed layer, and one that was
// removed by the layer above.
func TestLayers(t *testing.T) {
	disk, older := diskOf(50_000), diskOf(60_000)
	_, archive := layoutOf(t, imageOf(t,
		layerOf(t, true, entry{name: "disk/old.img", content: older}),
		layerOf(t, true, entry{name: "disk/.wh.old.img"}),
		layerOf(t, true, entry{name: "other/.wh..wh..opq"}),
		layerOf(t, true, entry{name: "other/x", content: older}),
	))
	_, err := Fetch(t.Context(), Source{Location: archivePrefix + archive}, filepath.Join(t.TempDir(), "image"), testOptions())
	if err == nil || err.Error() != "the container image has no disk: there is no file /disk/*" {
		t.Error(err)
	}
	for _, gone := range []string{".wh.vm", "vm/.wh.images", "vm/.wh..wh..opq", ".wh..wh..opq"} {
		_, archive = layoutOf(t, imageOf(t, layerOf(t, true, entry{name: "vm/images/old.img", content: older}), layerOf(t, true, entry{name: gone})))
		_, err := Fetch(t.Context(), Source{Location: archivePrefix + archive, Path: "/vm/images/old.img"}, filepath.Join(t.TempDir(), "image"), testOptions())
		if err == nil || !strings.Contains(err.Error(), "has no disk") {
			t.Errorf("%s: %v", gone, err)
		}
	}
	to := filepath.Join(t.TempDir(), "image")
	_, archive = layoutOf(t, imageOf(t,
		layerOf(t, true, entry{name: "disk/old.img", content: older}),
		layerOf(t, true, entry{name: "disk/new.img.gz", content: pack(t, gzipped, disk)}),
	))
	if _, err := Fetch(t.Context(), Source{Location: archivePrefix + archive}, to, testOptions()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, disk) {
		t.Error(err)
	}
}

func TestContainerMessages(t *testing.T) {
	disk := diskOf(50_000)
	at := push(t, imageOf(t, layerOf(t, true, entry{name: "disk/a.img", content: disk}, entry{name: "disk/b.img", content: disk}, entry{name: "disk/link", kind: tar.TypeSymlink})))
	dir, _ := layoutOf(t, imageOf(t, layerOf(t, true, entry{name: "disk/a.img", content: disk})))
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs { // the layer is damaged
		content, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(content, []byte("\x1f\x8b")) {
			content[len(content)/2] ^= 1
			if err := os.WriteFile(b, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, bomb := layoutOf(t, imageOf(t, layerOf(t, true, entry{name: "other", content: make([]byte, 8<<20)}, entry{name: "disk/a.img", content: disk})))
	arm := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: empty.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}},
		mutate.IndexAddendum{Add: empty.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}}), types.OCIImageIndex)
	foreign := t.TempDir()
	if _, err := layout.Write(foreign, arm); err != nil {
		t.Fatal(err)
	}
	missing := "oci://" + strings.TrimPrefix(at[:strings.LastIndex(at, ":")], "oci://") + ":12"
	for _, c := range []struct {
		s    Source
		want string
	}{
		{Source{Location: at}, "there are several files in /disk (/disk/a.img, /disk/b.img): name one as the path"},
		{Source{Location: at, Path: "/disk/link"}, "/disk/link is no ordinary file"},
		{Source{Location: at, Path: "/disk/c.img"}, "the container image has no disk: there is no file /disk/c.img"},
		{Source{Location: at, Path: "/disk/b.img"}, ""},
		{Source{Location: at, Checksum: "sha256:" + strings.Repeat("0", 64)}, "it is another image, or damaged"},
		{Source{Location: missing}, "the registry answers 404: MANIFEST_UNKNOWN"},
		{Source{Location: layoutPrefix + dir}, "it is another image, or damaged"},
		{Source{Location: layoutPrefix + foreign}, "it has no image for linux/amd64, only for linux/arm64, linux/s390x"},
		{Source{Location: layoutPrefix + t.TempDir()}, "it is no OCI image layout"},
		{Source{Location: archivePrefix + write(t, disk)}, "it is no archive"},
		{Source{Location: archivePrefix + bomb}, "it is too large: unpacked (gzip) it has more than 1 MiB, which is as much as is taken"},
	} {
		to := filepath.Join(t.TempDir(), "image")
		o := testOptions()
		o.MaxSize = 1 << 20
		_, err := Fetch(t.Context(), c.s, to, o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.s, err)
		}
	}
	if _, err := Fetch(t.Context(), Source{Location: at}, filepath.Join(t.TempDir(), "image"), Options{pause: soon}); !errors.Is(err, errRefused) {
		t.Errorf("a local registry: %v", err)
	}
}

// A layer goes on where it was cut off.
func TestLayerResumes(t *testing.T) {
	disk := diskOf(400_000)
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var cuts atomic.Int32
	var mu sync.Mutex
	var ranges []string
	u, err := url.Parse(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			mu.Lock()
			ranges = append(ranges, r.Header.Get("Range"))
			mu.Unlock()
			if cuts.Add(-1) >= 0 {
				w = &short{ResponseWriter: w, left: 100_000}
			}
		}
		inner.ServeHTTP(w, r)
	})))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(u.Host + "/disks/debian:13")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, imageOf(t, layerOf(t, false, entry{name: "disk/a.img", content: disk}))); err != nil {
		t.Fatal(err)
	}
	cuts.Store(2)
	to := filepath.Join(t.TempDir(), "image")
	if _, err := Fetch(context.Background(), Source{Location: registryPrefix + ref.String()}, to, testOptions()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, disk) {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	// Of what was sent before the end, some may not have arrived.
	if len(ranges) != 3 || ranges[0] != "" || !strings.HasPrefix(ranges[1], "bytes=") || !strings.HasPrefix(ranges[2], "bytes=") || ranges[1] == ranges[2] {
		t.Errorf("%q", ranges)
	}
}

// short ends an answer early.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p[:min(len(p), s.left)])
	if s.left -= n; err == nil && s.left == 0 {
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// FuzzLayer has the size of what is written as its oracle: whatever an archive says of
// its files, and however they are packed.
func FuzzLayer(f *testing.F) {
	for _, kind := range []compression{unpackedAlready, gzipped, zstdPacked} {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, h := range []*tar.Header{{Name: "disk/.wh.old"}, {Name: "./disk/a.img", Size: 5}, {Name: "disk", Typeflag: tar.TypeDir}} {
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write([]byte("hello")[:h.Size]); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(pack(f, kind, out.Bytes()))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, layer []byte) {
		source := filepath.Join(dir, "layer")
		if err := os.WriteFile(source, layer, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(source)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		run := &fetch{o: Options{MaxSize: 1 << 20}, to: filepath.Join(dir, "image")}
		found, err := run.extract(t.Context(), file, "disk/", map[string]bool{})
		info, serr := os.Stat(run.packed())
		if serr == nil && info.Size() > 1<<20 || found && err == nil && serr != nil {
			t.Errorf("found %v, %v, %v", found, err, serr)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 2 {
			t.Errorf("%v, %v", names, err)
		}
		if err := discard(run.packed()); err != nil {
			t.Fatal(err)
		}
	})
}
