package runner

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkDevice explains why a block device cannot be used, where QEMU would only print "Permission
// denied". It does not open the device: closing it after an open for writing makes the host's udev
// probe it.
func checkDevice(path string, info os.FileInfo) error {
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS)
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return err
	}
	groups, gerr := os.Getgroups()
	if gerr != nil {
		return errors.Join(err, gerr)
	}
	return fmt.Errorf("%w for user %d, group %d and groups %v: it belongs to user %d and group %d with mode %04o. "+
		"In a cluster, the container runtimes of the nodes have to give devices to the users of containers "+
		"(containerd and CRI-O: device_ownership_from_security_context = true), or the nodes' devices to the group disk",
		err, os.Geteuid(), os.Getegid(), groups, stat.Uid, stat.Gid, info.Mode().Perm())
}
