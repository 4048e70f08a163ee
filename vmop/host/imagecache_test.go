package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/imagesource"
)

// imageServer counts what it sends.
type imageServer struct {
	content atomic.Pointer[[]byte]
	asked   atomic.Int32
	// gate, if there is one, is waited for by each answer.
	gate chan struct{}
}

func (s *imageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = w.Write(*s.content.Load())
}

func serveImage(t *testing.T, content []byte) (*imageServer, string) {
	t.Helper()
	s := &imageServer{}
	s.content.Store(&content)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL + "/debian.raw"
}

func bootable(last byte) []byte {
	return append([]byte("\x00boot sector"), bytes.Repeat([]byte{last}, 1<<20)...)
}

// An image is fetched once; what is made of it does not depend on it.
func TestImagesAreFetchedOnce(t *testing.T) {
	s, url := serveImage(t, bootable(1))
	h := imageHost(t)
	image := Image{Source: url + "?token=secret", Size: 2 << 20}
	m, err := h.CreateFromImage(t.Context(), desiredObject(t, "2Mi"), Given{}, image, ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, fetched, err := h.PullImage(t.Context(), image, ImageOptions{})
	if err != nil || fetched || s.asked.Load() != 1 {
		t.Errorf("%v, %v, %d requests", fetched, err, s.asked.Load())
	}
	all, err := h.Images()
	if err != nil || len(all) != 1 || all[0].Digest != got.Digest || all[0].Size != int64(len(bootable(1))) || len(all[0].Sources) != 1 || all[0].Sources[0] != url+"?…" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, name := range []string{got.File, h.cache().record(strings.TrimPrefix(got.Digest, "sha256:"))} {
		if data, err := os.ReadFile(name); err != nil || strings.HasSuffix(name, ".json") && bytes.Contains(data, []byte("secret")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Another content at the same place: it is asked for when somebody says so.
	next := bootable(2)
	s.content.Store(&next)
	if again, fetched, err := h.PullImage(t.Context(), image, ImageOptions{}); err != nil || fetched || again.Digest != got.Digest {
		t.Error(again, fetched, err)
	}
	fresh, fetched, err := h.PullImage(t.Context(), image, ImageOptions{Refresh: true})
	if err != nil || !fetched || fresh.Digest == got.Digest {
		t.Error(fresh, fetched, err)
	}
	// The one with the checksum is there, wherever it came from.
	other := Image{Source: "http://192.0.2.1/never", Checksum: got.Digest}
	if found, fetched, err := h.PullImage(t.Context(), other, ImageOptions{Refresh: true}); err != nil || fetched || found.Digest != got.Digest {
		t.Error(found, fetched, err)
	}
	if found, _, err := h.PullImage(t.Context(), image, ImageOptions{}); err != nil || found.Digest != fresh.Digest {
		t.Error(found, err)
	}
	for _, name := range []string{got.Digest, url + "?token=secret"} {
		if _, err := h.DeleteImage(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.DeleteImage(t.Context(), url); !errors.Is(err, ErrNoImage) {
		t.Error(err)
	}
	if all, err := h.Images(); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	if disk, err := os.ReadFile(filepath.Join(m.Data, SystemDisk+".img")); err != nil || !bytes.HasPrefix(disk, bootable(1)) || len(disk) != 2<<20 {
		t.Errorf("%d bytes, %v", len(disk), err)
	}
}

// A server that has the image that is here is asked, and sends it no second time; one
// with another content sends that, and disks and the image that were there stay.
func TestImageIsUpToDate(t *testing.T) {
	content, tag := bootable(1), `"one"`
	var whole atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") != tag {
			whole.Add(1)
		}
		http.ServeContent(w, r, "debian.raw", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	h := imageHost(t)
	image := Image{Source: server.URL + "/debian.raw", Size: 2 << 20}
	m, err := h.CreateFromImage(t.Context(), desiredObject(t, "2Mi"), Given{}, image, ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, fetched, err := h.PullImage(t.Context(), image, ImageOptions{Refresh: true})
	if err != nil || fetched || whole.Load() != 1 {
		t.Errorf("%+v, %v, %v; sent %d times", first, fetched, err, whole.Load())
	}
	content, tag = bootable(2), `"two"`
	second, fetched, err := h.PullImage(t.Context(), image, ImageOptions{Refresh: true})
	if err != nil || !fetched || second.Digest == first.Digest || whole.Load() != 2 {
		t.Errorf("%+v, %v, %v; sent %d times", second, fetched, err, whole.Load())
	}
	if all, err := h.Images(); err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if disk, err := os.ReadFile(filepath.Join(m.Data, SystemDisk+".img")); err != nil || !bytes.HasPrefix(disk, bootable(1)) {
		t.Errorf("the disk is another one, %v", err)
	}
	// One that was deleted meanwhile is fetched, whatever it was called.
	if _, err := h.DeleteImage(t.Context(), second.Digest); err != nil {
		t.Fatal(err)
	}
	if again, fetched, err := h.PullImage(t.Context(), image, ImageOptions{Refresh: true}); err != nil || !fetched || again.Digest != second.Digest {
		t.Errorf("%+v, %v, %v", again, fetched, err)
	}
}

// Two that want the same image at once: one fetches it, and the other says whom it
// waits for.
func TestTwoPullsAreOne(t *testing.T) {
	s, url := serveImage(t, bootable(1))
	s.gate = make(chan struct{})
	h := imageHost(t)
	var wg sync.WaitGroup
	var fetched atomic.Int32
	waits := make(chan string, 2)
	for range 2 {
		wg.Go(func() {
			_, got, err := h.PullImage(t.Context(), Image{Source: url}, ImageOptions{Waiting: func(who string) { waits <- who }})
			if err != nil {
				t.Error(err)
			}
			if got {
				fetched.Add(1)
			}
		})
	}
	if who, want := <-waits, fmt.Sprintf("process %d", os.Getpid()); who != want && who != "process" { // not yet written down
		t.Errorf("waits for %q", who)
	}
	close(s.gate)
	wg.Wait()
	if s.asked.Load() != 1 || fetched.Load() != 1 {
		t.Errorf("%d requests, %d fetched", s.asked.Load(), fetched.Load())
	}
	// Who waits can be interrupted.
	lock, err := lockFile(t.Context(), filepath.Join(h.cache().pulls(), sourceKey(imagesource.Source{Location: url + "2"})+".lock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	if _, _, err := h.PullImage(ctx, Image{Source: url + "2"}, ImageOptions{Waiting: func(string) { cancel(given) }}); !errors.Is(err, given) {
		t.Error(err)
	}
}

// What is in use stays, and prune tells what it has removed.
func TestImagesInUse(t *testing.T) {
	_, url := serveImage(t, bootable(1))
	_, second := serveImage(t, bootable(2))
	h := imageHost(t)
	one, _, err := h.PullImage(t.Context(), Image{Source: url}, ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := h.PullImage(t.Context(), Image{Source: second}, ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := desiredObject(t, "8Mi")
	if _, err := h.Create(o, Given{Disks: map[string]string{SystemDisk: one.File}}); err != nil {
		t.Fatal(err)
	}
	want := `the image is in use: it is disk "system-disk" of default/debian`
	if _, err := h.DeleteImage(t.Context(), one.Digest); !errors.Is(err, ErrImageInUse) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	held, ok, err := h.cache().hold(strings.TrimPrefix(two.Digest, "sha256:"))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := h.DeleteImage(t.Context(), two.Digest); !errors.Is(err, ErrImageInUse) || !strings.Contains(err.Error(), "a disk is being made of it") {
		t.Error(err)
	}
	partial := filepath.Join(h.cache().pulls(), sourceKey(imagesource.Source{Location: url})+".part")
	if err := os.WriteFile(partial, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if done, err := h.PruneImages(t.Context(), time.Hour); err != nil || len(done.Images) != 0 || done.Partial != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := h.PruneImages(t.Context(), 0); err != nil || len(done.Images) != 0 || done.Partial != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if done, err := h.PruneImages(t.Context(), 0); err != nil || len(done.Images) != 1 || done.Images[0].Digest != two.Digest || done.Freed == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	all, err := h.Images()
	if err != nil || len(all) != 1 || all[0].InUse != `disk "system-disk" of default/debian` {
		t.Errorf("%+v, %v", all, err)
	}
}

// A bomb is held against the disk that it shall become.
func TestImageForASmallDisk(t *testing.T) {
	content := append(bootable(1), make([]byte, 100<<20)...)
	_, url := serveImage(t, content)
	h := imageHost(t)
	_, err := h.CreateFromImage(t.Context(), desiredObject(t, "2Mi"), Given{}, Image{Source: url, Size: 2 << 20}, ImageOptions{})
	if !errors.Is(err, imagesource.ErrTooLarge) || !strings.Contains(err.Error(), "no disk is made smaller, and this one is to have 2 MiB") {
		t.Error(err)
	}
	if all, err := h.Images(); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}
