package tinyguest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// cacheFolder returns the folder for guests below the cache, and creates it.
func cacheFolder(dir string) (string, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cache folder: %w", err)
		}
		dir = filepath.Join(user, "vmop")
	}
	dir, err := filepath.Abs(filepath.Join(dir, "tinyguest"))
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return dir, nil
}

// key makes a folder name from everything that decides on a folder's content.
func key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s\n", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lock takes a lock that other processes respect too; the kernel releases it
// when a process dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	// flock cannot wait with a deadline, so that the question is repeated.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
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

// build lets fill work in a temporary folder beside dir, which becomes dir only
// when everything is there.
func build(dir string, fill func(dir string) error) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".build-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := fill(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// linkOrCopy makes the file to the same as from, replacing what is there in one
// step.
func linkOrCopy(from, to string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(to), ".link-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	staged := filepath.Join(tmp, "file")
	if os.Link(from, staged) != nil {
		if err := copyFile(from, staged); err != nil {
			return err
		}
	}
	return os.Rename(staged, to)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
