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
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A disk of a manifest's image is created in two steps. Before the machine is started, a remote
// image is fetched into the cache by a process that can report progress; the engine, which holds
// the machine's lock, copies it from there. So no other process has the disk meanwhile, and no disk
// depends on the cache.

func imageOfDrive(d *runnerconfig.Drive) Image {
	return Image{Source: d.Image.Source, Path: d.Image.Path, Checksum: d.Image.Checksum, CA: []byte(d.Image.CABundle), Size: int64(d.Size)}
}

// The values of a drive's PullPolicy that are not the default.
const (
	pullAlways = "Always"
	pullNever  = "Never"
)

func (h *Host) pullImages(ctx context.Context, j *Job, options func(source string) ImageOptions) error {
	if options == nil {
		options = func(string) ImageOptions { return ImageOptions{} }
	}
	for i := range j.Config.Runner.VM.Drives {
		d := &j.Config.Runner.VM.Drives[i]
		if d.Image == nil || !d.Ephemeral() && exists(d.Where()) {
			continue
		}
		image := imageOfDrive(d)
		id, err := h.pullFor(ctx, d, image, options(image.source().String()))
		if err != nil {
			return fmt.Errorf("disk %q: image %s: %w", d.Name, image.source(), image.explain(err))
		}
		if id != "" {
			if j.Images == nil {
				j.Images = map[string]string{}
			}
			j.Images[d.Name] = id
		}
		if d.Ephemeral() {
			j.NewDisks = append(j.NewDisks, NewDisk{Name: d.Name, Path: d.Where(), Size: int64(d.Size), Image: image.source().String(), Ephemeral: true})
		}
	}
	return nil
}

// pullFor fetches the image of a drive, and returns its id in the cache: "" for a file of this
// host.
func (h *Host) pullFor(ctx context.Context, d *runnerconfig.Drive, image Image, o ImageOptions) (string, error) {
	if err := image.Check(); err != nil {
		return "", err
	}
	switch kind, err := image.source().Kind(); {
	case err != nil:
		return "", err
	case kind != imagesource.HTTP && kind != imagesource.Registry:
		name := image.source().LocalPath()
		if _, err := os.Stat(name); err != nil {
			return "", err
		}
		return "", nil
	}
	if d.Image.PullPolicy == pullNever {
		r, ok, err := h.cache().find(image.source())
		if err == nil && !ok {
			err = fmt.Errorf("%w here, and its pullPolicy is Never: fetch it with vmop-cli image pull, or say IfNotPresent", ErrNoImage)
		}
		return r.id, err
	}
	o.Refresh = d.Image.PullPolicy == pullAlways
	r, held, _, err := h.pull(ctx, image, o)
	if err != nil {
		return "", err
	}
	return r.id, held.Close()
}

func (j *Job) makeImage(ctx context.Context, d runnerconfig.Drive, progress func(string)) (err error) {
	image := imageOfDrive(&d)
	defer func() {
		if err != nil {
			err = fmt.Errorf("image %s: %w", image.source(), image.explain(err))
		}
	}()
	kind, err := image.source().Kind()
	if err != nil {
		return err
	}
	var held *os.File
	if kind == imagesource.HTTP || kind == imagesource.Registry {
		id := j.Images[d.Name]
		if id == "" {
			return errors.New("it was not there when the machine was about to start: start it again")
		}
		var ok bool
		if held, ok, err = (imageCache{j.ImageCache}).hold(id); err != nil {
			return err
		} else if !ok {
			return fmt.Errorf("%w in the cache any more: start the machine again", ErrNoImage)
		}
		defer held.Close()
	}
	to := d.Where()
	tmp := to + ".making"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an interrupted one
		return err
	}
	last := imagesource.Step("")
	err = image.fetch(ctx, held, tmp, ImageOptions{Progress: func(p imagesource.Progress) {
		if p.Step != last { // one line for each step
			last = p.Step
			progress(string(p.Step) + " " + image.source().String())
		}
	}})
	if err == nil {
		err = prepareImage(ctx, tmp, image.Size)
	}
	if err != nil {
		return errors.Join(err, discard(tmp))
	}
	return atomicfile.Rename(tmp, to)
}

func discard(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fetch creates a disk from the image; held is the open image if it is in the cache.
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
	case size == 0:
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

// growQCOW2 enlarges an image with qemu-img, which reads no other file: ProbeFormat has checked
// that.
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
