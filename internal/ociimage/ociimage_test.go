package ociimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "ociimage")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	fmt.Println(Write(filepath.Join(dir, "hello.tar"), Image{
		Name:       "example.org/hello:1",
		Entrypoint: []string{"/bin/hello"},
		Files:      []File{{Path: "/bin/hello", Mode: 0o755, Data: []byte("#!/bin/sh\n")}},
	}))
	// Output: <nil>
}

// untar returns the members of an archive; folders have nil.
func untar(t *testing.T, data []byte) (headers map[string]*tar.Header, content map[string][]byte, order []string) {
	t.Helper()
	headers, content = map[string]*tar.Header{}, map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, content, order
		}
		if err != nil {
			t.Fatal(err)
		}
		if content[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
		order = append(order, h.Name)
	}
}

// Every reference of the layout leads to a blob with that digest and size, and
// the layer holds the files as they were described.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := os.WriteFile(from, []byte("copied"), 0o750); err != nil {
		t.Fatal(err)
	}
	image := Image{
		Name: "example.org/tool:1", Entrypoint: []string{"/b/run", "now"}, Env: []string{"A=b"}, User: "65532",
		Files: []File{
			{Path: "/b/run", From: from},
			{Path: "/a/deep/down/empty", Data: []byte{}},
			{Path: "/tmp", Mode: 0o777 | fs.ModeSticky},
			{Path: "/lib", Link: "usr/lib"},
			{Path: "/a", Mode: 0o700},
		},
	}
	var archives [2][]byte
	for i := range archives {
		file := filepath.Join(dir, "image.tar")
		if err := Write(file, image); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(image.Files)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the order of the files changes the image")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".layer-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}

	tag, err := name.NewTag(image.Name)
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.ImageFromPath(filepath.Join(dir, "image.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(read); err != nil {
		t.Error(err)
	}
	c, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.User != "65532" || !slices.Equal(c.Config.Entrypoint, image.Entrypoint) || !slices.Contains(c.Config.Env, "A=b") || c.OS != "linux" {
		t.Errorf("%+v", c)
	}
	layers, err := read.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	data, err := io.ReadAll(layer)
	if err != nil {
		t.Fatal(err)
	}
	headers, content, order := untar(t, data)
	if want := []string{"a/", "a/deep/", "a/deep/down/", "a/deep/down/empty", "b/", "b/run", "lib", "tmp/"}; !slices.Equal(order, want) {
		t.Errorf("the layer has %q", order)
	}
	if h := headers["b/run"]; h.Mode != 0o750 || string(content["b/run"]) != "copied" || h.Uid != 0 {
		t.Errorf("%+v", h)
	}
	if headers["tmp/"].Mode != 0o1777 || headers["a/"].Mode != 0o700 || headers["lib"].Linkname != "usr/lib" || headers["b/"].Mode != 0o755 {
		t.Errorf("%+v", headers)
	}
}

func TestRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	for _, files := range [][]File{
		{{Path: "relative"}}, {{Path: "/a/../b"}}, {{Path: "/"}}, {{Path: "/a"}, {Path: "/a"}},
		{{Path: "/a", From: "/nonexistent"}}, {{Path: "/a", From: t.TempDir()}},
	} {
		if err := Write(file, Image{Name: "example.org/tool:1", Files: files}); err == nil || !strings.Contains(err.Error(), "image example.org/tool:1: file") {
			t.Errorf("%+v: %v", files, err)
		}
	}
}
