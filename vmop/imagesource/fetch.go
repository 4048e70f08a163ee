package imagesource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
)

// defaultMaxSize is the maximum size of an image if Options.MaxSize is not set, in bytes.
const defaultMaxSize = 256 << 30

// ErrTooLarge means that an image, or what it is unpacked from, is larger than allowed.
var ErrTooLarge = errors.New("it is too large")

// Step is what [Fetch] is doing.
type Step string

// The values of Step, in their order.
const (
	Downloading Step = "downloading"
	Verifying   Step = "verifying"
	Unpacking   Step = "unpacking"
	Copying     Step = "copying"
	Converting  Step = "converting"
)

// Progress is how far [Fetch] is.
type Progress struct {
	Step Step
	// Done and Total are bytes of what is read in this step; Total is 0 if it is
	// unknown.
	Done, Total int64
	// Rate is bytes per second since the step began, without what was there before.
	Rate int64
}

// Options are how an image is fetched.
type Options struct {
	// MaxSize is what the image, unpacked, and the disk in it may have, in bytes; 0 is
	// 256 GiB.
	MaxSize int64
	// MaxDisk is what the disk in it may have, if that is not MaxSize: of an image that
	// is kept and not used as a disk the file alone takes room.
	MaxDisk int64
	// Local is which addresses of this host are allowed.
	Local Local
	// Stall is how long a server may send nothing; 0 is a minute.
	Stall time.Duration
	// Progress is called often, with how far Fetch is; nil for none.
	Progress func(Progress)
	// Take has a file of this host become the image, if it is one as it stands, rather
	// than a copy: it is the caller's, who has made it for this.
	Take bool
	// Have is the version of the source that the caller has already: if it is current, Fetch makes
	// nothing, and its error is ErrUnchanged. Files are always fetched.
	Have Version

	// pause is the wait before a download goes on; nil except in tests.
	pause func(ctx context.Context, failures int) error
}

func (o Options) maxSize() int64 {
	if o.MaxSize > 0 {
		return o.MaxSize
	}
	return defaultMaxSize
}

func (o Options) stall() time.Duration {
	if o.Stall > 0 {
		return o.Stall
	}
	return defaultStall
}

// meter reports the progress of one step.
func (o Options) meter(step Step) func(done, total int64) {
	if o.Progress == nil {
		return func(int64, int64) {}
	}
	var started time.Time
	var first int64
	return func(done, total int64) {
		if started.IsZero() || done < first {
			started, first = time.Now(), done
		}
		p := Progress{Step: step, Done: done, Total: total}
		if s := time.Since(started).Seconds(); s > 0 {
			p.Rate = int64(float64(done-first) / s)
		}
		o.Progress(p)
	}
}

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

// fetch is one run of [Fetch].
type fetch struct {
	Source
	o       Options
	to      string
	version Version // of what was got
}

// part is a download, packed a file of an archive, unpacked and converted the image
// as far as it is.
func (f *fetch) part() string      { return f.to + ".part" }
func (f *fetch) packed() string    { return f.to + ".packed" }
func (f *fetch) unpacked() string  { return f.to + ".unpacked" }
func (f *fetch) converted() string { return f.to + ".converted" }

// discard removes what no later run goes on with.
func discard(paths ...string) error {
	var errs []error
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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
	if err := os.Rename(image, f.to); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(f.to))
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

// client is that of servers that the source names.
func (f *fetch) client() (*http.Client, error) {
	g := newGuard(f.o.Local, f.Location)
	t, err := g.transport(f.CA)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t, CheckRedirect: g.redirect}, nil
}

func (f *fetch) download(url string, client *http.Client, want *digest, size int64) *download {
	return &download{
		url: url, client: client, digest: want, size: size, max: f.o.maxSize() + f.o.maxSize()/8 + 1<<20, stall: f.o.stall(), pause: f.o.pause,
		part: f.part(), report: f.o.meter(Downloading), verifying: f.o.meter(Verifying),
	}
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

func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // opening a pipe would wait for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no file", path)
	}
	return os.Open(path)
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

// sums are the digests of a content, in hexadecimal digits.
type sums struct{ sha256, sha512 string }

func (s sums) compare(d *digest) error {
	got := s.sha256
	if d.kind == "sha512" {
		got = s.sha512
	}
	if want := hex.EncodeToString(d.want); got != want {
		return fmt.Errorf("%w: its checksum is %s, and not the %s that was given", ErrChecksum, got, want)
	}
	return nil
}

// ErrChecksum means that the content has another checksum than it must have.
var ErrChecksum = errors.New("it is another image, or damaged")

// digestsOf reads a file from its start. SHA-512 is slower, and computed only if it is wanted.
func digestsOf(ctx context.Context, file *os.File, want *digest, report func(done, total int64)) (sums, error) {
	info, err := file.Stat()
	if err != nil {
		return sums{}, err
	}
	a, b := sha256.New(), sha512.New()
	r := &reader{ctx: ctx, r: io.NewSectionReader(file, 0, info.Size()), report: func(n int64) { report(n, info.Size()) }}
	to, long := io.Writer(a), want != nil && want.kind == "sha512"
	if long {
		to = io.MultiWriter(a, b)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, r, make([]byte, bufferSize)); err != nil {
		return sums{}, err
	}
	out := sums{sha256: hex.EncodeToString(a.Sum(nil))}
	if long {
		out.sha512 = hex.EncodeToString(b.Sum(nil))
	}
	return out, nil
}

// reader ends with its context, and reports its progress.
type reader struct {
	ctx    context.Context
	r      io.Reader
	n      int64
	report func(int64)
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.r.Read(p)
	r.n += int64(n)
	r.report(r.n)
	return n, err
}

// quantity formats a number of bytes for display.
func quantity(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift {
			whole, tenth := n>>u.shift, (n&(1<<u.shift-1))*10>>u.shift
			if tenth == 0 || whole >= 100 {
				return fmt.Sprintf("%d %s", whole, u.name)
			}
			return fmt.Sprintf("%d.%d %s", whole, tenth, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
