package cloudinit_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/cloudinit"
)

// noise is content that no accidental shift or gap would reproduce.
func noise(size int) []byte {
	b := make([]byte, size)
	src := rand.NewPCG(1, uint64(size))
	for i := 0; i < len(b); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], src.Uint64())
		copy(b[i:], word[:])
	}
	return b
}

// checkImage has the tools of others read the volume.
func checkImage(t *testing.T, image []byte, docs cloudinit.Documents) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.img")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "fsck.vfat", "-n", path)
	if label := strings.TrimSpace(tool(t, "blkid", "-p", "-o", "value", "-s", "LABEL", path)); label != "CIDATA" {
		t.Errorf("blkid finds the label %q", label)
	}
	if kind := strings.TrimSpace(tool(t, "blkid", "-p", "-o", "value", "-s", "TYPE", path)); kind != "vfat" {
		t.Errorf("blkid finds the type %q", kind)
	}
	want := map[string][]byte{"meta-data": docs.MetaData, "user-data": docs.UserData}
	if docs.NetworkConfig != nil {
		want["network-config"] = docs.NetworkConfig
	}
	// mdir -b gives the names as they are on the volume, one per line.
	names := strings.Fields(tool(t, "mdir", "-b", "-i", path, "::"))
	if len(names) != len(want) {
		t.Errorf("mdir lists %q", names)
	}
	for _, name := range names {
		name = strings.TrimPrefix(name, "::/")
		content, ok := want[name]
		if !ok {
			t.Errorf("unexpected file %q", name)
			continue
		}
		if got := tool(t, "mcopy", "-n", "-i", path, "::"+name, "-"); got != string(content) {
			t.Errorf("%s has %d bytes, want %d, or other ones", name, len(got), len(content))
		}
	}
}

func TestImageIsAVolumeOthersCanRead(t *testing.T) {
	for _, c := range []struct {
		name string
		docs cloudinit.Documents
	}{
		{"nothing", cloudinit.Documents{}},
		{"empty network-config", cloudinit.Documents{MetaData: []byte("a\n"), NetworkConfig: []byte{}}},
		{"usual", cloudinit.Documents{MetaData: noise(60), UserData: noise(1500), NetworkConfig: noise(200)}},
		{"one cluster exactly", cloudinit.Documents{MetaData: noise(512), UserData: noise(512)}},
		{"over the old limit", cloudinit.Documents{MetaData: noise(60), UserData: noise(1_500_000)}},
		{"largest FAT12", cloudinit.Documents{UserData: noise(4<<20 - 170<<10)}},
		{"smallest FAT16", cloudinit.Documents{UserData: noise(4<<20 - 150<<10)}},
		{"5 MB", cloudinit.Documents{MetaData: noise(60), UserData: noise(5_000_000), NetworkConfig: noise(200)}},
		{"around a change of the cluster size", cloudinit.Documents{UserData: noise(32<<20 - 300<<10)}},
		{"40 MB", cloudinit.Documents{MetaData: noise(60), UserData: noise(40_000_000), NetworkConfig: noise(200)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			image, err := cloudinit.Image(c.docs)
			if err != nil {
				t.Fatal(err)
			}
			checkImage(t, image, c.docs)
			if len(image)%4096 != 0 {
				t.Errorf("%d bytes are not a multiple of 4096", len(image))
			}
			total := len(c.docs.MetaData) + len(c.docs.UserData) + len(c.docs.NetworkConfig)
			if limit := total + total/64 + 1<<20; len(image) > limit+256<<10 {
				t.Errorf("%d bytes for %d bytes of documents", len(image), total)
			}
		})
	}
}

// The clock, the environment and the time zone do not show in the image.
func TestImageIsReproducible(t *testing.T) {
	docs := cloudinit.Documents{MetaData: []byte("instance-id: v1\n"), UserData: []byte("#cloud-config\n{}\n")}
	first, err := cloudinit.Image(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, epoch := range []string{"0", "1000000000", "4000000000"} {
		t.Setenv("SOURCE_DATE_EPOCH", epoch)
		image, err := cloudinit.Image(docs)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, image) {
			t.Errorf("another image at the time %s", epoch)
		}
	}
	var out bytes.Buffer
	if err := cloudinit.WriteImage(&out, docs); err != nil || !bytes.Equal(first, out.Bytes()) {
		t.Errorf("WriteImage writes another image (%v)", err)
	}
}

func TestImagesOfDifferentDocumentsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.SliceOfN(rapid.Byte(), 0, 20)
		draw := func() cloudinit.Documents {
			return cloudinit.Documents{MetaData: small.Draw(t, "meta"), UserData: small.Draw(t, "user"), NetworkConfig: small.Draw(t, "network")}
		}
		a, b := draw(), draw()
		imageA, errA := cloudinit.Image(a)
		imageB, errB := cloudinit.Image(b)
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		same := bytes.Equal(a.MetaData, b.MetaData) && bytes.Equal(a.UserData, b.UserData) && bytes.Equal(a.NetworkConfig, b.NetworkConfig)
		if serial := bytes.Equal(imageA[39:43], imageB[39:43]); serial != same {
			t.Fatalf("equal documents: %v, equal serial numbers: %v", same, serial)
		}
	})
}

// Every size gets a volume: none falls between the kinds of FAT or runs out of
// clusters. Reading them back with our own eyes is left to the other tests.
func TestImageOfEverySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(
			rapid.IntRange(0, 8<<20),
			rapid.IntRange(3<<20, 5<<20),
			rapid.Custom(func(t *rapid.T) int {
				return rapid.IntRange(0, 32).Draw(t, "MiB")<<20 + rapid.IntRange(-400<<10, 1000).Draw(t, "off")
			}),
		).Filter(func(n int) bool { return n >= 0 }).Draw(t, "size")
		user := make([]byte, size)
		if _, err := cloudinit.Image(cloudinit.Documents{MetaData: make([]byte, 100), UserData: user, NetworkConfig: make([]byte, 100)}); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	})
}

func TestImageRefusesTooMuch(t *testing.T) {
	_, err := cloudinit.Image(cloudinit.Documents{UserData: make([]byte, cloudinit.MaxSize), MetaData: []byte("x")})
	if !errors.Is(err, cloudinit.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, cloudinit.ErrTooLarge)
	}
}
