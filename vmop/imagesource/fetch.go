package imagesource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
)

// Result describes a fetched image.
type Result struct {
	// Format is raw, qcow2 or iso9660, and VirtualSize the size that a guest sees, in bytes.
	Format      imageinspect.Format
	VirtualSize int64
	// SHA256 and SHA512 are the digests of the source's content, in hexadecimal digits: for a
	// container image SHA256 is its manifest's digest. They are empty for a file without a
	// checksum, and SHA512 unless the source has such a checksum.
	SHA256, SHA512 string
	// Version is the source's version of this content; empty if it has none.
	Version Version
}

// Fetch creates a file from a source: an image that refers to no other file, readable by its owner
// only, and on the storage when Fetch returns. The path must not exist.
//
// Only one call at a time may fetch to a path. An interrupted one leaves the files of [Leftovers]
// beside the path, from which the next Fetch of the same source resumes. Errors do not contain the
// location.
func Fetch(ctx context.Context, s Source, to string, o Options) (Result, error) {
	if err := s.Check(); err != nil {
		return Result{}, err
	}
	if _, err := os.Lstat(to); err == nil {
		return Result{}, &fs.PathError{Op: "fetch", Path: to, Err: fs.ErrExist}
	}
	if o.pause == nil {
		o.pause = wait
	}
	f := &fetch{Source: s, o: o, to: to}
	return f.run(ctx)
}

// Leftovers returns the files that an interrupted [Fetch] to a path may have left.
func Leftovers(to string) []string {
	f := fetch{to: to}
	return []string{f.part(), f.part() + ".json", f.packed(), f.unpacked(), f.converted()}
}

func (f *fetch) run(ctx context.Context) (_ Result, err error) {
	if err := discard(f.packed(), f.unpacked(), f.converted()); err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, discard(f.packed(), f.unpacked(), f.converted())) }()
	got, path, err := f.get(ctx)
	if errors.Is(err, ErrUnchanged) {
		return Result{}, errors.Join(err, discard(f.part(), f.part()+".json"))
	}
	if err != nil {
		return Result{}, err
	}
	own := path != f.Location
	r, image, err := f.image(ctx, path, own || f.o.Take)
	if err != nil {
		if own { // the next attempt would fail likewise
			if ctx.Err() == nil {
				err = errors.Join(err, discard(f.part(), f.part()+".json"))
			}
		}
		return Result{}, err
	}
	r.SHA256, r.SHA512, r.Version = got.sha256, got.sha512, f.version
	if err := f.finish(image); err != nil {
		return Result{}, err
	}
	return r, discard(f.part(), f.part()+".json")
}

func (f *fetch) finish(image string) error {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return err
	}
	return atomicfile.Rename(image, f.to)
}

func (f *fetch) get(ctx context.Context) (sums, string, error) {
	want, err := parseDigest(f.Checksum)
	if err != nil {
		return sums{}, "", err
	}
	kind, err := f.Kind()
	if err != nil {
		return sums{}, "", err
	}
	switch kind {
	case HTTP:
		client, err := f.client()
		if err != nil {
			return sums{}, "", err
		}
		d := f.download(f.Location, client, want, 0)
		d.have = f.o.Have
		got, err := d.run(ctx)
		f.version = d.version
		return got, f.part(), err
	case Registry:
		return f.fromRegistry(ctx, want)
	case Archive, Layout:
		return f.fromFiles(ctx, kind, want)
	}
	got, err := f.fromFile(ctx, want)
	return got, f.Location, err
}

func (f *fetch) fromFile(ctx context.Context, want *digest) (sums, error) {
	file, err := openRegular(f.Location)
	if err != nil {
		return sums{}, err
	}
	defer file.Close()
	if want == nil {
		return sums{}, nil
	}
	got, err := digestsOf(ctx, file, want, f.o.meter(Verifying))
	if err != nil {
		return sums{}, err
	}
	return got, got.compare(want)
}

// image unpacks and converts a file where needed, and returns the name of the image. Unless own,
// the file itself is not moved.
func (f *fetch) image(ctx context.Context, path string, own bool) (Result, string, error) {
	file, err := openRegular(path)
	if err != nil {
		return Result{}, "", err
	}
	defer func() { _ = file.Close() }() // was only read
	packed, err := f.unpack(ctx, file)
	if err != nil {
		return Result{}, "", err
	}
	image := path
	if packed {
		if err := file.Close(); err != nil {
			return Result{}, "", err
		}
		image, own = f.unpacked(), true
		if file, err = os.Open(image); err != nil {
			return Result{}, "", err
		}
	}
	info, err := file.Stat()
	if err != nil {
		return Result{}, "", err
	}
	// If the disk may be larger than the file, nothing else bounds a file that is not compressed.
	if limit := f.o.maxSize(); f.o.MaxDisk > 0 && info.Size() > limit {
		return Result{}, "", fmt.Errorf("%w: it has %s, and %s are as much as is taken", ErrTooLarge, quantity(info.Size()), quantity(limit))
	}
	format, size, err := imageinspect.ProbeImported(file, info.Size())
	if err != nil {
		return Result{}, "", err
	}
	if limit := cmp.Or(f.o.MaxDisk, f.o.maxSize()); size > limit {
		return Result{}, "", fmt.Errorf("%w: its disk has %s, and %s are as much as is taken", ErrTooLarge, quantity(size), quantity(limit))
	}
	switch {
	case format == imageinspect.FormatVMDK || format == imageinspect.FormatVDI:
		if err := f.convert(ctx, image, format, size); err != nil {
			return Result{}, "", err
		}
		image = f.converted()
		said := size
		if format, size, err = probeFile(image); err != nil {
			return Result{}, "", err
		}
		if size > filecopy.Aligned(said) {
			return Result{}, "", fmt.Errorf("%w: its disk has %s, and its header says %s", ErrTooLarge, quantity(size), quantity(said))
		}
	case !own:
		report := f.o.meter(Copying)
		var done int64
		if err := checkRoom(filepath.Dir(f.to), filecopy.Allocated(info)); err != nil {
			return Result{}, "", err
		}
		err := filecopy.CopyFrom(ctx, file, f.unpacked(), func(n int64) { done += n; report(done, info.Size()) })
		if err != nil {
			return Result{}, "", err
		}
		image = f.unpacked()
		// The copy counts, in case the source has changed.
		if format, size, err = probeFile(image); err != nil {
			return Result{}, "", err
		}
	}
	return Result{Format: format, VirtualSize: size}, image, nil
}

func probeFile(path string) (imageinspect.Format, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", 0, err
	}
	return imageinspect.ProbeImported(file, info.Size())
}
