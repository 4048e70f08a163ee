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

// bootSectorCommand makes a disk that BIOS firmware boots with little memory: its system
// writes a text to the serial port, and rests. boot-sector FILE TEXT...
func bootSectorCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: boot-sector FILE TEXT...")
	}
	disk := make([]byte, 1<<20)
	n := copy(disk, []byte{
		0x31, 0xc0, 0x8e, 0xd8, // xor ax, ax; mov ds, ax
		0xbe, 0x20, 0x7c, // mov si, 0x7c20, behind the program
		0xac,       // next: lodsb
		0x84, 0xc0, // test al, al
		0x74, 0x11, // jz rest
		0x88, 0xc4, // mov ah, al
		0xba, 0xfd, 0x03, // mov dx, 0x3fd, the line's status
		0xec,       // wait: in al, dx
		0xa8, 0x20, // test al, 0x20: what is sent next may come
		0x74, 0xfb, // jz wait
		0x88, 0xe0, // mov al, ah
		0xb2, 0xf8, // mov dl, 0xf8
		0xee,       // out dx, al
		0xeb, 0xea, // jmp next
		0xf4,       // rest: hlt
		0xeb, 0xfd, // jmp rest
	})
	copy(disk[n:0x1b8], strings.Join(args[1:], " "))
	copy(disk[0x1fe:], "\x55\xaa")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), disk, 0o644))
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
