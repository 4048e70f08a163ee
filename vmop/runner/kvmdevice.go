package runner

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// kvmMajor and kvmMinor are the numbers of KVM's device on every Linux (KVM_MINOR).
const kvmMajor, kvmMinor = 10, 232

// MakeKVM creates a device node of KVM for the group of its directory, replacing any file at its
// path. It needs CAP_MKNOD; it does not check that the node's kernel has KVM.
func MakeKVM(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("device node of KVM: %w", err)
	}
	old := unix.Umask(0)
	err := unix.Mknod(path, unix.S_IFCHR|0o660, int(unix.Mkdev(kvmMajor, kvmMinor)))
	unix.Umask(old)
	if err != nil {
		return fmt.Errorf("device node of KVM: %w", &os.PathError{Op: "mknod", Path: path, Err: err})
	}
	return nil
}
