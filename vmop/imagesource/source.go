package imagesource

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Source is the location of an image.
type Source struct {
	// Location is one of
	//   - FILE, a path of this host,
	//   - http://… or https://…,
	//   - oci://REGISTRY/REPOSITORY[:TAG][@sha256:…], a container image that has the
	//     disk in its directory /disk, as KubeVirt's container disks do,
	//   - oci-archive:FILE, the same in an archive of OCI's image layout,
	//   - oci-layout:DIRECTORY, the same in a directory of that layout.
	Location string
	// Path is the path of the disk in a container image; empty for the only file in /disk.
	Path string
	// Checksum is sha256:HEX or sha512:HEX of the content at the location: of the file before it is
	// unpacked, or of a container image's manifest (sha256 only). If empty, the location is
	// trusted.
	Checksum string
	// CA are CA certificates (PEM) for servers, beside this host's.
	CA []byte
}

// Kind is the kind of a source's location.
type Kind string

// The kinds of locations.
const (
	File     Kind = "file"
	HTTP     Kind = "http"
	Registry Kind = "registry"
	Archive  Kind = "archive"
	Layout   Kind = "layout"
)

const (
	registryPrefix = "oci://"
	archivePrefix  = "oci-archive:"
	layoutPrefix   = "oci-layout:"
)

// Kind returns the kind of the source's location, or an error if it is invalid.
func (s Source) Kind() (Kind, error) {
	l := s.Location
	scheme, _, hasScheme := strings.Cut(l, "://")
	switch {
	case l == "":
		return "", errors.New("image: want a file, or a URL of http, https or oci")
	case strings.HasPrefix(l, archivePrefix):
		return Archive, nil
	case strings.HasPrefix(l, layoutPrefix):
		return Layout, nil
	case strings.HasPrefix(l, registryPrefix):
		if _, err := s.reference(); err != nil {
			return "", err
		}
		return Registry, nil
	case scheme == "http" || scheme == "https":
		if u, err := url.Parse(l); err != nil || u.Host == "" {
			return "", fmt.Errorf("image %s: it is no valid URL", s) // the parser's error has the URL
		}
		return HTTP, nil
	case hasScheme && isScheme(scheme):
		return "", fmt.Errorf("image %s: want a file, or a URL of http, https or oci", s)
	}
	return File, nil
}

// LocalPath returns the path of the file or directory on this host; "" if the source is on a
// server.
func (s Source) LocalPath() string {
	switch kind, err := s.Kind(); {
	case err != nil, kind == HTTP, kind == Registry:
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(s.Location, archivePrefix), layoutPrefix)
}

// isScheme reports whether s is the scheme of a URL (RFC 3986, 3.1), such as file.
func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !(r >= '0' && r <= '9' || r == '+' || r == '-' || r == '.')) {
			return false
		}
	}
	return s != ""
}

func (s Source) reference() (name.Reference, error) {
	ref, err := name.ParseReference(strings.TrimPrefix(s.Location, registryPrefix))
	if err != nil {
		return nil, fmt.Errorf("image %s: want oci://REGISTRY/REPOSITORY:TAG or the same with @sha256:DIGEST", s)
	}
	return ref, nil
}

// Check validates a source without accessing it.
func (s Source) Check() error {
	kind, err := s.Kind()
	if err != nil {
		return err
	}
	d, err := parseDigest(s.Checksum)
	switch {
	case err != nil:
		return err
	case s.Path != "" && (kind == File || kind == HTTP):
		return fmt.Errorf("image %s: a path is for container images", s)
	case d != nil && d.kind != "sha256" && kind != File && kind != HTTP:
		return errors.New("checksum: that of a container image is its digest: want sha256:HEX")
	}
	_, err = diskPath(s.Path)
	return err
}

// String returns the location without passwords and queries, which may be secrets.
func (s Source) String() string { return redact(s.Location) }

func redact(location string) string {
	scheme, rest, ok := strings.Cut(location, "://")
	if !ok {
		return location
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, query := strings.Cut(rest, "?")
	authority, file, slash := strings.Cut(rest, "/")
	if i := strings.LastIndex(authority, "@"); i >= 0 && scheme != "oci" { // in oci, @ begins a digest
		authority = authority[i+1:]
	}
	out := scheme + "://" + authority
	if slash {
		out += "/" + file
	}
	if query {
		out += "?…"
	}
	return out
}

// diskPath returns the path of a disk in a container image as archives have it, without a leading
// slash: "disk/" for any file in that directory.
func diskPath(p string) (string, error) {
	if p == "" {
		return "disk/", nil
	}
	clean := strings.TrimPrefix(path.Clean("/"+p), "/")
	if clean == "" || strings.HasSuffix(p, "/") || strings.Contains("/"+p+"/", "/../") {
		return "", fmt.Errorf("path %q: want that of a file in the container image, such as /disk/disk.img", p)
	}
	return clean, nil
}

type digest struct {
	kind string
	want []byte
}

func (d *digest) String() string { return d.kind + ":" + hex.EncodeToString(d.want) }

func parseDigest(text string) (*digest, error) {
	if text == "" {
		return nil, nil
	}
	kind, digits, _ := strings.Cut(text, ":")
	want, err := hex.DecodeString(digits)
	d := &digest{kind, want}
	if h := d.hash(); h == nil || err != nil || len(want) != h.Size() {
		return nil, fmt.Errorf("checksum %q: want sha256:HEX or sha512:HEX", text)
	}
	return d, nil
}

func (d *digest) hash() hash.Hash {
	switch d.kind {
	case "sha256":
		return sha256.New()
	case "sha512":
		return sha512.New()
	}
	return nil
}
