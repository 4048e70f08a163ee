// Package buildcache is where tests keep what takes long to build, and how
// processes that need the same thing wait for each other.
package buildcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Folder returns the folder for a kind of objects below the cache dir, or the user's cache if dir
// is empty, and creates it.
func Folder(dir, kind string) (string, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cache folder: %w", err)
		}
		dir = filepath.Join(user, "vmop")
	}
	dir, err := filepath.Abs(filepath.Join(dir, kind))
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return dir, nil
}

// Lock takes an exclusive lock on a file, which it creates if needed. The lock ends when this
// process and all children that inherited the file have closed it or died.
func Lock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	// flock has no timeout, so it is polled.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: somebody else is building: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}
