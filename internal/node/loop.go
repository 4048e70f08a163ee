package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func loopDevice(ctx context.Context, file string) (string, error) {
	out, err := run(ctx, "losetup", "--find", "--show", file)
	return strings.TrimSpace(out), err
}

type loop struct {
	path    string
	device  uint64 // its own number
	file    string // the file behind it, as the kernel names it
	backing uint64 // the number of the block device behind it, if any
}

func loops() ([]loop, error) {
	dirs, err := filepath.Glob("/sys/block/loop*/loop")
	if err != nil {
		return nil, err
	}
	var out []loop
	for _, dir := range dirs {
		l := loop{path: filepath.Join("/dev", filepath.Base(filepath.Dir(dir)))}
		file, err := os.ReadFile(filepath.Join(dir, "backing_file"))
		if err != nil {
			continue // detached since
		}
		l.file = strings.TrimSpace(string(file))
		f, err := os.Open(l.path)
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
		if err == nil {
			l.backing = info.Rdevice
			err = unix.Fstat(int(f.Fd()), &st)
			l.device = st.Rdev
		}
		_ = f.Close()
		if errors.Is(err, unix.ENXIO) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// loopsOf lists the loop devices of files below dir, each after those that the kubelet put on top
// of it.
func loopsOf(dir string) ([]loop, error) {
	all, err := loops()
	if err != nil {
		return nil, err
	}
	var out []loop
	for _, l := range all {
		if !strings.HasPrefix(l.file, dir+"/") {
			continue
		}
		for _, upper := range all {
			if upper.backing == l.device {
				out = append(out, upper)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

func detachLoops(dir string) error {
	found, err := loopsOf(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range found {
		errs = append(errs, detachLoop(l.path))
	}
	return errors.Join(errs...)
}

func detachLoop(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	// A device in use vanishes with its last user.
	err = unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0)
	if errors.Is(err, unix.ENXIO) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("detach %s: %w", path, err)
	}
	return errors.Join(err, f.Close())
}
