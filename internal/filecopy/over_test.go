package filecopy

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// What was there before is nowhere left, neither in blocks of zeros nor in holes, and
// what is beside the part stays.
func TestOver(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		src, err := os.Create(filepath.Join(dir, "src"))
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		size := rapid.Int64Range(0, 40*hole).Draw(t, "size")
		if err := src.Truncate(size); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 5).Draw(t, "marks") {
			// A block of zeros is no hole.
			p := make([]byte, rapid.IntRange(1, 3*hole).Draw(t, "n"))
			p[rapid.IntRange(0, len(p)-1).Draw(t, "where")] = 1
			if at := rapid.Int64Range(0, 40*hole).Draw(t, "at"); at+int64(len(p)) <= size {
				if _, err := src.WriteAt(p, at); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := bytes.Repeat([]byte{0xee}, 44*hole)
		path := filepath.Join(dir, "dst")
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		dst, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer dst.Close()
		from := rapid.Int64Range(0, size).Draw(t, "from")
		var done int64
		if err := Over(t.Context(), dst, src, from, size, func(n int64) { done += n }); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(src.Name())
		if err != nil {
			t.Fatal(err)
		}
		want = append(append(bytes.Clone(before[:from]), want[from:]...), before[size:]...)
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) || done != size-from {
			t.Fatalf("%d bytes of %d, %d told, %v", len(got), len(want), done, err)
		}
	})
}

// What is zero takes no space where it took some, and an interrupted one ends.
func TestZero(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, bytes.Repeat([]byte{0xee}, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(Zero(t.Context(), f, 5, 1<<20-5), f.Sync()); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil || info.Size() != 1<<20 || Allocated(info) > 1<<16 {
		t.Errorf("%d bytes take %d, %v", info.Size(), Allocated(info), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Zero(ctx, f, 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
