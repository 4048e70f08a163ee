package imageinspect

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// patchwork is a disk with all that an image treats differently: data that
// compresses, data that does not, zeros, and an odd end.
func patchwork(t *testing.T) (path string, content []byte) {
	t.Helper()
	content = make([]byte, 5*mebibyte+512)
	random := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < len(content); at += 64 << 10 {
		piece := content[at:min(at+64<<10, len(content))]
		switch random.IntN(4) {
		case 0:
			for i := range piece {
				piece[i] = byte(random.Uint32())
			}
		case 1:
			copy(piece, bytes.Repeat([]byte("patchwork "), len(piece)/10))
		case 2:
			piece[random.IntN(len(piece))] = 1
		}
	}
	path = filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func openQcow2(t *testing.T, path string) (*qcow2Reader, error) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseQcow2Header(b, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return newQcow2Reader(bytes.NewReader(b), int64(len(b)), h)
}

// The reader gives what qemu-img put into the image, byte for byte.
func TestQcow2ReaderReadsQemuImgsImages(t *testing.T) {
	raw, want := patchwork(t)
	for _, args := range []string{
		"-o cluster_size=64k",
		"-o compat=0.10",
		"-o cluster_size=512",
		"-o cluster_size=2M",
		"-o preallocation=metadata",
		"-c",
		"-c -o cluster_size=512",
		"-c -o cluster_size=2M",
		"-c -o compat=0.10",
	} {
		t.Run(args, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image.qcow2")
			tool(t, "qemu-img", append(append([]string{"convert", "-f", "raw", "-O", "qcow2"}, strings.Fields(args)...), raw, path)...)
			q, err := openQcow2(t, path)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(want))
			if n, err := q.ReadAt(got, 0); err != nil || !bytes.Equal(got[:n], want) {
				t.Errorf("%d of %d bytes are read, or other ones: %v", n, len(want), err)
			}
			// Pieces that begin and end anywhere.
			random := rand.New(rand.NewPCG(3, 4))
			for range 200 {
				at := random.IntN(len(want))
				piece := make([]byte, random.IntN(100_000))
				n, err := q.ReadAt(piece, int64(at))
				if atEnd := at+len(piece) > len(want); atEnd != errors.Is(err, io.EOF) || err != nil && !atEnd {
					t.Fatalf("%d bytes at %d: %v", len(piece), at, err)
				}
				if !bytes.Equal(piece[:n], want[at:at+n]) || n < min(len(piece), len(want)-at) {
					t.Fatalf("%d bytes at %d: %d are read, or other ones", len(piece), at, n)
				}
			}
		})
	}
}

func TestQcow2ReaderSaysWhatItCannotRead(t *testing.T) {
	raw, _ := patchwork(t)
	dir := t.TempDir()
	for _, c := range []struct {
		args, want string
	}{
		{"-o extended_l2=on", "extended L2"},
		{"-o data_file=" + filepath.Join(dir, "data"), "external data file"},
		{"-o compression_type=zstd -c", "zstd"},
	} {
		t.Run(c.want, func(t *testing.T) {
			path := filepath.Join(dir, "image.qcow2")
			tool(t, "qemu-img", append(append([]string{"convert", "-f", "raw", "-O", "qcow2"}, strings.Fields(c.args)...), raw, path)...)
			q, err := openQcow2(t, path)
			if err == nil {
				_, err = io.Copy(io.Discard, io.NewSectionReader(q, 0, 5*mebibyte))
			}
			if !errors.Is(err, errNotExamined) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to name %s", err, c.want)
			}
			if report := inspectPath(t, path); report.Format != FormatQcow2 || report.VirtualSize != 5*mebibyte+512 {
				t.Errorf("report: %+v", report)
			}
		})
	}
}
