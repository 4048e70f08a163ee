package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/imagesource"
)

// CachedImage is a remote image in this host's cache. Disks are copies of it: no machine depends on
// it.
type CachedImage struct {
	// Digest is sha256:HEX of the source's content: of the file before it is unpacked, or of a
	// container image's manifest. SHA512 is the file's, if it was requested.
	Digest string `json:"digest"`
	SHA512 string `json:"sha512,omitempty"`
	// Path is the disk's path in a container image, if one was given.
	Path string `json:"path,omitempty"`
	// Sources are its origins, without passwords and queries.
	Sources []string `json:"sources"`
	// Format is raw, qcow2 or iso9660, and Size what a guest sees of it, in bytes.
	Format imageinspect.Format `json:"format"`
	Size   int64               `json:"size"`
	// Allocated is the space that the image takes, in bytes.
	Allocated int64 `json:"allocated"`
	// Fetched is when it was fetched, and Used when it was last copied to a disk or requested.
	Fetched time.Time `json:"fetched"`
	Used    time.Time `json:"used"`
	// File is the path of the image. It must not be changed.
	File string `json:"file"`
	// InUse is why it cannot be deleted now; empty if it can.
	InUse string `json:"inUse,omitempty"`
}

// ErrNoImage is the error when the cache has no such image.
var ErrNoImage = errors.New("no such image")

// ErrImageInUse is the error when an image of the cache cannot be deleted now.
var ErrImageInUse = errors.New("the image is in use")

// cacheDir has, in images, each image by a name derived from its digest, with a record; and in
// pulls the unfinished downloads, by names derived from the sources.
const cacheDir = "image-cache"

type imageRecord struct {
	Digest  string              `json:"digest"`
	SHA512  string              `json:"sha512,omitempty"`
	Path    string              `json:"path,omitempty"`
	Sources []recordedSource    `json:"sources"`
	Format  imageinspect.Format `json:"format"`
	Size    int64               `json:"size"`
	Fetched time.Time           `json:"fetched"`

	id string
}

// recordedSource is a source by a digest of all its fields, and as people may see it.
type recordedSource struct {
	Key      string `json:"key"`
	Location string `json:"location"`
	// Version is the source's version of this content.
	Version imagesource.Version `json:"version,omitempty"`
}

func (r *imageRecord) version(s imagesource.Source) imagesource.Version {
	for _, from := range r.Sources {
		if from.Key == sourceKey(s) {
			return from.Version
		}
	}
	return ""
}

type imageCache struct{ dir string }

func (h *Host) cache() imageCache { return imageCache{filepath.Join(h.root, cacheDir)} }

func (c imageCache) images() string          { return filepath.Join(c.dir, "images") }
func (c imageCache) pulls() string           { return filepath.Join(c.dir, "pulls") }
func (c imageCache) image(id string) string  { return filepath.Join(c.images(), id+".img") }
func (c imageCache) record(id string) string { return filepath.Join(c.images(), id+".json") }

// digestID identifies a content: each disk in a container image is another one.
func digestID(digest, path string) string {
	id := strings.TrimPrefix(digest, "sha256:")
	if path != "" {
		sum := sha256.Sum256([]byte(digest + "\n" + path))
		id = hex.EncodeToString(sum[:])
	}
	return id
}

func sourceKey(s imagesource.Source) string {
	sum := sha256.Sum256([]byte(s.Location + "\n" + s.Path))
	return hex.EncodeToString(sum[:16])
}

func (c imageCache) records() ([]imageRecord, error) {
	names, err := filepath.Glob(filepath.Join(c.images(), "*.json"))
	if err != nil {
		return nil, err
	}
	var out []imageRecord
	for _, name := range names {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		r := imageRecord{id: strings.TrimSuffix(filepath.Base(name), ".json")}
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("read what is known of an image, %s: %w", name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func (c imageCache) write(r *imageRecord) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(c.record(r.id), append(data, '\n'))
}

// find returns the image with the source's checksum, or without one the last image of the source.
func (c imageCache) find(s imagesource.Source) (imageRecord, bool, error) {
	all, err := c.records()
	if err != nil {
		return imageRecord{}, false, err
	}
	i := slices.IndexFunc(all, func(r imageRecord) bool {
		if s.Checksum != "" {
			return r.Path == s.Path && (strings.EqualFold(r.Digest, s.Checksum) || strings.EqualFold(r.SHA512, s.Checksum))
		}
		return slices.ContainsFunc(r.Sources, func(from recordedSource) bool { return from.Key == sourceKey(s) })
	})
	if i < 0 {
		return imageRecord{}, false, nil
	}
	return all[i], true, nil
}

// lockRetry is the polling interval of a lock: flock cannot wait for a context.
const lockRetry = 200 * time.Millisecond

// lockFile calls waiting once with the holder of the lock that it waits for.
func lockFile(ctx context.Context, path string, waiting func(who string)) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			if err = f.Truncate(0); err == nil {
				_, err = f.WriteAt([]byte(fmt.Sprint(os.Getpid())), 0)
			}
		}
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if !told && waiting != nil {
			who := make([]byte, 20)
			n, _ := f.ReadAt(who, 0) // only for people
			waiting(strings.TrimSpace("process " + string(who[:n])))
		}
		t := time.NewTimer(lockRetry)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-t.C:
		}
	}
}

// hold opens an image of the cache, which is not deleted until the file is closed. It returns false
// if the image was deleted.
func (c imageCache) hold(id string) (*os.File, bool, error) {
	f, err := os.Open(c.image(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return nil, false, f.Close()
	}
	held, err := f.Stat()
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	if info, err := os.Stat(c.image(id)); err != nil || !os.SameFile(info, held) {
		return nil, false, f.Close()
	}
	return f, true, nil
}

// PullImage fetches an image into the cache of this host, unless it is there. Concurrent pulls of
// one image fetch it once. If interrupted, it leaves no image, and the next PullImage resumes the
// download. Files of this host are not cached.
func (h *Host) PullImage(ctx context.Context, image Image, o ImageOptions) (_ CachedImage, fetched bool, err error) {
	r, file, fetched, err := h.pull(ctx, image, o)
	if err != nil {
		return CachedImage{}, false, fmt.Errorf("image %s: %w", image.source(), err)
	}
	if err := file.Close(); err != nil {
		return CachedImage{}, false, err
	}
	out, err := h.cache().describe(&r)
	return out, fetched, err
}

func (h *Host) pull(ctx context.Context, image Image, o ImageOptions) (_ imageRecord, _ *os.File, fetched bool, err error) {
	s := image.source()
	switch kind, err := s.Kind(); {
	case err != nil:
		return imageRecord{}, nil, false, err
	case kind != imagesource.HTTP && kind != imagesource.Registry:
		return imageRecord{}, nil, false, errors.New("it is on this host: use it as it is")
	}
	if s.Checksum == "" && image.Checksums != "" {
		if s.Checksum, err = imagesource.ListedChecksum(ctx, image.Checksums, s, image.sourceOptions(o)); err != nil {
			return imageRecord{}, nil, false, err
		}
	}
	if err := s.Check(); err != nil {
		return imageRecord{}, nil, false, err
	}
	c := h.cache()
	for _, dir := range []string{c.dir, c.images(), c.pulls()} {
		if err := makePrivate(dir); err != nil {
			return imageRecord{}, nil, false, fmt.Errorf("cache of images: %w", err)
		}
	}
	began := time.Now()
	known := func(refresh bool) (imageRecord, *os.File, bool, error) {
		r, ok, err := c.find(s)
		if err != nil || !ok || refresh && s.Checksum == "" && !r.Fetched.After(began) {
			return imageRecord{}, nil, false, err
		}
		f, ok, err := c.hold(r.id)
		if err == nil && ok {
			at := time.Now()
			_ = os.Chtimes(c.record(r.id), at, at) // the time is only for people, and for prune
		}
		return r, f, ok, err
	}
	if r, f, ok, err := known(o.Refresh); err != nil || ok {
		return r, f, false, err
	}
	own, err := lockFile(ctx, filepath.Join(c.pulls(), sourceKey(s)+".lock"), o.Waiting)
	if err != nil {
		return imageRecord{}, nil, false, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	// The previous holder of the lock may have fetched it.
	if r, f, ok, err := known(o.Refresh); err != nil || ok {
		return r, f, false, err
	}
	tmp := filepath.Join(c.pulls(), sourceKey(s))
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // fetched, and then interrupted
		return imageRecord{}, nil, false, err
	}
	before, held, ok, err := known(false) // a refresh depends on its version
	if err != nil {
		return imageRecord{}, nil, false, err
	}
	options := image.sourceOptions(o)
	if ok {
		options.Have = before.version(s)
	}
	got, err := imagesource.Fetch(ctx, s, tmp, options)
	if errors.Is(err, imagesource.ErrUnchanged) {
		return before, held, false, nil
	}
	if ok {
		err = errors.Join(err, held.Close())
	}
	if err != nil {
		return imageRecord{}, nil, false, err
	}
	r := imageRecord{
		Digest: "sha256:" + got.SHA256, Path: s.Path, Format: got.Format, Size: got.VirtualSize, Fetched: time.Now().UTC(),
		Sources: []recordedSource{{Key: sourceKey(s), Location: s.String(), Version: got.Version}}, id: digestID("sha256:"+got.SHA256, s.Path),
	}
	if got.SHA512 != "" {
		r.SHA512 = "sha512:" + got.SHA512
	}
	f, err := c.store(ctx, tmp, &r)
	return r, f, true, err
}

func (c imageCache) store(ctx context.Context, tmp string, r *imageRecord) (_ *os.File, err error) {
	own, err := lockFile(ctx, filepath.Join(c.dir, "lock"), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	all, err := c.records()
	if err != nil {
		return nil, err
	}
	for i := range all {
		o := &all[i]
		key := r.Sources[0].Key
		had := slices.ContainsFunc(o.Sources, func(s recordedSource) bool { return s.Key == key })
		switch {
		case o.id == r.id:
			r.Sources = append(r.Sources, slices.DeleteFunc(slices.Clone(o.Sources), func(s recordedSource) bool { return s.Key == key })...)
			if r.SHA512 == "" {
				r.SHA512 = o.SHA512
			}
		case had: // it has another content by now
			o.Sources = slices.DeleteFunc(o.Sources, func(s recordedSource) bool { return s.Key == key })
			if err := c.write(o); err != nil {
				return nil, err
			}
		}
	}
	if _, serr := os.Stat(c.image(r.id)); serr == nil { // the same content from another source
		err = os.Remove(tmp)
	} else if err = os.Chmod(tmp, 0o400); err == nil {
		err = os.Rename(tmp, c.image(r.id))
	}
	if err == nil {
		err = atomicfile.SyncDir(c.images())
	}
	if err == nil {
		err = c.write(r)
	}
	if err != nil {
		return nil, err
	}
	f, ok, err := c.hold(r.id) // the lock prevents its deletion
	if err == nil && !ok {
		err = ErrNoImage
	}
	return f, err
}

func (c imageCache) describe(r *imageRecord) (CachedImage, error) {
	out := CachedImage{Digest: r.Digest, SHA512: r.SHA512, Path: r.Path, Sources: []string{}, Format: r.Format, Size: r.Size, Fetched: r.Fetched.Truncate(time.Second), File: c.image(r.id)}
	for _, s := range r.Sources {
		out.Sources = append(out.Sources, s.Location)
	}
	if info, err := os.Stat(c.record(r.id)); err == nil {
		out.Used = info.ModTime().UTC().Truncate(time.Second)
	}
	var err error
	out.Allocated, err = allocated(out.File)
	return out, err
}

// Images are those of the cache, the latest first.
func (h *Host) Images() ([]CachedImage, error) {
	c := h.cache()
	all, err := c.records()
	if err != nil {
		return nil, err
	}
	users, err := h.diskUsers(nil)
	if err != nil {
		return nil, err
	}
	out := []CachedImage{}
	for i := range all {
		d, err := c.describe(&all[i])
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		d.InUse = users[d.File]
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b CachedImage) int { return b.Fetched.Compare(a.Fetched) })
	return out, nil
}

// DeleteImage removes an image from the cache, by its digest, a prefix of that, or a source. If it
// is a machine's disk, or is being copied to one, the error is [ErrImageInUse]. No machine's disk
// is removed.
func (h *Host) DeleteImage(ctx context.Context, name string) (deleted CachedImage, err error) {
	c := h.cache()
	all, err := c.records()
	if err != nil {
		return CachedImage{}, err
	}
	var fit []imageRecord
	for _, r := range all {
		digits := strings.TrimPrefix(name, "sha256:")
		bySource := slices.ContainsFunc(r.Sources, func(s recordedSource) bool {
			return s.Location == name || s.Key == sourceKey(imagesource.Source{Location: name, Path: r.Path})
		})
		if bySource || len(digits) >= minDigits && strings.HasPrefix(strings.TrimPrefix(r.Digest, "sha256:"), strings.ToLower(digits)) {
			fit = append(fit, r)
		}
	}
	switch {
	case len(fit) == 0:
		return CachedImage{}, fmt.Errorf("%s: %w", imagesource.Source{Location: name}, ErrNoImage)
	case len(fit) > 1:
		return CachedImage{}, fmt.Errorf("%s: there are %d such images: give more of the digest", imagesource.Source{Location: name}, len(fit))
	}
	users, err := h.diskUsers(nil)
	if err != nil {
		return CachedImage{}, err
	}
	return c.remove(ctx, &fit[0], users)
}

const minDigits = 6

func (c imageCache) remove(ctx context.Context, r *imageRecord, users map[string]string) (_ CachedImage, err error) {
	own, err := lockFile(ctx, filepath.Join(c.dir, "lock"), nil)
	if err != nil {
		return CachedImage{}, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	out, err := c.removable(r, users)
	if err != nil {
		return out, err
	}
	f, err := os.Open(out.File)
	if err != nil {
		return out, err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return out, fmt.Errorf("%w: a disk is being made of it", ErrImageInUse)
	}
	return out, errors.Join(os.Remove(c.record(r.id)), os.Remove(out.File))
}

func (c imageCache) removable(r *imageRecord, users map[string]string) (CachedImage, error) {
	out, err := c.describe(r)
	if err != nil {
		return out, err
	}
	path := out.File
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if by := users[path]; by != "" {
		return out, fmt.Errorf("%w: it is %s", ErrImageInUse, by)
	}
	if err := checkUnused(out.File); err != nil {
		return out, fmt.Errorf("%w: %w", ErrImageInUse, err)
	}
	return out, nil
}

// Pruned is the result of [Host.PruneImages].
type Pruned struct {
	Images []CachedImage
	// Partial is the number of removed incomplete downloads.
	Partial int
	// Freed is the freed space, in bytes.
	Freed int64
}

// PruneAfter is the default time without use after which an image is pruned.
const PruneAfter = 30 * 24 * time.Hour

// PruneImages removes the images of the cache that were not used for a time, as [Host.DeleteImage]
// does, and downloads that were not resumed for as long. Images in use are kept.
func (h *Host) PruneImages(ctx context.Context, unused time.Duration) (Pruned, error) {
	return h.prune(ctx, unused, true)
}

// Prunable is what [Host.PruneImages] would remove now. It changes nothing.
func (h *Host) Prunable(ctx context.Context, unused time.Duration) (Pruned, error) {
	return h.prune(ctx, unused, false)
}

func (h *Host) prune(ctx context.Context, unused time.Duration, remove bool) (Pruned, error) {
	var out Pruned
	c := h.cache()
	before := time.Now().Add(-unused)
	all, err := c.records()
	if err != nil {
		return out, err
	}
	users, err := h.diskUsers(nil)
	if err != nil {
		return out, err
	}
	for i := range all {
		if info, err := os.Stat(c.record(all[i].id)); err != nil || info.ModTime().After(before) {
			continue
		}
		gone, err := c.removable(&all[i], users)
		if err == nil && remove {
			gone, err = c.remove(ctx, &all[i], users)
		}
		if errors.Is(err, ErrImageInUse) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, err
		}
		out.Images = append(out.Images, gone)
		out.Freed += gone.Allocated
	}
	locks, err := filepath.Glob(filepath.Join(c.pulls(), "*.lock"))
	if err != nil {
		return out, err
	}
	for _, lock := range locks {
		freed, removed, err := prunePull(strings.TrimSuffix(lock, ".lock"), lock, before, remove)
		if err != nil {
			return out, err
		}
		if out.Freed += freed; removed {
			out.Partial++
		}
	}
	return out, nil
}

func prunePull(tmp, lock string, before time.Time, remove bool) (freed int64, removed bool, err error) {
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return 0, false, nil // it is under way
	}
	for _, path := range append(imagesource.Leftovers(tmp), tmp) {
		info, err := os.Stat(path)
		if err != nil || info.ModTime().After(before) {
			continue
		}
		n, err := allocated(path)
		if err != nil {
			return freed, removed, err
		}
		if remove {
			if err := os.Remove(path); err != nil {
				return freed, removed, err
			}
		}
		freed, removed = freed+n, true
	}
	return freed, removed, nil
}
