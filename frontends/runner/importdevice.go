package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// errOccupied is why a block device is left alone that has something on it.
var errOccupied = errors.New("there is something on the block device already that this disk was not made by: it is left alone")

// deviceHead is what of a block device is written last, in bytes. Until then it says whose
// the device is: what is not whole is taken for no disk, and an attempt after one that
// was cut short knows its own.
const deviceHead = 4096

// deviceMark is what the beginning of a device says while a disk is made on it, before whose.
const deviceMark = "vmop-runner: disk "

// headOf is what is at the beginning of a device while a disk is made on it.
func headOf(job runnerconfig.Import) []byte {
	head := make([]byte, deviceHead)
	copy(head, fmt.Sprintf(deviceMark+"%s is being made here\n", job.Disk))
	return head
}

// makeOnDevice makes a disk on a block device, which it is written over. One that begins
// with something else than zeros, the sign of an attempt before, or what the disk begins
// with, is somebody else's.
func makeOnDevice(ctx context.Context, job runnerconfig.Import, progress func(string), watch func(runnerconfig.ImportProgress)) (out runnerconfig.Imported, err error) {
	dev, err := os.OpenFile(job.File, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	size, err := sizeOf(dev)
	if err != nil {
		return out, err
	}
	head := make([]byte, min(deviceHead, size))
	if _, err := io.ReadFull(io.NewSectionReader(dev, 0, size), head); err != nil {
		return out, err
	}
	free := bytes.Equal(head, make([]byte, len(head))) || bytes.Equal(head, headOf(job)[:len(head)])
	if job.Copy != nil && job.Copy.CloneOf != "" {
		if out, err := adoptDevice(ctx, job, dev, size, watch); err != nil || out.Cloned {
			return out, err
		}
	}
	img, err := imageForDevice(ctx, job, progress, watch)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, img.discard()) }()
	if img.size > size {
		return out, fmt.Errorf("the disk has %d bytes, more than the %d of the block device: %w", img.size, size, errSmaller)
	}
	first, err := img.head(ctx)
	if err != nil {
		return out, err
	}
	// An attempt that was whole, and could not say so, has left the disk itself.
	if !free && !bytes.Equal(head, first[:len(head)]) {
		return out, errOccupied
	}
	if err := img.over(ctx, dev, size, headOf(job), first, progress, watch); err != nil {
		return out, err
	}
	return runnerconfig.Imported{Format: "raw", Size: size}, nil
}

// sizeOf is how large a file or a block device is, in bytes.
func sizeOf(f *os.File) (int64, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, err
	case info.Mode().IsRegular():
		return info.Size(), nil
	case info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0:
		return 0, fmt.Errorf("%s is neither a file nor a block device", f.Name())
	}
	return f.Seek(0, io.SeekEnd)
}

// deviceImage is what a block device becomes: an image, or another device.
type deviceImage struct {
	path, format string
	// size is that of the disk in it, in bytes.
	size int64
	// own: it was fetched for this, and goes when it is written.
	own bool
}

// imageForDevice is the image of a job, which is fetched if it is no copy.
func imageForDevice(ctx context.Context, job runnerconfig.Import, progress func(string), watch func(runnerconfig.ImportProgress)) (*deviceImage, error) {
	img := &deviceImage{path: filepath.Join(job.Scratch, "image"), own: true}
	if job.Copy != nil {
		img = &deviceImage{path: job.Copy.File}
	} else {
		if err := os.Remove(img.path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an attempt before
			return nil, err
		}
		if err := fetchImage(ctx, runnerconfig.Drive{File: img.path, Size: runnerconfig.Bytes(job.Size), Image: job.Image}, false, progress, watch); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(img.path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	file, err := sizeOf(f)
	if err != nil {
		return nil, err
	}
	if job.Copy != nil {
		img.format = job.Copy.Format
		img.size, err = probeAs(f, file, img.format)
	} else {
		img.format, img.size, err = probe(img.path, job)
	}
	if err == nil && img.size > filecopy.Aligned(job.Size) {
		err = fmt.Errorf("the disk has %d bytes, more than the %d asked for: %w", img.size, job.Size, errSmaller)
	}
	return img, err
}

func (i *deviceImage) discard() error {
	if !i.own {
		return nil
	}
	return os.Remove(i.path)
}

// head is what the disk begins with.
func (i *deviceImage) head(ctx context.Context) (_ []byte, err error) {
	head := make([]byte, deviceHead)
	if i.format == "raw" {
		f, err := os.Open(i.path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = io.ReadFull(io.NewSectionReader(f, 0, i.size), head)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it has no more
			err = nil
		}
		return head, err
	}
	tmp, err := os.CreateTemp("", "head-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tmp.Close(), os.Remove(tmp.Name())) }()
	if err := tmp.Truncate(deviceHead); err != nil {
		return nil, err
	}
	if err := imagesource.WriteOver(ctx, i.path, 0, min(deviceHead, i.size), tmp, nil); err != nil {
		return nil, err
	}
	_, err = tmp.ReadAt(head, 0)
	return head, err
}

// over writes the disk over a device of size bytes, and zeros behind it. Its beginning,
// first, takes the place of mark when all the rest is on the storage.
func (i *deviceImage) over(ctx context.Context, dev *os.File, size int64, mark, first []byte, progress func(string), watch func(runnerconfig.ImportProgress)) error {
	if err := writeHead(dev, mark, size); err != nil {
		return err
	}
	tell := imageProgress("the disk", progress, watch)
	if err := i.body(ctx, dev, tell); err != nil {
		return err
	}
	if err := filecopy.Zero(ctx, dev, max(i.size, deviceHead), size); err != nil {
		return err
	}
	if err := dev.Sync(); err != nil {
		return err
	}
	return writeHead(dev, first, size)
}

func writeHead(dev *os.File, head []byte, size int64) error {
	if _, err := dev.WriteAt(head[:min(int64(len(head)), size)], 0); err != nil {
		return err
	}
	return dev.Sync()
}

// body writes everything of the disk but its head.
func (i *deviceImage) body(ctx context.Context, dev *os.File, tell func(imagesource.Progress)) error {
	if i.size <= deviceHead {
		return nil
	}
	if i.format != "raw" {
		return imagesource.WriteOver(ctx, i.path, deviceHead, i.size, dev, func(done, total int64) {
			tell(imagesource.Progress{Step: imagesource.Converting, Done: done, Total: total})
		})
	}
	src, err := os.Open(i.path)
	if err != nil {
		return err
	}
	defer src.Close()
	done := int64(deviceHead)
	return filecopy.Over(ctx, dev, src, deviceHead, i.size, func(n int64) {
		done += n
		tell(imagesource.Progress{Step: imagesource.Copying, Done: done, Total: i.size})
	})
}
