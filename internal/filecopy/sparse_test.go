package filecopy

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

func TestSparseWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(t *rapid.T) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := &Sparse{File: f}
		var all []byte
		for range rapid.IntRange(0, 6).Draw(t, "writes") {
			p := make([]byte, rapid.IntRange(0, 3*hole).Draw(t, "n"))
			if len(p) > 0 {
				for range rapid.IntRange(0, 3).Draw(t, "marks") {
					p[rapid.IntRange(0, len(p)-1).Draw(t, "at")] = 1
				}
			}
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			all = append(all, p...)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, all) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(all), err)
		}
	})
}
