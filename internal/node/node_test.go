package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMakeDisk(t *testing.T) {
	dir := t.TempDir()
	image, disk := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.WriteFile(image, []byte("begin"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := makeDisk(disk, 8, image); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(disk); err != nil || string(data) != "begin\x00\x00\x00" {
		t.Errorf("%q, %v", data, err)
	}
	if err := makeDisk(disk, 4, image); err == nil || !strings.Contains(err.Error(), "4 bytes are too few") {
		t.Errorf("a disk smaller than its image: %v", err)
	}
}

// Two nodes have different slots; who finds none waits no longer than it may.
func TestSlots(t *testing.T) {
	base := t.TempDir()
	var taken []*slot
	for range slots {
		s, err := findSlot(t.Context(), base)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range taken {
			if s.dir == other.dir || s.name() == other.name() || s.link() == other.link() || s.podNetwork() == other.podNetwork() {
				t.Errorf("slots %d and %d share something", s.number, other.number)
			}
		}
		taken = append(taken, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := findSlot(ctx, base); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one node too many: %v", err)
	}
	for _, s := range taken {
		if err := s.lock.Close(); err != nil {
			t.Error(err)
		}
	}
}
