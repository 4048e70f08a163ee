package tinyguest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const cacheKind = "tinyguest"

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

// build calls fill with a temporary folder beside dir, which is renamed to dir when it is complete.
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

// linkOrCopy creates the file to from the file from, replacing an existing one atomically.
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
