package filecopy

import (
	"os"
	"path/filepath"
	"testing"
)

// An image grows to what a disk of the size needs, keeps what it has, and never shrinks.
func TestGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, []byte("boot"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ asked, size int64 }{{4, 4}, {1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + Align}, {5, 1<<20 + Align}} {
		if err := GrowFile(path, step.asked); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || int64(len(data)) != step.size || string(data[:4]) != "boot" {
			t.Errorf("asked for %d it has %d bytes, want %d; %v", step.asked, len(data), step.size, err)
		}
	}
	if err := GrowFile(filepath.Join(t.TempDir(), "none"), 1); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
