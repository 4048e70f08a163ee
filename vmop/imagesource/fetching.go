package imagesource

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
)

type fetch struct {
	Source
	o       Options
	to      string
	version Version // of the fetched content
}

// part is a download, packed a file of an archive, unpacked and converted the image in progress.
func (f *fetch) part() string { return f.to + ".part" }

func (f *fetch) packed() string { return f.to + ".packed" }

func (f *fetch) unpacked() string { return f.to + ".unpacked" }

func (f *fetch) converted() string { return f.to + ".converted" }

func discard(paths ...string) error {
	var errs []error
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (f *fetch) client() (*http.Client, error) {
	g := newGuard(f.o.Local, f.Location)
	t, err := g.transport(f.CA)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t, CheckRedirect: g.redirect}, nil
}

func (f *fetch) download(url string, client *http.Client, want *digest, size int64) *download {
	return &download{
		url: url, client: client, digest: want, size: size, max: f.o.maxSize() + f.o.maxSize()/8 + 1<<20, stall: f.o.stall(), pause: f.o.pause,
		part: f.part(), report: f.o.meter(Downloading), verifying: f.o.meter(Verifying),
	}
}

func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // opening a pipe would wait for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no file", path)
	}
	return os.Open(path)
}
