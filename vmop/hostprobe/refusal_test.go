package hostprobe

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vmop/sdk/vmop/conditions"
)

// Whoever may not open a device is told the group that may, by the number that it
// has here.
func TestRefusalNamesTheGroup(t *testing.T) {
	device := filepath.Join(t.TempDir(), "kvm")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := &fs.PathError{Op: "open", Path: device, Err: fs.ErrPermission}
	group := os.Getgid()
	if os.Getuid() == 0 {
		group = 993
		if err := os.Chown(device, 0, group); err != nil {
			t.Fatal(err)
		}
	}
	if got := refusal(device, refused); got != refused.Error() {
		t.Errorf("mode 0600, no group may: %s", got)
	}
	if err := os.Chmod(device, 0o660); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{refused.Error(), fmt.Sprintf("group %d", group), "mode 0660", fmt.Sprintf("VMOP_DEVICE_GROUPS=%d", group)} {
		if got := refusal(device, refused); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if got := refusal(device, fs.ErrNotExist); got != fs.ErrNotExist.Error() {
		t.Error(got)
	}
}

// Why KVM cannot be used is sorted by who can do something about it.
func TestWhyClosed(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: conditions.ReasonKVMNotPermitted, syscall.EPERM: conditions.ReasonKVMNotPermitted,
		syscall.ENOENT: conditions.ReasonNoKVMDevice, syscall.ENODEV: conditions.ReasonNoKVMDevice, syscall.ENXIO: conditions.ReasonNoKVMDevice,
		syscall.EMFILE: conditions.ReasonKVMFails,
	} {
		if got := whyClosed(&fs.PathError{Op: "open", Path: "/dev/kvm", Err: errno}); got != want {
			t.Errorf("%v: %s, want %s", errno, got, want)
		}
	}
}
