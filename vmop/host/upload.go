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

// checkUploads refuses files that are given as disks for the first time and are
// none, such as what was downloaded and not yet unpacked. What a guest may have
// written to is not looked at.
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

// checkUpload is [imageinspect.CheckUpload] of a file. What is no file, or cannot be
// read, is the runner's to complain about.
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
