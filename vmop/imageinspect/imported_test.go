package imageinspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	iso := make([]byte, 17*2048)
	copy(iso[16*2048:], "\x01CD001\x01")
	qcow2 := make([]byte, 1024)
	copy(qcow2, "QFI\xfb\x00\x00\x00\x03")
	binary.BigEndian.PutUint32(qcow2[20:], 16)    // clusters
	binary.BigEndian.PutUint64(qcow2[24:], 1<<20) // the disk
	binary.BigEndian.PutUint32(qcow2[100:], 104)  // the header
	for _, seed := range [][]byte{
		vmdk, stream(vmdk, 2048), stream(vmdk, 1<<31), vdi, iso, qcow2, {0x55, 0xaa, 0, 1},
		[]byte("QFI\xfb\x00\x00\x00\x03"), []byte("# Disk DescriptorFile"), []byte("COWD"), nil,
	} {
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

// stream makes a stream of a vmdk, whose footer says how many sectors the disk has.
func stream(vmdk []byte, sectors uint64) []byte {
	out := bytes.Clone(vmdk)
	footer := bytes.Clone(vmdk[:512])
	binary.LittleEndian.PutUint64(footer[12:], sectors)
	binary.LittleEndian.PutUint64(out[56:], 1<<64-1)
	marker := make([]byte, 512)
	binary.LittleEndian.PutUint64(marker, 1) // sector
	binary.LittleEndian.PutUint32(marker[12:], 3)
	return slices.Concat(out, marker, footer, make([]byte, 512))
}

// What a stream of vmdk says at its end counts for QEMU: another size there is refused.
func TestFootersOfStreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.vmdk")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "vmdk", "-o", "subformat=streamOptimized", path, "3M").CombinedOutput(); err != nil {
		t.Fatalf("qemu-img (make deps installs it): %v: %s", err, out)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, make([]byte, -len(made)&511)...)
	for sectors, want := range map[uint64]error{6144: nil, 1 << 31: ErrInvalidHeader} {
		image := stream(made, sectors)
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("qemu-img", "info", path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), fmt.Sprintf("(%d bytes)", sectors*512)) {
			t.Fatalf("QEMU does not go by the footer: %v: %s", err, out)
		}
		if _, size, err := ProbeImported(bytes.NewReader(image), int64(len(image))); !errors.Is(err, want) || want == nil && size != 3<<20 {
			t.Errorf("%d sectors at the end: %d, %v", sectors, size, err)
		}
	}
	if _, _, err := ProbeImported(bytes.NewReader(stream(made, 6144)[:len(made)]), int64(len(made))); !errors.Is(err, ErrInvalidHeader) {
		t.Errorf("without a footer: %v", err)
	}
}

func TestReasonsOfImports(t *testing.T) {
	_, _, err := ProbeImported(bytes.NewReader([]byte("COWD"+strings.Repeat("\x00", 1000))), 1004)
	if !errors.Is(err, ErrExtents) {
		t.Error(err)
	}
}
