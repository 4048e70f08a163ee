package imagesource

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

const (
	// maxManifest bounds indices and manifests, in bytes, as registries do.
	maxManifest = 4 << 20
	// maxLayers, maxIndex and maxEntries are more than an image with a disk has.
	maxLayers  = 128
	maxIndex   = 1000
	maxEntries = 1 << 20
	// manifestTimeout bounds the wait for a registry before a layer is downloaded.
	manifestTimeout = 2 * time.Minute
)

// platform selects the container image of an index. A disk is for a machine and not for a
// container's processor, and machines are x86-64.
var platform = v1.Platform{OS: "linux", Architecture: "amd64"}

func (f *fetch) fromRegistry(ctx context.Context, want *digest) (sums, string, error) {
	ref, err := f.reference()
	if err != nil {
		return sums{}, "", err
	}
	scheme := ref.Context().Registry.Scheme()
	g := newGuard(f.o.Local, scheme+"://"+ref.Context().RegistryStr())
	base, err := g.transport(f.CA)
	if err != nil {
		return sums{}, "", err
	}
	auth, err := authn.Resolve(ctx, authn.DefaultKeychain, ref.Context())
	if err != nil {
		return sums{}, "", fmt.Errorf("credentials for %s: %w", ref.Context().RegistryStr(), err)
	}
	asked, cancel := context.WithTimeoutCause(ctx, manifestTimeout, fmt.Errorf("the registry took longer than %v", manifestTimeout))
	defer cancel()
	failed := func(err error) error {
		if asked.Err() != nil {
			return context.Cause(asked)
		}
		return registryError(err)
	}
	rt, err := transport.NewWithContext(asked, ref.Context().Registry, auth, judged{base, g}, []string{ref.Scope(transport.PullScope)})
	if err != nil {
		return sums{}, "", failed(err)
	}
	options := []remote.Option{remote.WithContext(asked), remote.WithTransport(rt)}
	head, err := remote.Get(ref, options...)
	if err != nil {
		return sums{}, "", failed(err)
	}
	top := sums{sha256: head.Digest.Hex}
	if want != nil {
		if err := top.compare(want); err != nil {
			return sums{}, "", err
		}
	}
	if f.version = Version(digestVersion + head.Digest.Hex); f.version == f.o.Have {
		return sums{}, "", ErrUnchanged
	}
	manifest, err := manifestOf(head.Manifest, func(h v1.Hash) ([]byte, error) {
		d, err := remote.Get(ref.Context().Digest(h.String()), options...)
		if err != nil {
			return nil, failed(err)
		}
		return d.Manifest, nil
	})
	if err != nil {
		return sums{}, "", err
	}
	client := &http.Client{Transport: rt, CheckRedirect: g.redirect}
	return top, f.packed(), f.disk(ctx, manifest, func(layer v1.Descriptor) (*os.File, error) {
		want, err := parseDigest(layer.Digest.String())
		if err != nil {
			return nil, err
		}
		d := f.download(blobURL(ref, layer.Digest), client, want, layer.Size)
		if _, err := d.run(ctx); err != nil {
			return nil, fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
		return os.Open(f.part())
	})
}

func blobURL(ref name.Reference, digest v1.Hash) string {
	r := ref.Context()
	u := url.URL{Scheme: r.Registry.Scheme(), Host: r.RegistryStr(), Path: "/v2/" + r.RepositoryStr() + "/blobs/" + digest.String()}
	return u.String()
}

// judged applies the guard to redirections that the HTTP client of the registry's library follows;
// the library has no option for it.
type judged struct {
	http.RoundTripper
	g *guard
}

func (j judged) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil && r.Response.Request != nil { // it is a redirection
		if err := j.g.redirect(r, []*http.Request{r.Response.Request}); err != nil {
			return nil, err
		}
	}
	return j.RoundTripper.RoundTrip(r)
}

// registryError strips URLs, which may contain secrets, from an error of the registry.
func registryError(err error) error {
	var t *transport.Error
	if !errors.As(err, &t) {
		return plain(err)
	}
	var says []string
	for _, d := range t.Errors {
		says = append(says, string(d.Code)+": "+d.Message)
	}
	if len(says) == 0 {
		return fmt.Errorf("the registry answers %d %s", t.StatusCode, http.StatusText(t.StatusCode))
	}
	text := strings.Join(says, "; ")
	return fmt.Errorf("the registry answers %d: %.500s", t.StatusCode, text)
}

// manifestOf parses an image's manifest. If text is an index, it is that of the image for this
// platform.
func manifestOf(text []byte, get func(v1.Hash) ([]byte, error)) (*v1.Manifest, error) {
	for range 3 { // an index may name another
		if len(text) > maxManifest {
			return nil, fmt.Errorf("%w: a manifest of %d bytes", ErrTooLarge, len(text))
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		if len(index.Manifests) == 0 {
			m, err := v1.ParseManifest(bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("manifest: %w", err)
			}
			if len(m.Layers) > maxLayers {
				return nil, fmt.Errorf("%w: %d layers", ErrTooLarge, len(m.Layers))
			}
			return m, nil
		}
		of, err := choose(index.Manifests)
		if err != nil {
			return nil, err
		}
		if text, err = get(of.Digest); err != nil {
			return nil, err
		}
		if got := sha256.Sum256(text); of.Digest.Algorithm != "sha256" || hex.EncodeToString(got[:]) != of.Digest.Hex {
			return nil, fmt.Errorf("manifest %s: %w", of.Digest, ErrChecksum)
		}
	}
	return nil, errors.New("manifest: an index of indices of indices")
}

// choose returns the one image of an index that is for this platform, or for none in particular.
func choose(all []v1.Descriptor) (v1.Descriptor, error) {
	if len(all) > maxIndex {
		return v1.Descriptor{}, fmt.Errorf("%w: an index of %d images", ErrTooLarge, len(all))
	}
	var fit []v1.Descriptor
	var have []string
	for _, d := range all {
		switch {
		case d.Platform == nil || len(all) == 1 && d.Platform.OS != "unknown":
			fit = append(fit, d)
		case d.Platform.Satisfies(platform):
			return d, nil
		default:
			have = append(have, d.Platform.String())
		}
	}
	switch {
	case len(fit) == 0:
		return v1.Descriptor{}, fmt.Errorf("it has no image for %s, only for %s", platform.String(), strings.Join(have, ", "))
	case len(fit) > 1:
		return v1.Descriptor{}, fmt.Errorf("it has %d images, and says of none what it is for", len(fit))
	}
	return fit[0], nil
}

// disk writes the disk of a container image to f.packed: from the uppermost layer that has it.
func (f *fetch) disk(ctx context.Context, m *v1.Manifest, open func(v1.Descriptor) (*os.File, error)) error {
	want, err := diskPath(f.Path)
	if err != nil {
		return err
	}
	hidden := map[string]bool{}
	for _, layer := range slices.Backward(m.Layers) {
		file, err := open(layer)
		if err != nil {
			return err
		}
		found, err := f.extract(ctx, file, want, hidden)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
		if found {
			return nil
		}
	}
	return fmt.Errorf("the container image has no disk: there is no file %s", "/"+strings.TrimSuffix(want, "/")+map[bool]string{true: "/*"}[strings.HasSuffix(want, "/")])
}

// extract writes the wanted file of a layer to f.packed. A layer's whiteouts are added to hidden,
// for the layers below.
func (f *fetch) extract(ctx context.Context, file *os.File, want string, hidden map[string]bool) (bool, error) {
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	header := make([]byte, 16)
	n, err := file.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	kind, limit := compressionOf(header[:n]), f.o.maxSize()
	if kind == xzPacked { // no registry has such layers
		return false, fmt.Errorf("%w (%s): layers are packed with gzip or zstd", errPacked, kind)
	}
	if kind == unpackedAlready {
		kind = archived
	}
	report := f.o.meter(Unpacking)
	in, err := unpacker(kind, bufio.NewReaderSize(&reader{ctx: ctx, r: io.NewSectionReader(file, 0, info.Size()), report: func(n int64) { report(n, info.Size()) }}, bufferSize))
	if err != nil {
		return false, explainUnpacking(ctx, kind, limit, err)
	}
	defer func() { _ = in.Close() }()
	// A file of the limit, and other files beside it.
	bounded := &io.LimitedReader{R: in, N: 2*limit + 1<<20}
	found, err := f.search(tar.NewReader(bounded), want, hidden, limit)
	if bounded.N <= 0 {
		err = errLimit
	}
	return found != "", explainUnpacking(ctx, kind, limit, err)
}

// hiddenAbove reports whether a layer above has removed a directory, which ends in a slash, or one
// that it is in.
func hiddenAbove(hidden map[string]bool, dir string) bool {
	for ; dir != ""; dir, _ = path.Split(strings.TrimSuffix(dir, "/")) {
		if hidden[dir] {
			return true
		}
	}
	return hidden[""]
}

func (f *fetch) search(t *tar.Reader, want string, hidden map[string]bool, limit int64) (found string, err error) {
	var below []string
	for range maxEntries {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			for _, name := range below {
				hidden[name] = true
			}
			return found, nil
		}
		if err != nil {
			return found, err
		}
		p := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		dir, base := path.Split(p)
		if of, ok := strings.CutPrefix(base, ".wh."); ok {
			if of == ".wh..opq" {
				below = append(below, dir)
			} else {
				below = append(below, dir+of, dir+of+"/")
			}
			continue
		}
		wanted := p == want || want == "disk/" && dir == want
		if !wanted || hidden[p] || hiddenAbove(hidden, dir) {
			continue
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse {
			if h.Typeflag == tar.TypeDir && p != want {
				continue
			}
			return found, refusal{fmt.Errorf("/%s is no ordinary file", p)}
		}
		if found != "" {
			return found, refusal{fmt.Errorf("there are several files in /disk (/%s, /%s): name one as the path", found, p)}
		}
		if h.Size > limit {
			return found, errLimit
		}
		if err := writeImage(f.packed(), t, limit); err != nil {
			return found, err
		}
		found = p
	}
	return found, refusal{errors.New("there are too many files in it")}
}

func (f *fetch) fromFiles(ctx context.Context, kind Kind, want *digest) (_ sums, _ string, err error) {
	var l layoutFiles = layoutDirectory(strings.TrimPrefix(f.Location, layoutPrefix))
	if kind == Archive {
		a, err := openArchive(strings.TrimPrefix(f.Location, archivePrefix))
		if err != nil {
			return sums{}, "", err
		}
		defer func() { err = errors.Join(err, a.file.Close()) }()
		l = a
	}
	read := func(name string) ([]byte, error) {
		r, err := l.open(name)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(io.LimitReader(r, maxManifest+1))
	}
	text, err := read("index.json")
	if err != nil {
		return sums{}, "", fmt.Errorf("it is no OCI image layout: %w", err)
	}
	var top sums
	manifest, err := manifestOf(text, func(h v1.Hash) ([]byte, error) {
		if top.sha256 == "" {
			top.sha256 = h.Hex
			if want != nil {
				if err := top.compare(want); err != nil {
					return nil, err
				}
			}
		}
		return read(blobName(h))
	})
	if err != nil {
		return sums{}, "", err
	}
	return top, f.packed(), f.disk(ctx, manifest, func(layer v1.Descriptor) (*os.File, error) {
		want, err := parseDigest(layer.Digest.String())
		if err != nil {
			return nil, err
		}
		if err := f.blob(ctx, l, layer, want); err != nil {
			return nil, fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
		return os.Open(f.part())
	})
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

func (f *fetch) blob(ctx context.Context, l layoutFiles, layer v1.Descriptor, want *digest) error {
	if err := discard(f.part(), f.part()+".json"); err != nil {
		return err
	}
	in, err := l.open(blobName(layer.Digest))
	if err != nil {
		return err
	}
	defer in.Close()
	report, h := f.o.meter(Copying), want.hash()
	r := &reader{ctx: ctx, r: in, report: func(n int64) { report(n, layer.Size) }}
	if err := writeImage(f.part(), io.TeeReader(r, h), f.o.maxSize()*2); err != nil {
		return explainUnpacking(ctx, unpackedAlready, f.o.maxSize()*2, err)
	}
	if got := h.Sum(nil); !bytes.Equal(got, want.want) {
		return ErrChecksum
	}
	return nil
}

type layoutFiles interface {
	open(name string) (io.ReadCloser, error)
}

type layoutDirectory string

func (d layoutDirectory) open(name string) (io.ReadCloser, error) {
	return openRegular(filepath.Join(string(d), filepath.FromSlash(name)))
}

type layoutArchive struct {
	file  *os.File
	files map[string][2]int64 // position and length
}

func openArchive(path string) (*layoutArchive, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	a := &layoutArchive{file: file, files: map[string][2]int64{}}
	if err := a.index(); err != nil {
		return nil, errors.Join(fmt.Errorf("it is no archive: %w", err), file.Close())
	}
	return a, nil
}

func (a *layoutArchive) index() error {
	t := tar.NewReader(a.file) // seeks rather than reads
	for range maxEntries {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg {
			a.files[strings.TrimPrefix(path.Clean("/"+h.Name), "/")] = [2]int64{at, h.Size}
		}
	}
	return errors.New("there are too many files in it")
}

func (a *layoutArchive) open(name string) (io.ReadCloser, error) {
	at, ok := a.files[name]
	if !ok {
		return nil, fmt.Errorf("it has no %s", name)
	}
	return io.NopCloser(io.NewSectionReader(a.file, at[0], at[1])), nil
}
