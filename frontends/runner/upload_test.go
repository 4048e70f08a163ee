package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/transfer"
)

// uploads is a pod that takes an upload, and who uploads.
type uploads struct {
	*testing.T
	dir    string
	job    runnerconfig.Import
	client *transfer.Client
}

func newUploads(t *testing.T, size int64) *uploads {
	t.Helper()
	u := &uploads{T: t, dir: t.TempDir()}
	keys := t.TempDir()
	data, err := displaycert.Make(&reconcile.Certificate{CommonName: "test", Hosts: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(keys, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, err := tunnel.ParseIdentity(data["tls.crt"], data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	u.job = runnerconfig.Import{Disk: "u1", File: filepath.Join(u.dir, "disk.img"), Size: size, Upload: &runnerconfig.ImportUpload{Port: address.Port, Keys: keys, WaitSeconds: 60}}
	u.client = &transfer.Client{Address: address.String(), Own: own, Pause: func(ctx context.Context, _ int) error {
		select { // until the pod listens
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
			return nil
		}
	}}
	t.Cleanup(u.client.Close)
	return u
}

// run has the pod take an upload, and returns its last words.
func (u *uploads) run(content []byte) (said runnerconfig.Imported, uploaded error) {
	u.Helper()
	text, err := u.job.Encode()
	if err != nil {
		u.Fatal(err)
	}
	last := filepath.Join(u.T.TempDir(), "last words")
	ended := make(chan int, 1)
	var out bytes.Buffer
	go func() { ended <- importDisk(text, last, &out, &out) }()
	for { // until it listens
		if _, uploaded = u.client.State(u.Context()); uploaded == nil {
			break
		}
		select {
		case code := <-ended:
			u.Fatalf("it has ended: %d %s", code, out.String())
		default:
		}
	}
	uploaded = u.client.Upload(u.Context(), bytes.NewReader(content), int64(len(content)), func(int64) {})
	code := <-ended
	data, err := os.ReadFile(last)
	if said = runnerconfig.ParseImported(string(data)); err != nil || (code == 0) != (said.Error == "") {
		u.Errorf("exit code %d, %+v, %v", code, said, err)
	}
	return said, uploaded
}

func tool(t *testing.T, in []byte, name string, args ...string) []byte {
	t.Helper()
	var out, problem bytes.Buffer
	c := exec.CommandContext(t.Context(), name, args...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &out, &problem
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, problem.String())
	}
	return out.Bytes()
}

// Whatever is uploaded is judged as an image that is fetched, and nothing of it is left
// but the disk.
func TestUploadedImages(t *testing.T) {
	raw := make([]byte, 3<<20)
	copy(raw, "\x00boot sector")
	copy(raw[2<<20:], bytes.Repeat([]byte{1}, 1<<20))
	dir := t.TempDir()
	source := filepath.Join(dir, "a.raw")
	if err := os.WriteFile(source, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(format string, options ...string) []byte {
		to := filepath.Join(dir, "a."+format)
		tool(t, nil, "qemu-img", append([]string{"convert", "-O", format, source, to}, options...)...)
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	backed := filepath.Join(dir, "backed")
	tool(t, nil, "qemu-img", "create", "-q", "-f", "qcow2", "-b", source, "-F", "raw", backed)
	overlay, err := os.ReadFile(backed)
	if err != nil {
		t.Fatal(err)
	}
	bomb := tool(t, make([]byte, 64<<20), "gzip", "-9")
	qcow2 := as("qcow2")
	for name, c := range map[string]struct {
		content []byte
		size    int64
		keep    bool
		format  string
		says    string
	}{
		"raw":                  {content: raw, format: "raw"},
		"qcow2":                {content: qcow2, format: "qcow2"},
		"gzip":                 {content: tool(t, raw, "gzip"), format: "raw"},
		"xz":                   {content: tool(t, qcow2, "xz"), format: "qcow2"},
		"zstd":                 {content: tool(t, raw, "zstd"), format: "raw"},
		"vmdk":                 {content: as("vmdk"), format: "qcow2"},
		"vdi":                  {content: as("vdi"), format: "qcow2"},
		"an image that's kept": {content: qcow2, keep: true, format: "qcow2"},
		"an overlay":           {content: overlay, says: "backing"},
		"a web page":           {content: []byte("<!doctype html>"), says: "web page"},
		"a bomb":               {content: bomb, size: 1 << 20, keep: true, says: "too large"},
		"a larger disk":        {content: qcow2, size: 1 << 20, says: "no disk is made smaller"},
		"a larger file":        {content: append(bytes.Clone(raw), raw...), size: 4 << 20, says: "no disk is made smaller"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUploads(t, 4<<20)
			if u.job.Keep = c.keep; c.size > 0 {
				u.job.Size = c.size
			}
			said, err := u.run(c.content)
			if err != nil {
				t.Errorf("the upload: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(u.dir, "*"))
			if c.says != "" {
				if !strings.Contains(said.Error, c.says) || len(left) > 0 {
					t.Errorf("%+v, and %v is left, want %q", said, left, c.says)
				}
				return
			}
			if said.Error != "" || said.Format != c.format || len(left) != 2 { // with the record
				t.Fatalf("%+v, %v", said, left)
			}
			got := filepath.Join(t.TempDir(), "got")
			tool(t, nil, "qemu-img", "convert", "-f", c.format, "-O", "raw", u.job.File, got)
			disk, err := os.ReadFile(got)
			if err != nil || !bytes.HasPrefix(disk, raw) {
				t.Errorf("%d bytes: %v", len(disk), err)
			}
		})
	}
}

// An upload has the checksum that the disk asks for, or it is none.
func TestUploadWithChecksum(t *testing.T) {
	content := bytes.Repeat([]byte{0, 1, 2, 3}, 1<<18)
	u := newUploads(t, 1<<20)
	u.job.Upload.Checksum = fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	if said, err := u.run(append([]byte{9}, content[1:]...)); err != nil || !strings.Contains(said.Error, "another image, or damaged") {
		t.Errorf("another one: %+v, %v", said, err)
	}
	if said, err := u.run(content); err != nil || said.Error != "" {
		t.Errorf("%+v, %v", said, err)
	}
}

// Nobody uploads: the pod ends, and nothing is left, not even what a former pod had of an
// upload, which is no image.
func TestNobodyUploads(t *testing.T) {
	u := newUploads(t, 1<<20)
	u.job.Upload.WaitSeconds = 1
	part := u.job.File + ".import.upload"
	if err := os.WriteFile(part, []byte("a part"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := u.job.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	last := filepath.Join(t.TempDir(), "last words")
	code := importDisk(text, last, &out, &out)
	data, err := os.ReadFile(last)
	if err != nil || code == 0 || !strings.Contains(string(data), "nobody has come within 1s") {
		t.Errorf("%d %s %v", code, data, err)
	}
	if left, _ := filepath.Glob(filepath.Join(u.dir, "*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := os.Lstat(part); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
