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

// tellImage is the interval at which the progress of an image is reported; in a cluster, each
// report is a request.
const tellImage = 10 * time.Second

var errSmaller = errors.New("no disk is made smaller")

// makeImage makes a disk of its image, see [runner.ImageMaker]: it is fetched beside the disk,
// where an interrupted download is resumed, and gets the disk's name once it is complete.
//
// Addresses that only the pod or its node can reach are connected to if the source itself names
// them: the operator only passes those that the administrator allows. Neither a server's answer nor
// a name leads there.
func makeImage(ctx context.Context, d runnerconfig.Drive, progress func(string)) error {
	return fetchImage(ctx, d, false, progress, func(runnerconfig.ImportProgress) {})
}

// maxKeptDisk limits the virtual size of an image that is kept: the space it takes is bounded by
// its volume.
const maxKeptDisk = 64 << 40

// fetchImage is [makeImage] with frequent progress reports. For an image that is kept, the drive's
// size bounds the file, not the disk in it.
func fetchImage(ctx context.Context, d runnerconfig.Drive, keep bool, progress func(string), watch func(runnerconfig.ImportProgress)) error {
	s := imagesource.Source{Location: d.Image.Source, Path: d.Image.Path, Checksum: d.Image.Checksum, CA: []byte(d.Image.CABundle)}
	o := taking(int64(d.Size), keep)
	o.Progress = imageProgress(s.String(), progress, watch)
	return fetchTo(ctx, s, d.Where(), "image "+s.String(), int64(d.Size), keep, o)
}

// taking returns the limits for an image that becomes a disk of a size, or that is kept with at
// most that size; 0 means no size.
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

// fetchTo creates an image from a source; name is what errors call it.
func fetchTo(ctx context.Context, s imagesource.Source, to, name string, size int64, keep bool, o imagesource.Options) error {
	tmp := to + ".making"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // completed, then interrupted
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

// imageProgress returns a function that reports an image's progress in words, at intervals.
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
