package imageinspect

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// QEMU's own images of other formats, as far as they are one file, have the disk
// that they were made for.
func TestProbeImported(t *testing.T) {
	for _, c := range []struct {
		args []string
		want Format
	}{
		{[]string{"-f", "raw"}, FormatRaw},
		{[]string{"-f", "qcow2"}, FormatQcow2},
		{[]string{"-f", "vdi"}, FormatVDI},
		{[]string{"-f", "vdi", "-o", "static=on"}, FormatVDI},
		{[]string{"-f", "vmdk"}, FormatVMDK},
		{[]string{"-f", "vmdk", "-o", "subformat=streamOptimized"}, FormatVMDK},
	} {
		path := filepath.Join(t.TempDir(), "a")
		if out, err := exec.Command("qemu-img", append(append([]string{"create", "-q"}, c.args...), path, "3M")...).CombinedOutput(); err != nil {
			t.Fatalf("qemu-img (make deps installs it): %v: %s", err, out)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		format, size, err := ProbeImported(f, info.Size())
		if cerr := f.Close(); format != c.want || size != 3<<20 || err != nil || cerr != nil {
			t.Errorf("%v: %s, %d, %v", c.args, format, size, err)
		}
	}
}

// FuzzProbeImported has bounded reading as its oracle, and that nothing which names
// other files is let through.
func FuzzProbeImported(f *testing.F) {
	vmdk := make([]byte, 4096)
	copy(vmdk, "KDMV\x01\x00\x00\x00\x03\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00")
	vmdk[28], vmdk[36] = 1, 4
	copy(vmdk[512:], "# Disk DescriptorFile\nparentCID=ffffffff\nRW 2048 SPARSE \"a\"\n")
	vdi := make([]byte, 1024)
	copy(vdi[64:], "\x7f\x10\xda\xbe\x01\x00\x01\x00\x90\x01\x00\x00\x01")
	vdi[370] = 0x10
	for _, seed := range [][]byte{vmdk, vdi, []byte("QFI\xfb\x00\x00\x00\x03"), []byte("# Disk DescriptorFile"), nil} {
		f.Add(seed)
	}
	if format, size, err := ProbeImported(bytes.NewReader(vmdk), 4096); format != FormatVMDK || size != 1<<20 || err != nil {
		f.Fatal(format, size, err)
	}
	if format, size, err := ProbeImported(bytes.NewReader(vdi), 1024); format != FormatVDI || size != 1<<20 || err != nil {
		f.Fatal(format, size, err)
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		r := &counting{r: bytes.NewReader(image)}
		format, size, err := ProbeImported(r, int64(len(image)))
		if r.n > 128<<10 {
			t.Errorf("%d bytes were read", r.n)
		}
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("no reason")
			}
			return
		}
		if size <= 0 {
			t.Errorf("%s of %d bytes", format, size)
		}
		switch format {
		case FormatRaw, FormatISO9660:
			if size != int64(len(image)) {
				t.Errorf("%d of %d", size, len(image))
			}
		case FormatQcow2:
			if _, _, err := ProbeFormat(image[:min(len(image), HeaderSize)], int64(len(image))); err != nil {
				t.Error(err)
			}
		case FormatVMDK:
			if bytes.Contains(image[:min(len(image), vmdkDescriptor+vmdkDescriptorSize)], []byte("parentFileNameHint")) {
				t.Error("it has a parent")
			}
		case FormatVDI:
		default:
			t.Error(format)
		}
	})
}

// counting counts what is read.
type counting struct {
	r *bytes.Reader
	n int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(p, at)
	c.n += n
	return n, err
}

func TestReasonsOfImports(t *testing.T) {
	_, _, err := ProbeImported(bytes.NewReader([]byte("COWD"+strings.Repeat("\x00", 1000))), 1004)
	if !errors.Is(err, ErrExtents) {
		t.Error(err)
	}
}
