package imageinspect

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/cloudinit"
)

var seedDocuments = cloudinit.Documents{
	MetaData:      []byte("instance-id: v1\nlocal-hostname: vm\n"),
	UserData:      []byte("#cloud-config\n" + strings.Repeat("x: grüße\n", 2000)),
	NetworkConfig: []byte("version: 2\n"),
}

// wantSeed is what a report says about seedDocuments.
func wantSeed(partition int) *NoCloud {
	meta, user, network := string(seedDocuments.MetaData), string(seedDocuments.UserData), string(seedDocuments.NetworkConfig)
	return &NoCloud{Partition: partition, MetaData: &meta, UserData: &user, NetworkConfig: &network}
}

// seedFiles writes the documents into a directory.
func seedFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string][]byte{
		"meta-data": seedDocuments.MetaData, "user-data": seedDocuments.UserData, "network-config": seedDocuments.NetworkConfig,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func isoSeed(t *testing.T, options iso9660.FinalizeOptions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.iso")
	storage, err := file.CreateFromPath(path, 4*mebibyte)
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	fs, err := iso9660.Create(storage, 4*mebibyte, 0, 2048, seedFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.Finalize(options); err != nil {
		t.Fatal(err)
	}
	return path
}

func fatSeed(t *testing.T, size int64, label string, bits string) string {
	t.Helper()
	path := sparse(t, size)
	tool(t, "mkfs.vfat", "-F", bits, "-n", label, path)
	dir := seedFiles(t)
	tool(t, "mcopy", "-i", path, filepath.Join(dir, "meta-data"), filepath.Join(dir, "user-data"), filepath.Join(dir, "network-config"), "::")
	return path
}

func TestSeedsAreRead(t *testing.T) {
	own, err := cloudinit.Image(seedDocuments)
	if err != nil {
		t.Fatal(err)
	}
	ownPath := filepath.Join(t.TempDir(), "own.img")
	if err := os.WriteFile(ownPath, own, 0o600); err != nil {
		t.Fatal(err)
	}
	inPartition := sparse(t, 8*mebibyte)
	tool(t, "sgdisk", "-n", "2:1M:+2M", inPartition)
	place(t, inPartition, ownPath, mebibyte)
	packed := filepath.Join(t.TempDir(), "seed.qcow2")
	tool(t, "qemu-img", "convert", "-c", "-f", "raw", "-O", "qcow2", inPartition, packed)

	for _, c := range []struct {
		name, path string
		format     Format
		partition  int
	}{
		{"our own", ownPath, FormatRaw, 0},
		{"FAT12", fatSeed(t, mebibyte, "cidata", "12"), FormatRaw, 0},
		{"FAT16", fatSeed(t, 16*mebibyte, "CIDATA", "16"), FormatRaw, 0},
		{"FAT32", fatSeed(t, 40*mebibyte, "CIDATA", "32"), FormatRaw, 0},
		{"partition", inPartition, FormatRaw, 2},
		{"partition in qcow2", packed, FormatQcow2, 2},
		{"Rock Ridge", isoSeed(t, iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "cidata"}), FormatISO9660, 0},
		{"Joliet", isoSeed(t, iso9660.FinalizeOptions{Joliet: true, VolumeIdentifier: "CIDATA"}), FormatISO9660, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := inspectPath(t, c.path)
			if report.Format != c.format || report.Notes != nil {
				t.Errorf("format %s, want %s; notes %q", report.Format, c.format, report.Notes)
			}
			if diff := cmp.Diff(wantSeed(c.partition), report.NoCloud); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestISOIsIdentifiedAsByBlkid(t *testing.T) {
	path := isoSeed(t, iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "cidata"})
	if diff := cmp.Diff(blkid(t, path), *inspectPath(t, path).FileSystem); diff != "" {
		t.Errorf("-blkid +inspect\n%s", diff)
	}
}

func TestVolumesThatAreNoSeed(t *testing.T) {
	if report := inspectPath(t, fatSeed(t, mebibyte, "OTHER", "12")); report.NoCloud != nil {
		t.Errorf("another label: %+v", report.NoCloud)
	}
	empty := sparse(t, mebibyte)
	tool(t, "mkfs.vfat", "-F", "12", "-n", "CIDATA", empty)
	if diff := cmp.Diff(&NoCloud{}, inspectPath(t, empty).NoCloud); diff != "" {
		t.Errorf("no documents: -want +got\n%s", diff)
	}
	ext := sparse(t, 8*mebibyte)
	tool(t, "mke2fs", "-q", "-t", "ext4", "-L", "cidata", ext)
	report := inspectPath(t, ext)
	if report.NoCloud != nil || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "ext4") {
		t.Errorf("a seed on ext4: %+v", report)
	}
}

func TestLargeDocumentsAreNotShown(t *testing.T) {
	image, err := cloudinit.Image(cloudinit.Documents{MetaData: []byte("a"), UserData: bytes.Repeat([]byte("u"), maxDocument+1)})
	if err != nil {
		t.Fatal(err)
	}
	report, err := inspect(t.Context(), bytes.NewReader(image), int64(len(image)))
	if err != nil {
		t.Fatal(err)
	}
	if report.NoCloud == nil || report.NoCloud.MetaData == nil || report.NoCloud.UserData != nil {
		t.Errorf("seed: %+v", report.NoCloud)
	}
	if len(report.Notes) != 1 || !strings.HasPrefix(report.Notes[0], "cloud-init seed: user-data: larger than") {
		t.Errorf("notes: %q", report.Notes)
	}
}
