package host

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/vmop/sdk/vmop/imageinspect"
)

// checkUploads refuses files that are given as disks for the first time and are no images, such as
// a compressed download. It does not inspect what a guest may have written to.
func checkUploads(given map[string]string, before Definition) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path := given[name]
		if path == "" || path == before.Disks[name] || path == before.Used[name] {
			continue
		}
		if err := checkUpload(path); err != nil {
			errs = append(errs, fmt.Errorf("disk %q: %s: %w", name, path, err))
		}
	}
	return errors.Join(errs...)
}

// checkUpload is [imageinspect.CheckUpload] of a file. The runner reports what is no file or cannot
// be read.
func checkUpload(path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	header := make([]byte, imageinspect.HeaderSize)
	n, err := io.ReadFull(f, header)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // it is empty, or not readable
	}
	return imageinspect.CheckUpload(header[:n])
}
