package imagebuild

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Builders work beside each other, and what one has left that was killed is
// removed by the next.
func TestFoldersOfBuilders(t *testing.T) {
	cache := t.TempDir()
	take := func() *Builder {
		t.Helper()
		b := &Builder{cache: cache}
		if err := b.takeFolder(t.Context()); err != nil {
			t.Fatal(err)
		}
		return b
	}
	there := func(want ...string) {
		t.Helper()
		got, err := filepath.Glob(filepath.Join(cache, "work-*"))
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("there are %q, %v; want %q", got, err, want)
		}
	}
	first := take()
	killed := take()
	if err := os.WriteFile(filepath.Join(killed.work, "image"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	there(first.work, killed.work)
	if err := killed.lock.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	second := take()
	there(first.work, second.work)
	for _, b := range []*Builder{first, second} {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	there()
}
