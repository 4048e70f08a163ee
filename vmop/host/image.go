package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Image is what the disk of a new machine is a copy of.
type Image struct {
	// Source is a file, a URL of http or https, or a container image that has a disk:
	// see [imagesource.Source].
	Source string
	// Path is that of the disk in a container image; empty for the only file in /disk.
	Path string
	// Checksum is sha256:HEX or sha512:HEX of the source's content, for a container image
	// the digest of its manifest; empty trusts it.
	Checksum string
	// Checksums is the URL of a list with the checksum of the source, which counts if
	// Checksum is empty; see [PublicImage].
	Checksums string
	// CA are certificates (PEM) that servers may be trusted by, beside this host's.
	CA []byte
	// Size is what the disk gets, in bytes; 0 is what the image has. No image is made
	// smaller.
	Size int64
}

// Check says what is wrong with an image before anything is made of it.
func (i Image) Check() error { return i.source().Check() }

func (i Image) source() imagesource.Source {
	return imagesource.Source{Location: i.Source, Path: i.Path, Checksum: i.Checksum, CA: i.CA}
}

// sourceOptions bound what is fetched: unpacked it is a disk of the size, with what
// qcow2 has beside that. Whoever names a source may mean this host by it.
func (i Image) sourceOptions(o ImageOptions) imagesource.Options {
	out := imagesource.Options{Local: imagesource.LocalNamed, Progress: o.Progress}
	if i.Size > 0 {
		out.MaxSize = i.Size + i.Size/8 + 64<<20
	}
	return out
}

// explain adds to an error what helps.
func (i Image) explain(err error) error {
	if i.Size > 0 && errors.Is(err, imagesource.ErrTooLarge) {
		return fmt.Errorf("%w: no disk is made smaller, and this one shall have %s", err, mebibytes(uint64(i.Size)))
	}
	return err
}

// CreateFromImage is [Host.Create] of a machine whose disk [SystemDisk] is a copy of
// an image, which is looked at, and enlarged. What is interrupted leaves no machine.
func (h *Host) CreateFromImage(ctx context.Context, o *spec.Object, g Given, image Image, options ImageOptions) (Machine, error) {
	if err := image.Check(); err != nil {
		return Machine{}, err
	}
	kind, err := image.source().Kind()
	if err != nil {
		return Machine{}, err
	}
	to, err := h.free(o.Namespace, o.Name)
	if err != nil {
		return Machine{}, err
	}
	if _, _, err := h.configuration(o, g); err != nil {
		return Machine{}, err
	}
	var held *os.File // of the cache
	if kind == imagesource.HTTP || kind == imagesource.Registry {
		if _, held, _, err = h.pull(ctx, image, options); err != nil {
			return Machine{}, fmt.Errorf("image %s: %w", image.source(), image.explain(err))
		}
		defer held.Close()
	}
	parent := filepath.Dir(to.Data)
	if err := makePrivate(parent); err != nil {
		return Machine{}, fmt.Errorf("directory of the machine: %w", err)
	}
	if err := removeAbandoned(parent, newMachinePrefix); err != nil {
		return Machine{}, err
	}
	tmp, err := os.MkdirTemp(parent, newMachinePrefix+o.Name+"-")
	if err != nil {
		return Machine{}, err
	}
	err = fillFromImage(ctx, tmp, o, g, image, held, options)
	if err == nil {
		err = moveNew(tmp, to.Data)
	}
	if err != nil {
		return Machine{}, errors.Join(fmt.Errorf("image %s: %w", image.source(), image.explain(err)), os.RemoveAll(tmp))
	}
	return h.Machine(o.Namespace, o.Name)
}

// newMachinePrefix begins the names of machines that are being made of images, each of
// which is locked.
const newMachinePrefix = ".new-"

func fillFromImage(ctx context.Context, dir string, o *spec.Object, g Given, image Image, held *os.File, options ImageOptions) (err error) {
	own, err := runner.Lock(dir) // nobody takes it for abandoned
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	disk := filepath.Join(dir, SystemDisk+".img")
	if err := image.fetch(ctx, held, disk, options); err != nil {
		return err
	}
	if err := prepareImage(ctx, disk, image.Size); err != nil {
		return err
	}
	return errors.Join(Directories{Data: dir}.keep(o, g), atomicfile.SyncDir(dir))
}

// fetch makes a disk of the image, which is held if it is one of the cache.
func (i Image) fetch(ctx context.Context, held *os.File, to string, options ImageOptions) error {
	if held == nil {
		if err := checkUnused(i.Source); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, err := imagesource.Fetch(ctx, i.source(), to, i.sourceOptions(options))
		return err
	}
	if err := checkRoom(filepath.Dir(to), []string{held.Name()}); err != nil {
		return err
	}
	info, err := held.Stat()
	if err != nil {
		return err
	}
	var done int64
	return filecopy.CopyFrom(ctx, held, to, func(n int64) {
		if done += n; options.Progress != nil {
			options.Progress(imagesource.Progress{Step: imagesource.Copying, Done: done, Total: info.Size()})
		}
	})
}

// prepareImage looks at an image that was copied, and makes it as large as its disk
// shall be; 0 leaves it as it is.
func prepareImage(ctx context.Context, path string, size int64) error {
	if err := checkUpload(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := make([]byte, min(info.Size(), imageinspect.HeaderSize))
	if _, err := io.ReadFull(f, header); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(header) == 0 {
		return errors.New("it is empty")
	}
	format, has, err := imageinspect.ProbeFormat(header, info.Size())
	if err != nil {
		return err
	}
	switch {
	case size == 0: // as large as it is
		return nil
	case has > size:
		return fmt.Errorf("its disk has %d bytes (%s), more than the %s asked for: no disk is made smaller", has, mebibytes(uint64(has)), mebibytes(uint64(size)))
	case has == size:
		return nil
	case format == imageinspect.FormatQcow2:
		return growQCOW2(ctx, path, size)
	}
	return filecopy.Grow(f, size)
}

// growQCOW2 has QEMU's tool enlarge an image, of which it reads no other file:
// ProbeFormat has seen to that.
func growQCOW2(ctx context.Context, path string, size int64) error {
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		return fmt.Errorf("a qcow2 image is enlarged by qemu-img, which is not installed (Debian: package qemu-utils): %w", err)
	}
	out, err := exec.CommandContext(ctx, tool, "resize", "-q", "-f", "qcow2", path, strconv.FormatInt(size, 10)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("enlarge it: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
