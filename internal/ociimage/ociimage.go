package ociimage

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is a container image.
type Image struct {
	// Name is its full name with a tag, such as example.org/tools/pause:1.
	Name string
	// Entrypoint is the command that it runs.
	Entrypoint []string
	// Env are environment variables, as NAME=value.
	Env []string
	// User runs the command, as UID or UID:GID; empty is root.
	User string
	// Files are its content. Missing parent folders are created.
	Files []File
}

// File is a file of an image, owned by root. Exactly one of From, Data and Link is set; without
// them it is a folder.
type File struct {
	// Path within the image, absolute and clean.
	Path string
	// Mode is the file's permissions. 0 means 0755 for folders, those of From for its copy, and
	// otherwise 0644.
	Mode fs.FileMode
	// From is a file of this host to copy; links are followed.
	From string
	// Data is the content.
	Data []byte
	// Link is the target of a symbolic link.
	Link string
}

// Write writes an archive of the image to a file, which is replaced, in the format of `docker
// save`, which every tool imports.
func Write(file string, image Image) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("image %s: %w", image.Name, err)
		}
	}()
	tag, err := name.NewTag(image.Name, name.StrictValidation)
	if err != nil {
		return err
	}
	layer, err := os.CreateTemp(filepath.Dir(file), ".layer-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, layer.Close(), os.Remove(layer.Name())) }()
	if err := writeLayer(layer, image.Files); err != nil {
		return err
	}
	of, err := tarball.LayerFromFile(layer.Name(), tarball.WithMediaType(types.DockerLayer))
	if err != nil {
		return err
	}
	built, err := mutate.AppendLayers(empty.Image, of)
	if err != nil {
		return err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return err
	}
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		User: image.User, Entrypoint: image.Entrypoint,
		Env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, image.Env...),
	}
	if built, err = mutate.ConfigFile(built, config); err != nil {
		return err
	}
	return tarball.WriteToFile(file, tag, built)
}

func writeLayer(out io.Writer, files []File) error {
	all := map[string]File{}
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			return fmt.Errorf("file %q: want a clean absolute path", f.Path)
		}
		if _, twice := all[f.Path]; twice {
			return fmt.Errorf("file %s is there twice", f.Path)
		}
		all[f.Path] = f
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = File{Path: dir}
			}
		}
	}
	w := tar.NewWriter(out)
	ordered := make([]File, 0, len(all))
	for _, f := range all {
		ordered = append(ordered, f)
	}
	slices.SortFunc(ordered, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range ordered {
		if err := writeFile(w, f); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
	}
	return w.Close()
}

func writeFile(w *tar.Writer, f File) (err error) {
	h := &tar.Header{Name: f.Path[1:], Mode: int64(f.Mode.Perm()), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	set := func(kind byte, mode int64) {
		h.Typeflag = kind
		if f.Mode == 0 {
			h.Mode = mode
		}
		if f.Mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
	}
	switch {
	case f.From != "":
		in, err := os.Open(f.From)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", f.From)
		}
		set(tar.TypeReg, int64(info.Mode().Perm()))
		h.Size = info.Size()
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(w, in)
		return err
	case f.Link != "":
		set(tar.TypeSymlink, 0o777)
		h.Linkname = f.Link
		return w.WriteHeader(h)
	case f.Data != nil:
		set(tar.TypeReg, 0o644)
		h.Size = int64(len(f.Data))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(f.Data)
		return err
	default:
		set(tar.TypeDir, 0o755)
		h.Name += "/"
		return w.WriteHeader(h)
	}
}
