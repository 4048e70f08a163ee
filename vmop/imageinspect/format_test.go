package imageinspect

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

const mebibyte = 1 << 20

// What qemu-img makes is what ProbeFormat has to tell apart.
func TestProbeFormatOfQemuImgsImages(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base.qcow2")
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", base, "3M")
	for _, c := range []struct {
		name   string
		args   []string
		format Format
		err    error
	}{
		{"raw", []string{"-f", "raw"}, FormatRaw, nil},
		{"qcow2", []string{"-f", "qcow2"}, FormatQcow2, nil},
		{"qcow2 v2", []string{"-f", "qcow2", "-o", "compat=0.10"}, FormatQcow2, nil},
		{"qcow2 smallest clusters", []string{"-f", "qcow2", "-o", "cluster_size=512"}, FormatQcow2, nil},
		{"qcow2 largest clusters", []string{"-f", "qcow2", "-o", "cluster_size=2M"}, FormatQcow2, nil},
		{"qcow2 zstd", []string{"-f", "qcow2", "-o", "compression_type=zstd"}, FormatQcow2, nil},
		{"qcow2 subclusters", []string{"-f", "qcow2", "-o", "extended_l2=on"}, FormatQcow2, nil},
		{"qcow2 preallocated", []string{"-f", "qcow2", "-o", "preallocation=metadata"}, FormatQcow2, nil},
		{"qcow2 on another", []string{"-f", "qcow2", "-F", "qcow2", "-b", base}, FormatQcow2, ErrBackingFile},
		{"qcow2 on a secret", []string{"-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/shadow"}, FormatQcow2, ErrBackingFile},
		{"qcow2 data file", []string{"-f", "qcow2", "-o", "data_file=" + filepath.Join(dir, "data")}, FormatQcow2, ErrDataFile},
		{"qcow2 aes", []string{"-f", "qcow2", "--object", "secret,id=s,data=x", "-o", "encrypt.format=aes,encrypt.key-secret=s"}, FormatQcow2, ErrEncrypted},
		{"qcow", []string{"-f", "qcow"}, FormatQcow, ErrUnsupportedFormat},
		{"vmdk", []string{"-f", "vmdk"}, FormatVMDK, ErrUnsupportedFormat},
		{"vdi", []string{"-f", "vdi"}, FormatVDI, ErrUnsupportedFormat},
		{"vhdx", []string{"-f", "vhdx"}, FormatVHDX, ErrUnsupportedFormat},
		{"vpc", []string{"-f", "vpc"}, FormatVPC, ErrUnsupportedFormat},
		{"qed", []string{"-f", "qed"}, FormatQED, ErrUnsupportedFormat},
		{"parallels", []string{"-f", "parallels"}, FormatParallels, ErrUnsupportedFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			args := append(append([]string{"create", "-q"}, c.args...), path, "3M")
			tool(t, "qemu-img", args...)
			b, size := header(t, path)
			format, virtualSize, err := ProbeFormat(b, size)
			if format != c.format || !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("got %s, %v; want %s, %v", format, err, c.format, c.err)
			}
			if want := int64(3 * mebibyte); c.err == nil && virtualSize != want {
				t.Errorf("virtual size %d, want %d", virtualSize, want)
			}
			report := inspectPath(t, path)
			if report.Format != c.format || (report.Refused != "") != (c.err != nil) {
				t.Errorf("the report says %s, refused: %q", report.Format, report.Refused)
			}
		})
	}
}

// qcow2Bytes is the header of an empty version 3 image of 1 MiB.
func qcow2Bytes(change func(b []byte)) []byte {
	b := make([]byte, 4*65536)
	be := binary.BigEndian
	copy(b, qcow2Magic)
	be.PutUint32(b[4:], 3)
	be.PutUint32(b[20:], 16)
	be.PutUint64(b[24:], mebibyte)
	be.PutUint32(b[36:], 1)
	be.PutUint64(b[40:], 3*65536)
	be.PutUint32(b[100:], 112)
	if change != nil {
		change(b)
	}
	return b
}

func TestProbeFormatRefusesQcow2(t *testing.T) {
	be := binary.BigEndian
	for _, c := range []struct {
		name   string
		change func(b []byte)
		err    error
	}{
		{"nothing", func([]byte) {}, nil},
		{"dirty", func(b []byte) { b[79] = 1 }, nil},
		{"corrupt", func(b []byte) { b[79] = 2 }, ErrIncompatibleFeatures},
		{"data file", func(b []byte) { b[79] = 4 }, ErrDataFile},
		{"unknown feature", func(b []byte) { b[72] = 0x80 }, ErrIncompatibleFeatures},
		{"compression type without the bit", func(b []byte) { b[104] = 1 }, nil},
		{"unknown compression type", func(b []byte) { b[79], b[104] = 8, 7 }, ErrInvalidHeader},
		{"compression type beyond the header", func(b []byte) { b[79], b[103], b[104] = 8, 104, 1 }, ErrInvalidHeader},
		{"backing file", func(b []byte) { be.PutUint64(b[8:], 112); be.PutUint32(b[16:], 5) }, ErrBackingFile},
		{"backing file without a name", func(b []byte) { be.PutUint64(b[8:], 112) }, ErrBackingFile},
		{"backing name without an offset", func(b []byte) { be.PutUint32(b[16:], 5) }, ErrBackingFile},
		{"backing name too long", func(b []byte) { be.PutUint64(b[8:], 112); be.PutUint32(b[16:], 1024) }, ErrInvalidHeader},
		{"luks", func(b []byte) { b[35] = 2 }, ErrEncrypted},
		{"unknown encryption", func(b []byte) { b[35] = 9 }, ErrEncrypted},
		{"version 0", func(b []byte) { b[7] = 0 }, ErrInvalidHeader},
		{"version 4", func(b []byte) { b[7] = 4 }, ErrInvalidHeader},
		{"clusters too small", func(b []byte) { b[23] = 8 }, ErrInvalidHeader},
		{"clusters too large", func(b []byte) { b[23] = 22 }, ErrInvalidHeader},
		{"short header", func(b []byte) { b[103] = 96 }, ErrInvalidHeader},
		{"negative size", func(b []byte) { b[24] = 0x80 }, ErrInvalidHeader},
		{"more than the L1 table covers", func(b []byte) { b[24] = 0x10 }, ErrInvalidHeader},
		{"huge L1 table", func(b []byte) { be.PutUint32(b[36:], 0xffffffff) }, ErrInvalidHeader},
		{"L1 table beyond the file", func(b []byte) { be.PutUint64(b[40:], 4*65536) }, ErrInvalidHeader},
		{"L1 table far beyond the file", func(b []byte) { be.PutUint64(b[40:], 0xffffffffffff0000) }, ErrInvalidHeader},
		{"L1 table askew", func(b []byte) { be.PutUint64(b[40:], 1000) }, ErrInvalidHeader},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := qcow2Bytes(c.change)
			format, size, err := ProbeFormat(b, int64(len(b)))
			if format != FormatQcow2 || !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("got %s, %v; want qcow2, %v", format, err, c.err)
			}
			if (size != 0) == (err != nil) {
				t.Errorf("size %d with the error %v", size, err)
			}
		})
	}
}

func TestProbeFormatOfShortFiles(t *testing.T) {
	for size := range int64(HeaderSize) {
		b := qcow2Bytes(nil)[:size]
		format, _, err := ProbeFormat(b, size)
		switch {
		case size < 4 && (format != FormatRaw || err != nil):
			t.Errorf("%d bytes: got %s, %v", size, format, err)
		case size >= 4 && (format != FormatQcow2 || !errors.Is(err, ErrInvalidHeader)):
			t.Errorf("%d bytes: got %s, %v", size, format, err)
		}
	}
	for _, c := range []struct {
		header int
		size   int64
	}{{0, 1}, {HeaderSize - 1, HeaderSize}, {100, 1 << 40}, {0, -1}} {
		if _, _, err := ProbeFormat(make([]byte, c.header), c.size); !errors.Is(err, ErrInvalidHeader) {
			t.Errorf("%d bytes of %d are accepted: %v", c.header, c.size, err)
		}
	}
}

// What is accepted as qcow2 refers to nothing outside of the image, and what is
// accepted at all depends on the first HeaderSize bytes only.
func TestProbeFormatAcceptsOnlySelfContainedImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := qcow2Bytes(nil)
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			b[rapid.IntRange(0, 120).Draw(t, "at")] = rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 2, 4, 8, 16, 255}), rapid.Byte()).Draw(t, "byte")
		}
		checkProbe(t, b, int64(len(b)))
	})
}

func checkProbe(t interface{ Fatalf(string, ...any) }, b []byte, size int64) {
	format, virtualSize, err := ProbeFormat(b, size)
	shortFormat, shortSize, shortErr := ProbeFormat(b[:min(len(b), HeaderSize)], size)
	if format != shortFormat || virtualSize != shortSize || (err == nil) != (shortErr == nil) {
		t.Fatalf("more than the header decides: %s %d %v, %s %d %v", format, virtualSize, err, shortFormat, shortSize, shortErr)
	}
	if err != nil {
		if virtualSize != 0 {
			t.Fatalf("size %d with the error %v", virtualSize, err)
		}
		return
	}
	switch format {
	case FormatRaw:
		if virtualSize != size {
			t.Fatalf("raw of %d bytes with virtual size %d", size, virtualSize)
		}
	case FormatQcow2:
		if virtualSize < 0 {
			t.Fatalf("negative virtual size")
		}
		for _, field := range []struct{ from, to int }{{8, 20}, {32, 36}} {
			for _, c := range b[field.from:field.to] {
				if c != 0 {
					t.Fatalf("accepted with a backing file or encryption: % x", b[:112])
				}
			}
		}
		if b[7] == 3 && binary.BigEndian.Uint64(b[72:])&^uint64(1|8|16) != 0 {
			t.Fatalf("accepted with incompatible features: % x", b[72:80])
		}
	default:
		t.Fatalf("accepted as %s", format)
	}
}

func FuzzProbeFormat(f *testing.F) {
	f.Add([]byte{}, int64(0))
	f.Add(qcow2Bytes(nil)[:HeaderSize], int64(4*65536))
	f.Add(qcow2Bytes(func(b []byte) { b[7] = 2 })[:HeaderSize], int64(4*65536))
	f.Add([]byte("KDMV"), int64(4))
	f.Fuzz(func(t *testing.T, b []byte, size int64) { checkProbe(t, b, size) })
}
