package imageinspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fileSystems makes one file of each file system that the usual tools make.
func fileSystems(t *testing.T) map[string]string {
	t.Helper()
	made := map[string]string{}
	add := func(name string, size int64, command ...string) {
		path := sparse(t, size)
		tool(t, command[0], append(command[1:], path)...)
		made[name] = path
	}
	add("ext2", 8*mebibyte, "mke2fs", "-q", "-t", "ext2", "-L", "second")
	add("ext3", 8*mebibyte, "mke2fs", "-q", "-t", "ext3", "-L", "")
	add("ext4", 8*mebibyte, "mke2fs", "-q", "-t", "ext4", "-L", "sixteen letters!", "-U", "01234567-89ab-cdef-0123-456789abcdef")
	add("fat12", 1*mebibyte, "mkfs.vfat", "-F", "12", "-n", "SMALL")
	add("fat16", 16*mebibyte, "mkfs.vfat", "-F", "16", "-n", "EFI SYSTEM")
	add("fat32", 40*mebibyte, "mkfs.vfat", "-F", "32", "-i", "12345678")
	add("swap", 1*mebibyte, "mkswap", "-q", "-L", "swap")
	return made
}

func TestFileSystemsAreIdentifiedAsByBlkid(t *testing.T) {
	for name, path := range fileSystems(t) {
		want := blkid(t, path)
		report := inspectPath(t, path)
		if report.FileSystem == nil {
			t.Errorf("%s is not recognised: %+v", name, report)
			continue
		}
		if diff := cmp.Diff(want, *report.FileSystem); diff != "" {
			t.Errorf("%s: -blkid +inspect\n%s", name, diff)
		}
		if report.PartitionTable != nil || report.NoCloud != nil || report.Notes != nil {
			t.Errorf("%s: unexpected findings: %+v", name, report)
		}
	}
}

// partitioned is a GPT disk with two file systems and an unknown partition.
func partitioned(t *testing.T) (disk string, fs map[string]string) {
	t.Helper()
	disk = sparse(t, 40*mebibyte)
	fs = fileSystems(t)
	tool(t, "sgdisk", "-o", "-U", "11111111-2222-3333-4444-555555555555",
		"-n", "1:1M:+16M", "-t", "1:ef00", "-c", "1:EFI System", "-u", "1:AAAAAAAA-0000-0000-0000-000000000001",
		"-n", "3:20M:+8M", "-c", "3:Würzel", "-u", "3:AAAAAAAA-0000-0000-0000-000000000003",
		"-n", "4:30M:+1M", "-t", "4:8e00", "-c", "4:", "-u", "4:AAAAAAAA-0000-0000-0000-000000000004", disk)
	place(t, disk, fs["fat16"], 1*mebibyte)
	place(t, disk, fs["ext4"], 20*mebibyte)
	return disk, fs
}

func TestPartitionedDisk(t *testing.T) {
	disk, fs := partitioned(t)
	efi, root := blkid(t, fs["fat16"]), blkid(t, fs["ext4"])
	want := &PartitionTable{
		Type: "gpt", ID: "11111111-2222-3333-4444-555555555555", SectorSize: 512,
		Partitions: []Partition{
			{Index: 1, Type: "C12A7328-F81F-11D2-BA4B-00A0C93EC93B", Label: "EFI System", UUID: "AAAAAAAA-0000-0000-0000-000000000001",
				Start: mebibyte, Size: 16 * mebibyte, FileSystem: &efi},
			{Index: 3, Type: "0FC63DAF-8483-4772-8E79-3D69D8477DE4", Label: "Würzel", UUID: "AAAAAAAA-0000-0000-0000-000000000003",
				Start: 20 * mebibyte, Size: 8 * mebibyte, FileSystem: &root},
			{Index: 4, Type: "E6D6D379-F507-44C2-A23C-238F2A3DF928", UUID: "AAAAAAAA-0000-0000-0000-000000000004",
				Start: 30 * mebibyte, Size: mebibyte},
		},
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"raw", []string{"-O", "raw"}},
		{"qcow2", []string{"-O", "qcow2"}},
		{"qcow2 compressed", []string{"-O", "qcow2", "-c"}},
		{"qcow2 v2", []string{"-O", "qcow2", "-o", "compat=0.10"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			tool(t, "qemu-img", append(append([]string{"convert", "-f", "raw"}, c.args...), disk, path)...)
			report := inspectPath(t, path)
			if diff := cmp.Diff(want, report.PartitionTable); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if report.Path != path || report.VirtualSize != 40*mebibyte || report.Refused != "" || report.Notes != nil || report.FileSystem != nil {
				t.Errorf("report: %+v", report)
			}
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil {
				t.Fatal(err)
			}
			if report.AllocatedSize != st.Blocks*512 || report.FileSize != st.Size || report.AllocatedSize >= 40*mebibyte {
				t.Errorf("%d bytes allocated of %d, want %d of %d", report.AllocatedSize, report.FileSize, st.Blocks*512, st.Size)
			}
		})
	}
}

func TestQcow2IsDescribed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.qcow2")
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/shadow", "-o", "cluster_size=128k", path, "1G")
	report := inspectPath(t, path)
	if diff := cmp.Diff(&Qcow2{Version: 3, ClusterSize: 128 << 10, BackingFile: "/etc/shadow"}, report.Qcow2); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if report.VirtualSize != 1<<30 || !strings.Contains(report.Refused, "backing file") {
		t.Errorf("report: %+v", report)
	}
	if diff := cmp.Diff([]string{"qcow2: contents not examined: the image has a backing file"}, report.Notes); diff != "" {
		t.Errorf("notes: -want +got\n%s", diff)
	}
	if b, err := json.Marshal(report); err != nil || !strings.Contains(string(b), `"backingFile":"/etc/shadow"`) {
		t.Errorf("JSON: %s, %v", b, err)
	}
}

// An MBR with a primary partition and two logical ones, and one whose chain of
// logical partitions is a circle.
func TestMBR(t *testing.T) {
	entry := func(b []byte, at int, kind byte, first, sectors uint32) {
		b[at+4] = kind
		binary.LittleEndian.PutUint32(b[at+8:], first)
		binary.LittleEndian.PutUint32(b[at+12:], sectors)
	}
	disk := make([]byte, mebibyte)
	record := func(sector int) []byte {
		b := disk[sector*512 : (sector+1)*512]
		b[510], b[511] = 0x55, 0xaa
		return b
	}
	boot := record(0)
	binary.LittleEndian.PutUint32(boot[440:], 0xdeadbeef)
	boot[446] = 0x80
	entry(boot, 446, 0x83, 8, 92)
	entry(boot, 462, 0x05, 100, 1000)
	entry(record(100), 446, 0x83, 10, 20)
	entry(record(100), 462, 0x05, 200, 100)
	entry(record(300), 446, 0x82, 10, 30)

	report, err := inspect(t.Context(), bytes.NewReader(disk), int64(len(disk)))
	if err != nil {
		t.Fatal(err)
	}
	want := &PartitionTable{Type: "mbr", ID: "deadbeef", SectorSize: 512, Partitions: []Partition{
		{Index: 1, Type: "0x83", Start: 8 * 512, Size: 92 * 512},
		{Index: 2, Type: "0x05", Start: 100 * 512, Size: 1000 * 512},
		{Index: 5, Type: "0x83", Start: 110 * 512, Size: 20 * 512},
		{Index: 6, Type: "0x82", Start: 310 * 512, Size: 30 * 512},
	}}
	if diff := cmp.Diff(want, report.PartitionTable); diff != "" || report.Notes != nil {
		t.Errorf("-want +got\n%s\n%q", diff, report.Notes)
	}

	entry(record(300), 462, 0x05, 200, 100)
	report, err = inspect(t.Context(), bytes.NewReader(disk), int64(len(disk)))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Notes) != 1 || len(report.PartitionTable.Partitions) != 2+maxLogical {
		t.Errorf("a circle gives %d partitions and the notes %q", len(report.PartitionTable.Partitions), report.Notes)
	}
}

// Superblocks of file systems that the tests' tools cannot make, by the fields
// that are documented for them.
func TestSuperblocks(t *testing.T) {
	id := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	const idText = "00010203-0405-0607-0809-0a0b0c0d0e0f"
	for _, c := range []struct {
		fill func(b []byte)
		want FileSystem
	}{
		{func(b []byte) { copy(b, "XFSB"); copy(b[32:], id); copy(b[108:], "data") }, FileSystem{"xfs", "data", idText}},
		{func(b []byte) { copy(b[0x10040:], "_BHRfS_M"); copy(b[0x10020:], id); copy(b[0x1012b:], "pool") }, FileSystem{"btrfs", "pool", idText}},
		{func(b []byte) { copy(b, "hsqs") }, FileSystem{Type: "squashfs"}},
		{func(b []byte) { copy(b[3:], "NTFS    "); b[72] = 1 }, FileSystem{Type: "ntfs", UUID: "0000000000000001"}},
		{func(b []byte) { copy(b, "LUKS\xba\xbe\x00\x01"); copy(b[168:], idText); copy(b[24:], "cipher") }, FileSystem{Type: "crypto_LUKS", UUID: idText}},
		{func(b []byte) { copy(b, "LUKS\xba\xbe\x00\x02"); copy(b[168:], idText); copy(b[24:], "vault") }, FileSystem{"crypto_LUKS", "vault", idText}},
		{func(b []byte) { copy(b[512:], "LABELONE"); copy(b[536:], "LVM2 001abcdefghijklmnopqrstuvwxyz012345") },
			FileSystem{Type: "LVM2_member", UUID: "abcdef-ghij-klmn-opqr-stuv-wxyz-012345"}},
	} {
		disk := make([]byte, mebibyte)
		c.fill(disk)
		report, err := inspect(t.Context(), bytes.NewReader(disk), int64(len(disk)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&c.want, report.FileSystem); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

func TestInspectRefusesWhatIsNoImage(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, pipe, "/dev/zero"} {
		if _, err := Inspect(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := Inspect(t.Context(), filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Inspect(ctx, sparse(t, mebibyte)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v", err)
	}
}

// brokenDisk fails to read beyond an offset.
type brokenDisk struct{ good int64 }

var errBroken = errors.New("medium error")

func (d brokenDisk) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > d.good {
		return 0, errBroken
	}
	return len(p), nil
}

func TestReadErrorsAreNotTakenForContent(t *testing.T) {
	for _, good := range []int64{0, 512, 4096, 40000} {
		if _, err := inspect(t.Context(), brokenDisk{good}, mebibyte); !errors.Is(err, errBroken) {
			t.Errorf("good up to %d: got %v", good, err)
		}
	}
}

func TestEmptyAndTinyImages(t *testing.T) {
	for _, size := range []int64{0, 1, 511, 512, 513, 1024, 4096} {
		report, err := inspect(t.Context(), bytes.NewReader(make([]byte, size)), size)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Report{Format: FormatRaw, FileSize: size, VirtualSize: size}, report); diff != "" {
			t.Errorf("%d bytes: -want +got\n%s", size, diff)
		}
	}
}

// countingReader counts what is read of an image, in bytes and calls.
type countingReader struct {
	r            io.ReaderAt
	calls, bytes int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	c.calls++
	c.bytes += int64(len(p))
	return c.r.ReadAt(p, off)
}
