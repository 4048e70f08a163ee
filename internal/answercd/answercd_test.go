package answercd_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/answercd"
)

// readBack is what an image has under a name; nil if it has no such file.
func readBack(t *rapid.T, path, name string) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	fs, err := iso9660.Read(file.New(f, true), info.Size(), 0, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if label := strings.TrimRight(fs.Label(), " "); label != answercd.Label {
		t.Errorf("the volume is called %q", label)
	}
	entries, err := fs.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != name {
			continue
		}
		in, err := fs.OpenFile(name, os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{}, content...)
	}
	return nil
}

// The CD has each file that there is, byte for byte, is its owner's alone, and leaves
// nothing beside it.
func TestWhatIsOnTheCD(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.Ptr(rapid.SliceOfN(rapid.Byte(), 0, 5000), true)
		draw := func(name string) []byte {
			p := content.Draw(t, name)
			if p == nil {
				return nil
			}
			return append([]byte{}, *p...)
		}
		in := answercd.Files{Autounattend: draw("autounattend"), Unattend: draw("unattend")}
		path := filepath.Join(dir, "sysprep.iso")
		if err := answercd.Write(path, in); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]byte{answercd.AutounattendName: in.Autounattend, answercd.UnattendName: in.Unattend} {
			if got := readBack(t, path, name); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("%s has %d bytes, want %d", name, len(got), len(want))
			}
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Fatalf("the directory has %v, %v", left, err)
		}
		if info, err := left[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
}
