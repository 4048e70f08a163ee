package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

var errOccupied = errors.New("there is something on the block device already that this disk was not made by: it is left alone")

// headOf returns the first bytes of a device while a disk is made on it.
func headOf(job runnerconfig.Import) []byte {
	head := make([]byte, deviceHead)
	copy(head, fmt.Sprintf(deviceMark+"%s is being made here\n", job.Disk))
	return head
}

// makeOnDevice makes a disk on a block device by overwriting it. A device that does not begin with
// zeros, or has something known on it, is refused, unless that is the mark of an earlier attempt or
// the disk itself.
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
	known, err := recognized(dev, size)
	if err != nil {
		return out, fmt.Errorf("look at what is on the block device: %w", err)
	}
	free := bytes.Equal(head, headOf(job)[:len(head)]) || known == "" && bytes.Equal(head, make([]byte, len(head)))
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
	first, err := img.part(ctx, place{0, deviceHead})
	if err != nil {
		return out, err
	}
	if !free {
		// An earlier attempt may have completed the disk without being able to report it.
		places := signedPlaces(size)
		if job.Copy != nil && job.Copy.CloneOf != "" {
			// What was cloned when the source was another is nobody else's either.
			places = []place{{0, int64(len(head))}}
		}
		own, err := img.isOn(ctx, dev, places)
		if err != nil {
			return out, err
		}
		if !own && known != "" {
			return out, fmt.Errorf("%s: %w", known, errOccupied)
		}
		if !own {
			return out, errOccupied
		}
	}
	if err := img.over(ctx, dev, size, headOf(job), first, progress, watch); err != nil {
		return out, err
	}
	return runnerconfig.Imported{Format: "raw", Size: size}, nil
}
