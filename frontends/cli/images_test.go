package main

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/imagesource"
)

// serveImagesCommand starts a server of the script's files, $SERVER, which is a
// registry, too: serve-images.
func serveImagesCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: serve-images")
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(ts.Getenv("WORK"))))
	mux.Handle("/v2/", registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	ts.Setenv("SERVER", s.URL)
	ts.Setenv("REGISTRY", strings.TrimPrefix(s.URL, "http://"))
}

// pushDiskCommand makes a container image with a disk: push-disk REPOSITORY:TAG FILE.
func pushDiskCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: push-disk REPOSITORY:TAG FILE")
	}
	content, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	ts.Check(w.WriteHeader(&tar.Header{Name: "disk/disk.img", Mode: 0o644, Size: int64(len(content))}))
	_, err = w.Write(content)
	ts.Check(err)
	ts.Check(w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil })
	ts.Check(err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	ts.Check(err)
	ref, err := name.ParseReference(ts.Getenv("REGISTRY") + "/" + args[0])
	ts.Check(err)
	ts.Check(remote.Write(ref, image))
}

// diskOfGuest makes a disk that boots the tiny guest: guest-disk FILE.
func diskOfGuest(guest tinyguest.Guest) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: guest-disk FILE")
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ts.Check(guest.WriteDisk(ctx, ts.MkAbs(args[0])))
	}
}

func TestImageProgress(t *testing.T) {
	for _, c := range []struct {
		at   imagesource.Progress
		want string
	}{
		{imagesource.Progress{Step: imagesource.Converting}, "converting x"},
		{imagesource.Progress{Step: imagesource.Downloading, Done: 3 << 20}, "downloading x: 3Mi"},
		{imagesource.Progress{Step: imagesource.Downloading, Done: 50 << 20, Total: 100 << 20, Rate: 1 << 20}, "downloading x [==========          ] 50%, 50Mi of 100Mi, 1Mi/s, 50s left"},
		{imagesource.Progress{Step: imagesource.Unpacking, Done: 100, Total: 100}, "unpacking x [====================] 100%, 100 of 100"},
		{imagesource.Progress{Step: imagesource.Unpacking, Done: 101, Total: 100}, "unpacking x [====================] 100%, 100 of 100"},
	} {
		if got := imageProgress("x", c.at); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
