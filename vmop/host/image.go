package host

import (
	"errors"
	"fmt"

	"github.com/vmop/sdk/vmop/imagesource"
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
		return fmt.Errorf("%w: no disk is made smaller, and this one is to have %s", err, mebibytes(uint64(i.Size)))
	}
	return err
}

// ImageOptions are what somebody wants to know while an image is fetched.
type ImageOptions struct {
	// Progress is told how far it is, often; nil tells nobody.
	Progress func(imagesource.Progress)
	// Waiting is told once who else fetches the image, and is waited for.
	Waiting func(who string)
	// Refresh asks the source though there is an image of it, and has it send only
	// another one; one with a checksum that is here is not fetched again.
	Refresh bool
	// Fetched is called by [Host.CreateFromImage] when the image is there, and returns the
	// machine as it is to be kept, under the same name: what was free when the fetching
	// began, such as a port of this host, may be taken. Nil keeps what was given.
	Fetched func() (*spec.Object, error)
}
