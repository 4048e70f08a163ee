package host

import (
	"errors"
	"fmt"

	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/spec"
)

// Image is the source of the disk of a new machine.
type Image struct {
	// Source is a file, an http or https URL, or a container image with a disk: see
	// [imagesource.Source].
	Source string
	// Path is the disk's path in a container image; empty for the only file in /disk.
	Path string
	// Checksum is sha256:HEX or sha512:HEX of the source's content, for a container image the
	// digest of its manifest; empty trusts the source.
	Checksum string
	// Checksums is the URL of a list with the source's checksum, used if Checksum is empty; see
	// [PublicImage].
	Checksums string
	// CA are certificates (PEM) that are trusted beside this host's.
	CA []byte
	// Size is the size of the disk, in bytes; 0 is the image's. No image is shrunk.
	Size int64
}

// Check returns an error if the image's fields are invalid. It does not access the source.
func (i Image) Check() error { return i.source().Check() }

func (i Image) source() imagesource.Source {
	return imagesource.Source{Location: i.Source, Path: i.Path, Checksum: i.Checksum, CA: i.CA}
}

// sourceOptions bound the size of the download: unpacked, it is a disk of the size plus qcow2's
// metadata. The source may be on this host, since the user names it.
func (i Image) sourceOptions(o ImageOptions) imagesource.Options {
	out := imagesource.Options{Local: imagesource.LocalNamed, Progress: o.Progress}
	if i.Size > 0 {
		out.MaxSize = i.Size + i.Size/8 + 64<<20
	}
	return out
}

func (i Image) explain(err error) error {
	if i.Size > 0 && errors.Is(err, imagesource.ErrTooLarge) {
		return fmt.Errorf("%w: no disk is made smaller, and this one is to have %s", err, mebibytes(uint64(i.Size)))
	}
	return err
}

// ImageOptions are the options of fetching an image.
type ImageOptions struct {
	// Progress is called often with the progress; it may be nil.
	Progress func(imagesource.Progress)
	// Waiting is called once with the process that already fetches the image, and for which this
	// one waits; it may be nil.
	Waiting func(who string)
	// Refresh checks the source for a newer image than the cached one; an image with a checksum is
	// not fetched again.
	Refresh bool
	// Fetched is called by [Host.CreateFromImage] when the image was fetched, and returns the
	// machine to be kept, under the same name: resources that were free before, such as a port of
	// this host, may be taken. Nil keeps the given machine.
	Fetched func() (*spec.Object, error)
}
