package imageinspect

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/cloudinit"
)

// checkHostile inspects an image that may be made to hurt: there must be no
// panic, no unbounded work and a report that can be written.
func checkHostile(t interface {
	Fatalf(string, ...any)
}, image io.ReaderAt, size int64) {
	counted := &countingReader{r: image}
	report, err := inspect(context.Background(), counted, size)
	if err != nil {
		t.Fatalf("a reading error out of nothing: %v", err)
	}
	if counted.calls > maxWork/minWork || counted.bytes > maxWork {
		t.Fatalf("%d calls, %d bytes read", counted.calls, counted.bytes)
	}
	if _, err := json.Marshal(report); err != nil {
		t.Fatalf("JSON: %v", err)
	}
	if table := report.PartitionTable; table != nil && len(table.Partitions) > maxGPTEntries {
		t.Fatalf("%d partitions", len(table.Partitions))
	}
	for _, p := range partitionsOf(report) {
		if p.Start < 0 || p.Size < 0 {
			t.Fatalf("partition %+v", p)
		}
	}
}

func partitionsOf(report Report) []Partition {
	if report.PartitionTable == nil {
		return nil
	}
	return report.PartitionTable.Partitions
}

// seedCorpus are images of every kind that is read, small ones.
func seedCorpus(t testing.TB) map[string][]byte {
	t.Helper()
	fat, err := cloudinit.Image(cloudinit.Documents{MetaData: []byte("a: b\n"), UserData: bytes.Repeat([]byte("u"), 2000), NetworkConfig: []byte("n\n")})
	if err != nil {
		t.Fatal(err)
	}
	// What a volume of this kind uses, and a little more: the fuzzer likes small
	// inputs.
	fat = fat[:16<<10]

	// A qcow2 image with clusters of 4 KiB: header, L1 table, L2 table, the volume.
	const cluster = 4096
	be := binary.BigEndian
	q := qcow2Bytes(func(b []byte) { b[23] = 12; be.PutUint64(b[40:], cluster) })[:3*cluster]
	be.PutUint64(q[cluster:], 2*cluster|1<<63)
	for i := range uint64(len(fat) / cluster) {
		be.PutUint64(q[2*cluster+8*i:], (3+i)*cluster|1<<63)
	}
	q = append(q, fat...)

	// The same with the volume's start compressed: one further sector.
	var deflated bytes.Buffer
	w, err := flate.NewWriter(&deflated, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(fat[:cluster]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	compressed := bytes.Clone(q)
	be.PutUint64(compressed[2*cluster:], 1<<62|1<<58|3*cluster)
	copy(compressed[3*cluster:4*cluster], make([]byte, cluster))
	copy(compressed[3*cluster:], deflated.Bytes())

	gpt := make([]byte, 64*512+len(fat))
	copy(gpt[512:], "EFI PART")
	binary.LittleEndian.PutUint64(gpt[512+72:], 2)
	binary.LittleEndian.PutUint32(gpt[512+80:], 128)
	binary.LittleEndian.PutUint32(gpt[512+84:], 128)
	gpt[1024] = 1
	binary.LittleEndian.PutUint64(gpt[1024+32:], 64)
	binary.LittleEndian.PutUint64(gpt[1024+40:], 511)
	copy(gpt[64*512:], fat)

	fat32 := bytes.Clone(fat)
	binary.LittleEndian.PutUint16(fat32[22:], 0)
	binary.LittleEndian.PutUint32(fat32[36:], 1)
	binary.LittleEndian.PutUint32(fat32[44:], 2)

	return map[string][]byte{"fat": fat, "fat32": fat32, "qcow2": q, "compressed": compressed, "gpt": gpt}
}

// The corpus is sound: each image shows its seed, except the one that only looks
// like FAT32.
func TestCorpusIsSound(t *testing.T) {
	for name, image := range seedCorpus(t) {
		report, err := inspect(t.Context(), bytes.NewReader(image), int64(len(image)))
		if err != nil {
			t.Fatal(err)
		}
		if name != "fat32" && (report.NoCloud == nil || report.NoCloud.UserData == nil || len(*report.NoCloud.UserData) != 2000) {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// endless is a disk on which every sector is the same FAT volume, with a root
// directory that never ends, in a GPT of as many partitions as are looked at.
type endless struct {
	gpt, volume []byte
}

func (e endless) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		at := off + int64(i)
		if at < int64(len(e.gpt)) {
			p[i] = e.gpt[at]
		} else {
			p[i] = e.volume[at%int64(len(e.volume))]
		}
	}
	return len(p), nil
}

func TestTooMuchToExamineIsCutShort(t *testing.T) {
	le := binary.LittleEndian
	gpt := make([]byte, 1024+maxGPTEntries*128)
	copy(gpt[512:], "EFI PART")
	le.PutUint64(gpt[512+72:], 2)
	le.PutUint32(gpt[512+80:], maxGPTEntries)
	le.PutUint32(gpt[512+84:], 128)
	for i := range maxGPTEntries {
		entry := gpt[1024+128*i:]
		entry[0] = 1
		le.PutUint64(entry[32:], 1<<20)
		le.PutUint64(entry[40:], 1<<22)
	}
	// FAT32 whose table says of every cluster that cluster 2 follows, and whose
	// sectors are all the boot sector: no entry of the directory is the last one.
	volume := make([]byte, 512)
	volume[0], volume[8] = 2, 2
	le.PutUint16(volume[11:], 512)
	volume[13], volume[14], volume[16], volume[21] = 1, 1, 1, 0xf8
	le.PutUint32(volume[32:], 1<<21+1)
	le.PutUint32(volume[36:], 1<<14)
	le.PutUint32(volume[44:], 2)
	for at := 48; at < 510; at += 4 {
		le.PutUint32(volume[at:], 2)
	}
	volume[510], volume[511] = 0x55, 0xaa

	const size = 4 << 30
	counted := &countingReader{r: endless{gpt, volume}}
	report, err := inspect(t.Context(), counted, size)
	if err != nil {
		t.Fatal(err)
	}
	if counted.bytes > maxWork {
		t.Errorf("%d bytes are read", counted.bytes)
	}
	if last := len(report.Notes) - 1; last < 0 || report.Notes[last] != "image: "+errTooMuch.Error() {
		t.Errorf("notes: %q", report.Notes)
	}
}

// Changing any few bytes of a sound image does no harm.
func TestDamagedImagesAreHarmless(t *testing.T) {
	corpus := seedCorpus(t)
	iso, err := os.ReadFile(isoSeed(t, iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: "cidata"}))
	if err != nil {
		t.Fatal(err)
	}
	corpus["iso"] = iso[:128<<10]
	for name, sound := range corpus {
		t.Run(name, func(t *testing.T) {
			interesting := rapid.SampledFrom(usedBytes(sound))
			rapid.Check(t, func(t *rapid.T) {
				image := bytes.Clone(sound)
				for range rapid.IntRange(1, 6).Draw(t, "changes") {
					at := rapid.OneOf(rapid.IntRange(0, 1023), interesting).Draw(t, "at")
					image[at] = rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff}), rapid.Byte()).Draw(t, "byte")
				}
				size := rapid.OneOf(rapid.Just(len(image)), rapid.IntRange(0, len(image))).Draw(t, "size")
				checkHostile(t, bytes.NewReader(image[:size]), int64(size))
			})
		})
	}
}

// usedBytes are the places in an image that hold something.
func usedBytes(image []byte) []int {
	var used []int
	for at, b := range image {
		if b != 0 {
			used = append(used, at)
		}
	}
	return used
}

// A FAT chain that bites its tail ends, and so does a directory.
func TestCircularChains(t *testing.T) {
	image := seedCorpus(t)["fat"]
	v, ok := openFAT(io.NewSectionReader(bytes.NewReader(image), 0, int64(len(image))))
	if !ok {
		t.Fatal("not FAT")
	}
	for cluster := range 100 {
		// Every cluster is followed by itself.
		at := v.fatStart + int64(cluster)*3/2
		if cluster%2 == 0 {
			image[at], image[at+1] = byte(cluster), image[at+1]&0xf0
		} else {
			image[at], image[at+1] = image[at]&0x0f|byte(cluster)<<4, byte(cluster>>4)
		}
	}
	content, ok := v.readChain(5, maxDocument)
	if !ok || len(content) != maxDocument {
		t.Errorf("%d bytes, %v", len(content), ok)
	}
	checkHostile(t, bytes.NewReader(image), int64(len(image)))
}

// Long runs want -fuzzminimizetime=5x: minimising inputs of this size takes the
// fuzzer a minute each.
func FuzzInspect(f *testing.F) {
	for _, image := range seedCorpus(f) {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		checkHostile(t, bytes.NewReader(image), int64(len(image)))
	})
}

// Inspecting does not change the image, not even its access to be written.
func TestInspectOpensReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, seedCorpus(t)["gpt"], 0o400); err != nil {
		t.Fatal(err)
	}
	if report := inspectPath(t, path); report.NoCloud == nil || report.NoCloud.Partition != 1 {
		t.Errorf("report: %+v", report)
	}
}
