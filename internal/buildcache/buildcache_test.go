package buildcache

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestWaitingForAnotherBuildEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestLockIsFreeWhenItsFileIsClosed(t *testing.T) {
	folder, err := Folder(t.TempDir(), "kind")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		held, err := Lock(t.Context(), filepath.Join(folder, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	}
}
