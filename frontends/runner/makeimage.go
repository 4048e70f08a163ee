package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// tellImage is how often the progress of an image is told: a cluster hears it.
const tellImage = 10 * time.Second

// errSmaller is why an image is refused that is larger than its disk.
var errSmaller = errors.New("no disk is made smaller")

// makeImage makes a disk of its image, see [runner.ImageMaker]: it is fetched to beside
// the disk, where what was interrupted is gone on with, and gets the disk's name when it
// is whole.
//
// Addresses that only the pod or its node reaches are connected to if the source itself
// names them: the operator lets none through that the administrator does not allow. No
// server and no name leads there.
func makeImage(ctx context.Context, d runnerconfig.Drive, progress func(string)) error {
	return fetchImage(ctx, d, false, progress, func(runnerconfig.ImportProgress) {})
}

// maxKeptDisk is what the disk in an image may have that is kept: what it takes is
// bounded by its volume.
const maxKeptDisk = 64 << 40

// fetchImage is [makeImage], and tells often how far it is. Of an image that is kept the
// drive's size bounds the file and not the disk in it.
func fetchImage(ctx context.Context, d runnerconfig.Drive, keep bool, progress func(string), watch func(runnerconfig.ImportProgress)) error {
	s := imagesource.Source{Location: d.Image.Source, Path: d.Image.Path, Checksum: d.Image.Checksum, CA: []byte(d.Image.CABundle)}
	o := taking(int64(d.Size), keep)
	o.Progress = imageProgress(s.String(), progress, watch)
	return fetchTo(ctx, s, d.Where(), "image "+s.String(), int64(d.Size), keep, o)
}

// taking are the bounds of what becomes a disk of a size, or of an image of at most that
// if it is kept; 0 is that of a disk without one.
func taking(size int64, keep bool) imagesource.Options {
	o := imagesource.Options{MaxSize: limits.DefaultContainerDisk, Local: imagesource.LocalNamed}
	switch {
	case keep:
		o.MaxSize, o.MaxDisk = size, maxKeptDisk
	case size > 0: // with what qcow2 has beside the disk
		o.MaxSize = size + size/8 + 64<<20
	}
	return o
}

// fetchTo makes an image of a source, which is called so in errors.
func fetchTo(ctx context.Context, s imagesource.Source, to, name string, size int64, keep bool, o imagesource.Options) error {
	tmp := to + ".making"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // whole, and then interrupted
		return err
	}
	got, err := imagesource.Fetch(ctx, s, tmp, o)
	if err == nil && !keep && size > 0 && got.VirtualSize > size {
		err = errors.Join(fmt.Errorf("its disk has %d bytes, more than the %d asked for: %w", got.VirtualSize, size, errSmaller), os.Remove(tmp))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return atomicfile.Rename(tmp, to)
}

// imageProgress tells in words how far an image is, not too often.
func imageProgress(name string, tell func(string), watch func(runnerconfig.ImportProgress)) func(imagesource.Progress) {
	var last imagesource.Step
	var told time.Time
	return func(p imagesource.Progress) {
		watch(runnerconfig.ImportProgress{Step: string(p.Step), Done: p.Done, Total: p.Total})
		if p.Step == last && time.Since(told) < tellImage {
			return
		}
		last, told = p.Step, time.Now()
		text := fmt.Sprintf("%s %s", p.Step, name)
		if p.Total > 0 {
			text += fmt.Sprintf(", %d of %d MiB", p.Done>>20, p.Total>>20)
		}
		tell(text)
	}
}
