package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// onDevice returns the names of the host's block devices that are made of a block device or its
// partitions, such as dm-0: volumes of LVM, RAID, multipath.
func onDevice(sysfs string, number uint64) ([]string, error) {
	at, err := filepath.EvalSymlinks(filepath.Join(sysfs, "dev/block", fmt.Sprintf("%d:%d", unix.Major(number), unix.Minor(number))))
	if err != nil {
		return nil, err
	}
	places := []string{at, filepath.Join(at, "*")}
	if _, err := os.Stat(filepath.Join(at, "partition")); err == nil {
		places = append(places, filepath.Dir(at))
	}
	var out []string
	for _, p := range places {
		found, err := filepath.Glob(filepath.Join(p, "holders/*"))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			out = append(out, filepath.Base(f))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// idleVolumes returns what the host has made of a block device, if that is all that keeps others from
// having the device exclusively: the volumes of a guest that the host has activated because it found
// them, as hosts with LVM do unless they are kept from it, and which nobody uses. A volume that the
// pod does not see is not the pod's to judge; it counts as unused.
func idleVolumes(sysfs, dev string, number uint64) []string {
	all, err := onDevice(sysfs, number)
	if err != nil {
		return nil
	}
	for _, name := range all {
		f, err := os.OpenFile(filepath.Join(dev, name), os.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil
		default:
			if f.Close() != nil {
				return nil
			}
		}
	}
	return all
}

// openDevice opens a block device. QEMU inherits the open file, and with it that no exporter, other
// machine or mount has a device that the machine may write to, for as long as QEMU runs. Loop devices
// over it, by which a kubelet holds the volumes of its pods, are in nobody's way.
func (e *Engine) openDevice(ctx context.Context, path string, f *os.File, info fs.FileInfo, flags int) (device *os.File, err error) {
	if flags&unix.O_ACCMODE == os.O_RDONLY {
		return reopen(f, flags)
	}
	err = whileBusy(ctx, func(err error) {
		e.message(LevelInfo, "waiting up to %v for the block device %s: %v", orphanGrace, path, err)
	}, func() (err error) {
		if device, err = reopen(f, flags|unix.O_EXCL); !errors.Is(err, unix.EBUSY) {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errDeviceBusy
		}
		idle := idleVolumes("/sys", "/dev", stat.Rdev)
		if len(idle) == 0 {
			return errDeviceBusy
		}
		e.message(LevelWarning, "block device %s: the host has activated volumes that are in it (%s), and is to be kept from that (LVM: global_filter), or whoever mounts one there destroys it; the machine does not have the device for itself",
			path, strings.Join(idle, ", "))
		device, err = reopen(f, flags)
		return err
	})
	return device, err
}
