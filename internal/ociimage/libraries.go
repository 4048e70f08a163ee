package ociimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Programs lists programs of this host, by name or path, and the libraries that
// they are linked with, at the places that they have here. Libraries that a
// program loads while it runs have to be named too, by path.
func Programs(ctx context.Context, names ...string) ([]File, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		program := name
		if !filepath.IsAbs(name) {
			var err error
			if program, err = exec.LookPath(name); err != nil {
				return nil, err
			}
			if program, err = filepath.Abs(program); err != nil {
				return nil, err
			}
		}
		wanted[program] = true
		out, err := exec.CommandContext(ctx, "ldd", program).Output()
		if err != nil {
			continue // linked statically
		}
		// "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)" for the loader.
		for _, word := range strings.Fields(string(out)) {
			if filepath.IsAbs(word) {
				wanted[word] = true
			}
		}
		if strings.Contains(string(out), "not found") {
			return nil, fmt.Errorf("%s misses a library:\n%s", program, out)
		}
	}
	files := make([]File, 0, len(wanted))
	for path := range wanted {
		files = append(files, File{Path: path, From: path})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// Tree lists the files below a folder of this host, at the same places. Links
// to files become copies of them; what leads nowhere is left out.
func Tree(dir string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		files = append(files, File{Path: path, From: path})
		return nil
	})
	return files, err
}
