package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeEmpty removes a machine's directory, and its namespace's if that was the last one, unless
// another process has just created a file in them.
func removeEmpty(dir string) error {
	for _, dir := range []string{dir, filepath.Dir(dir)} {
		err := os.Remove(dir)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func subdirectories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for machines: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") { // unfinished ones begin with a dot
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}
