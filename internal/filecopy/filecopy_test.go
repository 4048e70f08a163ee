package filecopy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A file is cloned where the file system does that, and nothing is copied then. Else it is
// copied, without its holes.
func TestCloneBeforeCopy(t *testing.T) {
	const size = 4 << 20
	content := make([]byte, size)
	copy(content[size/2:], "data")
	for _, c := range []struct {
		name  string
		clone func(dst, src *os.File) error
		want  []byte
		done  []int64
	}{
		{"cloned", func(dst, _ *os.File) error { _, err := dst.WriteString("shared"); return err }, []byte("shared"), []int64{size}},
		{"the file system cannot", func(_, _ *os.File) error { return unix.EOPNOTSUPP }, content, nil},
		{"another file system", func(_, _ *os.File) error { return unix.EXDEV }, content, nil},
		{"what there is of it here", clone, content, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			src, err := os.Create(filepath.Join(dir, "src"))
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			if err := src.Truncate(size); err != nil {
				t.Fatal(err)
			}
			if _, err := src.WriteAt([]byte("data"), size/2); err != nil {
				t.Fatal(err)
			}
			dst, err := os.Create(filepath.Join(dir, "dst"))
			if err != nil {
				t.Fatal(err)
			}
			defer dst.Close()
			var done []int64
			if err := fill(t.Context(), dst, src, c.clone, func(n int64) { done = append(done, n) }); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(dst.Name())
			if err != nil || !bytes.Equal(got, c.want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if c.done != nil && !slices.Equal(done, c.done) {
				t.Errorf("it was told of %v, want %v", done, c.done)
			}
			info, err := dst.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if takes := info.Sys().(*syscall.Stat_t).Blocks * 512; takes > size/2 {
				t.Errorf("it takes %d bytes", takes)
			}
		})
	}
}
