package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// reopen opens the file that was found, even if its path now leads to another.
func reopen(found *os.File, flag int) (*os.File, error) {
	f, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(found.Fd())), flag, 0)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	return f, nil
}

func isURL(image string) bool { return strings.Contains(image, "://") }

func (e *Engine) openGiven(image string) (fd int, err error) {
	if image == "" || isURL(image) {
		return 0, nil
	}
	f, err := e.openImage(image)
	if err != nil {
		return 0, err
	}
	return e.handOver(f), nil
}

func (e *Engine) openImage(path string) (*os.File, error) {
	found, err := e.findImage(path)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	if err := mustBeFile(found); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := reopen(found, os.O_RDONLY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

func mustBeFile(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is no file: %s", info.Mode().Type())
	}
	return err
}

// find does not open the file: opening a device is visible to other programs. Below the directories
// whose content others may have written, it follows no symbolic link, which could lead anywhere.
func (e *Engine) find(path string) (*os.File, error) {
	for _, volume := range e.o.Volumes {
		if below, err := filepath.Rel(volume, path); err == nil && filepath.IsLocal(below) {
			return findBelow(volume, below)
		}
	}
	return os.OpenFile(path, unix.O_PATH, 0)
}

func (e *Engine) checkImage(path string) error {
	f, err := e.findImage(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// findImage finds an image to be read. Below the directories of such images a link may only lead
// from one to another: otherwise a user who may put images there could have the guest read any file
// of the pod, including its service account token.
func (e *Engine) findImage(path string) (*os.File, error) {
	for _, dir := range e.o.Images {
		below, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(below) {
			continue
		}
		root, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		fd, err := unix.Openat2(int(root.Fd()), below, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
		})
		switch {
		case errors.Is(err, unix.EXDEV):
			return nil, fmt.Errorf("%s: a symbolic link leads out of %s, and none is followed there: put the image itself into it", path, dir)
		case err != nil:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
	return e.find(path)
}

func findBelow(dir, path string) (*os.File, error) {
	root, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fd, err := unix.Openat2(int(root.Fd()), path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	full := filepath.Join(dir, path)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s: there is a symbolic link in the path, and none is followed on a volume: put the image itself there", full)
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: full, Err: err}
	}
	return os.NewFile(uintptr(fd), full), nil
}
