package ociimage

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
)

// Image is a container image.
type Image struct {
	// Name is its full name with a tag, such as example.org/tools/pause:1.
	Name string
	// Entrypoint is the command that it runs.
	Entrypoint []string
	// Env are environment variables, as NAME=value.
	Env []string
	// User is who runs the command, as UID or UID:GID; empty is root.
	User string
	// Files are its content. Folders that a file needs are made.
	Files []File
}

// File is a file of an image, which belongs to root. Exactly one of From, Data
// and Link says what it is; without them it is a folder.
type File struct {
	// Path within the image, absolute and clean.
	Path string
	// Mode is the file's permissions. 0 is 0755 for folders, the permissions of
	// From for its copy, and else 0644.
	Mode fs.FileMode
	// From is the file of this host that is copied; links are followed.
	From string
	// Data is the content.
	Data []byte
	// Link is what a symbolic link leads to.
	Link string
}

// The media types of the OCI image specification.
const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	platform
	Config runtimeConfig `json:"config"`
	RootFS rootFS        `json:"rootfs"`
}

type runtimeConfig struct {
	User       string   `json:"User,omitempty"`
	Env        []string `json:"Env,omitempty"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// Write writes an archive with the image to a file, which is replaced.
func Write(file string, image Image) (err error) {
	layer, err := os.CreateTemp(filepath.Dir(file), ".layer-*")
	if err != nil {
		return fmt.Errorf("image %s: %w", image.Name, err)
	}
	defer func() { err = errors.Join(err, layer.Close(), os.Remove(layer.Name())) }()
	sum := sha256.New()
	if err := writeLayer(io.MultiWriter(layer, sum), image.Files); err != nil {
		return fmt.Errorf("image %s: %w", image.Name, err)
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("image %s: %w", image.Name, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := writeLayout(out, image, layer, hex.EncodeToString(sum.Sum(nil))); err != nil {
		return fmt.Errorf("image %s: %w", image.Name, err)
	}
	return nil
}

// writeLayout writes everything around the layer, and the layer.
func writeLayout(out io.Writer, image Image, layer *os.File, layerSum string) error {
	size, err := layer.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	w := tar.NewWriter(out)
	put := func(name string, data []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	blob := func(mediaType string, v any) (descriptor, error) {
		data, err := json.Marshal(v)
		if err != nil {
			return descriptor{}, err
		}
		sum := sha256.Sum256(data)
		name := hex.EncodeToString(sum[:])
		return descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: int64(len(data))}, put("blobs/sha256/"+name, data)
	}
	here := platform{Architecture: runtime.GOARCH, OS: "linux"}
	if err := put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	c, err := blob(typeConfig, config{
		platform: here,
		Config: runtimeConfig{User: image.User, Entrypoint: image.Entrypoint,
			Env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, image.Env...)},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + layerSum}},
	})
	if err != nil {
		return err
	}
	m, err := blob(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: c,
		Layers: []descriptor{{MediaType: typeLayer, Digest: "sha256:" + layerSum, Size: size}}})
	if err != nil {
		return err
	}
	// containerd takes the name from its own annotation, others from OCI's.
	m.Platform, m.Annotations = &here, map[string]string{"io.containerd.image.name": image.Name, "org.opencontainers.image.ref.name": image.Name}
	top, err := json.Marshal(index{SchemaVersion: 2, Manifests: []descriptor{m}})
	if err != nil {
		return err
	}
	if err := put("index.json", top); err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: "blobs/sha256/" + layerSum, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	if _, err := io.Copy(w, layer); err != nil {
		return err
	}
	return w.Close()
}

// writeLayer writes the files, each after the folders that it is in.
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
