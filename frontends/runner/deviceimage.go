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

// deviceMark, followed by the disk's UID, is at the beginning of a device while a disk is made on
// it.
const deviceMark = "vmop-runner: disk "

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

// deviceImage is the source of a block device's content: an image, or another device.
type deviceImage struct {
	path, format string
	size         int64
	// own: it was fetched for this, and is removed once it is written.
	own bool
}

func imageForDevice(ctx context.Context, job runnerconfig.Import, progress func(string), watch func(runnerconfig.ImportProgress)) (*deviceImage, error) {
	img := &deviceImage{path: filepath.Join(job.Scratch, "image"), own: true}
	if job.Copy != nil {
		img = &deviceImage{path: job.Copy.File}
	} else {
		if err := os.Remove(img.path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier attempt
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

// place is a part of a disk, in bytes.
type place struct{ from, to int64 }

// part returns a part of the disk, with zeros behind its end.
func (i *deviceImage) part(ctx context.Context, p place) (_ []byte, err error) {
	out, end := make([]byte, p.to-p.from), min(p.to, i.size)
	if p.from >= end {
		return out, nil
	}
	if i.format == "raw" {
		f, err := os.Open(i.path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = io.ReadFull(io.NewSectionReader(f, p.from, end-p.from), out[:end-p.from])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it is shorter
			err = nil
		}
		return out, err
	}
	tmp, err := os.CreateTemp("", "part-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tmp.Close(), os.Remove(tmp.Name())) }()
	if err := tmp.Truncate(p.to); err != nil {
		return nil, err
	}
	if err := imagesource.WriteOver(ctx, i.path, p.from, end, tmp, nil); err != nil {
		return nil, err
	}
	_, err = tmp.ReadAt(out, p.from)
	return out, err
}

// isOn reports whether a device has in these places what it has once the disk is made on it.
func (i *deviceImage) isOn(ctx context.Context, dev io.ReaderAt, places []place) (bool, error) {
	for _, p := range places {
		want, err := i.part(ctx, p)
		if err != nil {
			return false, err
		}
		has := make([]byte, len(want))
		if _, err := dev.ReadAt(has, p.from); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if !bytes.Equal(has, want) {
			return false, nil
		}
	}
	return true, nil
}

// over writes the disk over a device of size bytes, and zeros behind it. first, the disk's
// beginning, replaces mark only when all the rest is on the storage.
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

// deviceHead is the number of bytes of a block device that are written last. Until then, they hold
// the mark: an incomplete disk is not taken for a disk, and the next attempt after an interruption
// recognizes its own.
const deviceHead = 4096

func writeHead(dev *os.File, head []byte, size int64) error {
	if _, err := dev.WriteAt(head[:min(int64(len(head)), size)], 0); err != nil {
		return err
	}
	return dev.Sync()
}
