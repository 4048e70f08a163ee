package filecopy

import (
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// Two files are the same if one byte is as little different as no hole tells, and what is
// believed is behind so much that is no zero.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		const size = 3 << 20
		var files [2]*os.File
		marks := rapid.SliceOfN(rapid.Int64Range(0, size-1), 0, 4).Draw(t, "marks")
		other := rapid.Int64Range(-1, size-1).Draw(t, "other")
		for i := range files {
			f, err := os.Create(filepath.Join(dir, string(rune('a'+i))))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.Truncate(size); err != nil {
				t.Fatal(err)
			}
			for _, at := range marks {
				if _, err := f.WriteAt([]byte{1}, at); err != nil {
					t.Fatal(err)
				}
			}
			if i == 1 && other >= 0 {
				if _, err := f.WriteAt([]byte{2}, other); err != nil {
					t.Fatal(err)
				}
			}
			files[i] = f
		}
		var done int64
		same, err := Same(t.Context(), files[0], files[1], size, 0, func(n int64) { done += n })
		if err != nil || same != (other < 0) || same && done != size {
			t.Fatalf("%v, %v, %d told", same, err, done)
		}
		// An empty one is none, however little is looked at.
		if err := files[1].Truncate(0); err != nil {
			t.Fatal(err)
		}
		if err := files[1].Truncate(size); err != nil {
			t.Fatal(err)
		}
		if same, err := Same(t.Context(), files[0], files[1], size, 1, func(int64) {}); err != nil || same != (len(marks) == 0) {
			t.Fatalf("an empty one: %v, %v", same, err)
		}
	})
}
