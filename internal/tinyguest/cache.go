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

// cacheKind is the folder of guests below the cache.
const cacheKind = "tinyguest"

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
