package imagesource

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
)

type fataler interface {
	Helper()
	Fatal(...any)
}

// pack packs as the usual programs do.
func pack(t fataler, kind compression, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	var err error
	switch kind {
	case unpackedAlready:
		return content
	case gzipped:
		w = gzip.NewWriter(&out)
	case xzPacked:
		w, err = xz.WriterConfig{BlockSize: 1 << 20, DictCap: 1 << 16}.NewWriter(&out)
	case zstdPacked:
		w, err = zstd.NewWriter(&out)
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

// qemuImg runs QEMU's tool.
func qemuImgTool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("qemu-img", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-img (make deps installs it): %v: %s", err, out)
	}
}

func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.img") // whatever it is
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every format, however it is packed and whatever it is called, gives the same disk.
func TestFormats(t *testing.T) {
	disk := diskOf(2 << 20)
	raw := write(t, disk)
	iso := make([]byte, 64<<10)
	copy(iso[16*2048:], "\x01CD001\x01")
	for _, format := range []imageinspect.Format{imageinspect.FormatRaw, imageinspect.FormatQcow2, imageinspect.FormatVMDK, imageinspect.FormatVDI, imageinspect.FormatISO9660} {
		content, want, gives := disk, disk, format
		switch format {
		case imageinspect.FormatISO9660:
			content, want = iso, iso
		case imageinspect.FormatRaw:
		default:
			path := filepath.Join(t.TempDir(), "a")
			args := []string{"convert", "-f", "raw", "-O", string(format)}
			if format == imageinspect.FormatVMDK {
				args = append(args, "-o", "subformat=streamOptimized")
			}
			qemuImgTool(t, append(args, raw, path)...)
			var err error
			if content, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
			gives = imageinspect.FormatQcow2
		}
		for _, kind := range []compression{unpackedAlready, gzipped, xzPacked, zstdPacked} {
			packed := pack(t, kind, content)
			source := write(t, packed)
			expect, dir := want, t.TempDir()
			to := filepath.Join(dir, "image")
			r, err := Fetch(t.Context(), Source{Location: source, Checksum: sha256Of(packed)}, to, testOptions())
			if err != nil || r.Format != gives || r.VirtualSize != int64(len(want)) {
				t.Errorf("%s %s: %+v, %v", format, kind, r, err)
				continue
			}
			if names := files(t, dir); len(names) != 1 {
				t.Errorf("%s %s left %v", format, kind, names)
			}
			if gives == imageinspect.FormatQcow2 && format != imageinspect.FormatQcow2 {
				back := filepath.Join(dir, "raw")
				qemuImgTool(t, "convert", "-f", "qcow2", "-O", "raw", to, back)
				to = back
			} else if format == imageinspect.FormatQcow2 {
				expect = content
			}
			if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, expect) {
				t.Errorf("%s %s: %d bytes, %v", format, kind, len(got), err)
			}
			if after, err := os.ReadFile(source); err != nil || !bytes.Equal(after, packed) {
				t.Errorf("%s %s: the source is another: %v", format, kind, err)
			}
		}
	}
}

// A file of zeros takes no room.
func TestResultHasHoles(t *testing.T) {
	content := make([]byte, 8<<20)
	content[0], content[5<<20], content[len(content)-1] = 1, 2, 3
	to := filepath.Join(t.TempDir(), "image")
	if _, err := Fetch(t.Context(), Source{Location: write(t, pack(t, gzipped, content))}, to, testOptions()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Size() != int64(len(content)) || filecopy.Allocated(info) > 1<<20 {
		t.Errorf("%d bytes, %d allocated, %v", info.Size(), filecopy.Allocated(info), err)
	}
}

// What refers to other files, needs keys, is cut off or is larger than allowed is no
// image, and leaves nothing.
func TestRefusedImages(t *testing.T) {
	disk := diskOf(100_000)
	dir := t.TempDir()
	make := func(name string, args ...string) []byte {
		path := filepath.Join(dir, name)
		qemuImgTool(t, append(append([]string{"create", "-q"}, args[:len(args)-1]...), path, args[len(args)-1])...)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	base := make("base.vmdk", "-f", "vmdk", "1M")
	vdi := make("a.vdi", "-f", "vdi", "1M")
	changed := func(b []byte, at int, to ...byte) []byte {
		out := bytes.Clone(b)
		copy(out[at:], to)
		return out
	}
	big := make("big.vdi", "-f", "vdi", "1G")
	secret := changed(base, 512, []byte("# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=00000001\nRW 2048 SPARSE \"a.vmdk\"\nparentFileNameHint=\"/etc/passwd\"\n")...)
	packed := pack(t, gzipped, disk)
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"backing", make("b.qcow2", "-f", "qcow2", "-b", "base.vmdk", "-F", "vmdk", "1M"), "qcow2 image has a backing file"},
		{"data file", make("d.qcow2", "-f", "qcow2", "-o", "data_file="+filepath.Join(dir, "data"), "1M"), "qcow2 image has an external data file"},
		{"descriptor", make("f.vmdk", "-f", "vmdk", "-o", "subformat=monolithicFlat", "1M"), "the image consists of several files: the vmdk names the files with its data"},
		{"extent", changed(base, 28, 0, 0, 0, 0, 0, 0, 0, 0), "the image consists of several files: the vmdk is one of them"},
		{"no data", changed(base, 12, 0, 0, 0, 0, 0, 0, 0, 0), "the image consists of several files: the vmdk has no data of its own"},
		{"far descriptor", changed(base, 28, 0, 0, 0, 0, 0, 0, 0, 0x7f), "the vmdk's descriptor is beyond its end"},
		{"parent", secret, "the image continues another one: the vmdk has a parent"},
		{"vdi parent", changed(vdi, 440, 1), "the image continues another one: the vdi is a differencing image"},
		{"vdi difference", changed(vdi, 76, 4), "the image continues another one: the vdi is a differencing image"},
		{"vhdx", append([]byte("vhdxfile"), disk...), "unsupported image format: vhdx: convert it to qcow2 with qemu-img"},
		{"short gzip", cut(packed), "it cannot be unpacked (gzip): its end is missing"},
		{"short zstd", cut(pack(t, zstdPacked, disk)), "it cannot be unpacked (zstd): its end is missing"},
		{"short xz", cut(pack(t, xzPacked, disk)), "it cannot be unpacked (xz): its end is missing"},
		{"damaged gzip", changed(packed, len(packed)-8, 1, 2, 3, 4), "it cannot be unpacked (gzip): gzip: invalid checksum"},
		{"twice", pack(t, zstdPacked, packed), "it is compressed (gzip)"},
		{"large raw", diskOf(4<<20 + 1), "it is too large: its disk has 4 MiB, and 4 MiB are as much as is taken"},
		{"large vdi", big, "it is too large: its disk has 1 GiB, and 4 MiB are as much as is taken"},
		{"text", []byte("hello\n"), "it is text, and no raw or qcow2 image"},
		{"empty", nil, "invalid image header: it is empty"},
		{"zip", append([]byte("PK\x03\x04"), disk...), "it is compressed (zip)"},
	} {
		to := filepath.Join(t.TempDir(), "image")
		o := testOptions()
		o.MaxSize = 4 << 20
		_, err := Fetch(t.Context(), Source{Location: write(t, c.content)}, to, o)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if names := files(t, filepath.Dir(to)); len(names) != 0 {
			t.Errorf("%s left %v", c.name, names)
		}
	}
}

// A bomb is refused for its size, before it has taken the storage or the memory.
func TestBombs(t *testing.T) {
	zero := make([]byte, 64<<20)
	const limit = 1 << 20
	for _, kind := range []compression{gzipped, xzPacked, zstdPacked} {
		bomb := pack(t, kind, zero)
		source := write(t, bomb)
		to := filepath.Join(t.TempDir(), "image")
		o := testOptions()
		o.MaxSize = limit
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Fetch(t.Context(), Source{Location: source}, to, o)
		runtime.ReadMemStats(&after)
		if want := fmt.Sprintf("it is too large: unpacked (%s) it has more than 1 MiB, which is as much as is taken", kind); err == nil || err.Error() != want {
			t.Errorf("%s: %v", kind, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("%s took %d bytes", kind, took)
		}
		if names := files(t, filepath.Dir(to)); len(names) != 0 {
			t.Errorf("%s left %v", kind, names)
		}
	}
	// A small file that wants gigabytes of memory.
	content := pack(t, xzPacked, diskOf(1000))
	at := bytes.Index(content, []byte{0x21, 1})
	if at < 0 {
		t.Fatal("no filter")
	}
	content[at+2] = 40
	_, err := Fetch(t.Context(), Source{Location: write(t, content)}, filepath.Join(t.TempDir(), "image"), testOptions())
	if err == nil || err.Error() != "it cannot be unpacked (xz): unpacking it would take more than 128 MiB of memory" {
		t.Error(err)
	}
	// The same of zstd: a frame (RFC 8878, 3.1.1) with a window of 1 GiB.
	frame := binary.LittleEndian.AppendUint32(nil, 0xfd2fb528)
	frame = append(frame, 0, 20<<3, 3, 0, 0)
	_, err = Fetch(t.Context(), Source{Location: write(t, append(frame, bytes.Repeat([]byte{1}, 100)...))}, filepath.Join(t.TempDir(), "image"), testOptions())
	if err == nil || !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Error(err)
	}
}

// Several streams with padding, as xz and pixz write them.
func TestCheckXZ(t *testing.T) {
	a, b := diskOf(3<<20+5), diskOf(77)
	one, two := pack(t, xzPacked, a), pack(t, xzPacked, b)
	all := append(append(bytes.Clone(one), make([]byte, 8)...), append(two, make([]byte, 4)...)...)
	if n, err := checkXZ(bytes.NewReader(all), int64(len(all))); err != nil || n != uint64(len(a)+len(b)) {
		t.Errorf("%d, %v", n, err)
	}
	to := filepath.Join(t.TempDir(), "image")
	if _, err := Fetch(t.Context(), Source{Location: write(t, all)}, to, testOptions()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, append(a, b...)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// FuzzUnpack has bounded memory and size as its oracle: whatever a packed file says.
func FuzzUnpack(f *testing.F) {
	for _, kind := range []compression{gzipped, xzPacked, zstdPacked} {
		b, err := os.ReadFile("doc.go")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(pack(f, kind, b))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		source, to := filepath.Join(dir, "source"), filepath.Join(dir, "image")
		if err := os.WriteFile(source, content, 0o600); err != nil {
			t.Fatal(err)
		}
		o := testOptions()
		o.MaxSize = 1 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := os.Open(source)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		run := &fetch{o: o, to: to}
		_, err = run.unpack(t.Context(), file)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4*maxWindow {
			t.Errorf("%d bytes for %d", took, len(content))
		}
		info, serr := os.Stat(run.unpacked())
		if serr == nil && info.Size() > o.MaxSize+bufferSize {
			t.Errorf("%d bytes, %v", info.Size(), err)
		}
		if err := discard(run.unpacked()); err != nil {
			t.Fatal(err)
		}
	})
}
