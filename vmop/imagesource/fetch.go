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

// Result is what was fetched.
type Result struct {
	// Format is raw, qcow2 or iso9660, and VirtualSize what a guest sees of it, in bytes.
	Format      imageinspect.Format
	VirtualSize int64
	// SHA256 and SHA512 are those of what the location has, in hexadecimal digits: for a
	// container image its manifest's digest as SHA256. A file has none, and nothing
	// has a SHA512, unless the source has such a checksum.
	SHA256, SHA512 string
	// Version is what the source calls this content; empty if it does not.
	Version Version
}

// Fetch makes a file of a source: an image that refers to no other file, readable by its owner
// only, and on the storage when Fetch returns. The path must not exist.
//
// Only one call at a time may fetch to a path. An interrupted one leaves files beside the path,
// with which the next Fetch of the same source goes on, and which [Leftovers] names. An error is
// about the source, without its location.
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

// Leftovers are the files that an interrupted [Fetch] to a path may have left.
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
		if own { // it is what it is, and the next attempt would fail likewise
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

// finish gives the image its name, once the storage has it.
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

// get makes the source a file of this host, as it is, and compares its checksum.
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

// fromFile compares the checksum of a file, if there is one.
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

// image makes an image of a file that may be packed or of another format. Only what
// is the run's own is moved; the name of what it has made is returned.
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
	// Where the disk in it may be larger, nothing else bounds a file that is not packed.
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
		// What was copied counts, whatever the source has by now.
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
