package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// packed is content as the usual programs pack it: gz, xz, zst, or not at all.
func packed(t *testing.T, how string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch how {
	case "gz":
		w = gzip.NewWriter(&out)
	case "xz":
		w, err = xz.WriterConfig{BlockSize: 1 << 20, DictCap: 1 << 16}.NewWriter(&out)
	case "zst":
		w, err = zstd.NewWriter(&out)
	default:
		return content
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// places are where an import makes a disk, by their names: a volume with a file system, and
// a block device, for which a file is used.
var places = map[string]func(*testing.T, runnerconfig.Import) runnerconfig.Import{
	"file system": func(t *testing.T, job runnerconfig.Import) runnerconfig.Import {
		job.File = filepath.Join(t.TempDir(), "disk.img")
		return job
	},
	"device": func(t *testing.T, job runnerconfig.Import) runnerconfig.Import {
		job.Device, job.Scratch, job.File = true, t.TempDir(), filepath.Join(t.TempDir(), "device")
		content := bytes.Repeat([]byte{0xee}, int(job.Size))
		copy(content, make([]byte, deviceHead))
		if err := os.WriteFile(job.File, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return job
	},
}

// contentOf is what a guest would see of a disk.
func contentOf(t *testing.T, job runnerconfig.Import, format string) []byte {
	t.Helper()
	path := job.File
	if format == "qcow2" {
		path = filepath.Join(t.TempDir(), "raw")
		if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "qcow2", "-O", "raw", job.File, path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\nqemu-img is installed by \"make deps\"", err, out)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// untouched reports what a refused import has left: nothing in a file system, and a device
// as it was.
func untouched(job runnerconfig.Import) error {
	if !job.Device {
		if _, err := os.Stat(job.File); err == nil {
			return fmt.Errorf("there is a disk")
		}
		return nil
	}
	content, err := os.ReadFile(job.File)
	if err != nil {
		return err
	}
	if n := int(job.Size) - deviceHead; !bytes.Equal(content[:deviceHead], make([]byte, deviceHead)) || !bytes.Equal(content[deviceHead:], bytes.Repeat([]byte{0xee}, n)) {
		return fmt.Errorf("the device was written to")
	}
	return nil
}

// Whatever an image is, however it is packed and called, and whichever checksum it has, its
// disk is the same, in a file system and on a block device. With another checksum there is
// no disk.
func TestImportsOverHTTP(t *testing.T) {
	dir, disk := deviceImages(t)
	iso := make([]byte, 20*2048)
	copy(iso[16*2048:], "\x01CD001\x01")
	if err := os.WriteFile(filepath.Join(dir, "iso"), iso, 0o600); err != nil {
		t.Fatal(err)
	}
	// What the name says is something else.
	names := map[string]string{"raw": "disk.qcow2", "qcow2": "disk.vmdk.xz", "vmdk": "disk.iso", "vdi": "disk.raw", "iso": "disk.vdi.gz"}
	const size = 5 << 20
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, format := range []string{"raw", "qcow2", "vmdk", "vdi", "iso"} {
		content, err := os.ReadFile(filepath.Join(dir, format))
		if err != nil {
			t.Fatal(err)
		}
		for _, how := range []string{"", "gz", "xz", "zst"} {
			file := packed(t, how, content)
			at := fmt.Sprintf("/%s/%s/%s", format, how+"-", names[format])
			mux.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file) })
			for place, make := range places {
				for _, c := range []struct{ sum, says string }{
					{fmt.Sprintf("sha256:%x", sha256.Sum256(file)), ""},
					{fmt.Sprintf("sha512:%x", sha512.Sum512(file)), ""},
					{fmt.Sprintf("sha256:%x", sha256.Sum256(content[1:])), "it is another image, or damaged: its checksum is "},
					{fmt.Sprintf("sha512:%x", sha512.Sum512(content[1:])), "it is another image, or damaged: its checksum is "},
				} {
					t.Run(fmt.Sprintf("%s%s %s %s", format, how, place, c.sum[:6]+c.says), func(t *testing.T) {
						job := make(t, runnerconfig.Import{Disk: "u1", Size: size, Image: &runnerconfig.DriveImage{Source: server.URL + at, Checksum: c.sum}})
						got := runImport(t, job)
						if c.says != "" {
							if !strings.Contains(got.Error, c.says) || !got.Final {
								t.Errorf("%+v", got)
							}
							if err := untouched(job); err != nil {
								t.Error(err)
							}
							return
						}
						want := disk
						if format == "iso" {
							want = iso
						}
						is := contentOf(t, job, got.Format)
						if got.Error != "" || !bytes.HasPrefix(is, want) || !bytes.Equal(is[len(want):], bytes.Repeat([]byte{0}, len(is)-len(want))) {
							t.Errorf("%+v, %d bytes", got, len(is))
						}
					})
				}
			}
		}
	}
}

// cutter serves a file, of which the first answers are cut off.
type cutter struct {
	content []byte
	ranges  bool
	cuts    []int
	mu      sync.Mutex
	sent    int
	asked   []string
}

func (s *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Header.Get("Range"))
	out := &cutWriter{ResponseWriter: w, left: -1}
	if len(s.cuts) > 0 {
		out.left, s.cuts = s.cuts[0], s.cuts[1:]
	}
	defer func() { s.sent += out.sent }()
	if !s.ranges {
		r.Header.Del("Range")
	} else {
		w.Header().Set("ETag", `"v1"`)
	}
	http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(s.content))
	if out.cut {
		panic(http.ErrAbortHandler)
	}
}

type cutWriter struct {
	http.ResponseWriter
	left, sent int
	cut        bool
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if w.left >= 0 && len(p) > w.left {
		p, w.cut = p[:w.left], true
	}
	n, err := w.ResponseWriter.Write(p)
	w.sent += n
	if w.left >= 0 {
		w.left -= n
	}
	if w.cut && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// A download that is cut off goes on where it was if the server lets it, and begins anew
// where it does not.
func TestImportsThatAreCutOff(t *testing.T) {
	disk := bytes.Repeat([]byte{0}, 2<<20) // and then what cannot be packed
	if _, err := rand.NewChaCha8([32]byte{}).Read(disk[512:]); err != nil {
		t.Fatal(err)
	}
	for place, make := range places {
		for _, how := range []string{"", "gz", "xz", "zst"} {
			for _, ranges := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s ranges %v", place, how, ranges), func(t *testing.T) {
					t.Parallel()
					file := packed(t, how, disk)
					s := &cutter{content: file, ranges: ranges, cuts: []int{len(file) * 2 / 3}}
					server := httptest.NewServer(s)
					t.Cleanup(server.Close)
					job := make(t, runnerconfig.Import{Disk: "u1", Size: 5 << 20, Image: &runnerconfig.DriveImage{Source: server.URL + "/disk"}})
					got := runImport(t, job)
					if is := contentOf(t, job, got.Format); got.Error != "" || !bytes.HasPrefix(is, disk) {
						t.Errorf("%+v", got)
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					switch {
					case len(s.asked) != 2:
						t.Errorf("asked for %q", s.asked)
					case ranges && (!strings.HasPrefix(s.asked[1], "bytes=") || s.sent > len(file)+len(file)/10):
						t.Errorf("asked for %q, and got %d bytes of %d", s.asked, s.sent, len(file))
					case !ranges && s.sent < len(file)+len(file)/2:
						t.Errorf("asked for %q, and got %d bytes of %d", s.asked, s.sent, len(file))
					}
				})
			}
		}
	}
}

// What unpacks to more than the disk may have is refused before it takes the storage, and
// for good.
func TestImportsOfBombs(t *testing.T) {
	const size = 1 << 20
	zeros := make([]byte, 128<<20)
	for _, how := range []string{"gz", "xz", "zst"} {
		bomb := packed(t, how, zeros)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bomb) }))
		t.Cleanup(server.Close)
		for place, make := range places {
			job := make(t, runnerconfig.Import{Disk: "u1", Size: size, Image: &runnerconfig.DriveImage{Source: server.URL + "/a"}})
			got := runImport(t, job)
			if !strings.Contains(got.Error, "it is too large: unpacked (") || !got.Final {
				t.Errorf("%s %s: %+v", how, place, got)
			}
			if err := untouched(job); err != nil {
				t.Errorf("%s %s: %v", how, place, err)
			}
			for _, d := range []string{job.Scratch, filepath.Dir(job.File)} {
				left, err := os.ReadDir(d)
				if d == "" || err == nil && (len(left) == 0 || job.Device && d != job.Scratch && len(left) == 1) {
					continue
				}
				t.Errorf("%s %s: %v are left in %s, %v", how, place, left, d, err)
			}
		}
	}
}

// No server leads to addresses of the pod or its node, nor to other schemes than those of
// the web.
func TestImportsThatAreLedAway(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the other server is asked")
		_, _ = w.Write(bytes.Repeat([]byte{7}, 8192))
	}))
	t.Cleanup(other.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(other.URL, "http://"), ":")
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for path, c := range map[string]struct{ to, says string }{
		"/file":      {"file:///etc/passwd", "which is neither http nor https"},
		"/ftp":       {"ftp://images.test/a", "which is neither http nor https"},
		"/loopback":  {other.URL + "/a", "an address of this host or its link"},
		"/mapped":    {"http://[::ffff:127.0.0.1]:" + port + "/a", "an address of this host or its link"},
		"/localhost": {"http://localhost:" + port + "/a", "is an address of this host or its link"},
		"/metadata":  {"http://169.254.169.254/latest/", "an address of this host or its link"},
		"/link":      {"http://[fe80::1]/a", "an address of this host or its link"},
		"/any":       {"http://0.0.0.0:" + port + "/a", "an address of this host or its link"},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, c.to, http.StatusFound) })
		for place, make := range places {
			job := make(t, runnerconfig.Import{Disk: "u1", Size: 1 << 20, Image: &runnerconfig.DriveImage{Source: server.URL + path}})
			got := runImport(t, job)
			if !strings.Contains(got.Error, "not allowed: ") || !strings.Contains(got.Error, c.says) {
				t.Errorf("%s %s: %+v", path, place, got)
			}
			if err := untouched(job); err != nil {
				t.Errorf("%s %s: %v", path, place, err)
			}
		}
	}
}
