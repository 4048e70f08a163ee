package runner

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// loopDevice returns a block device of its own, and a loop device over it, as a kubelet has one over
// a volume of a pod.
func loopDevice(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a loop device")
	}
	path := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 16<<20)); err != nil {
		t.Fatal(err)
	}
	var devices []string
	for range 2 {
		out, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", path).CombinedOutput()
		if err != nil {
			t.Skipf("needs loop devices: %v: %s", err, out)
		}
		path = strings.TrimSpace(string(out))
		devices = append(devices, path)
		t.Cleanup(func() {
			if out, err := exec.Command("losetup", "--detach", devices[len(devices)-1]).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			devices = devices[:len(devices)-1]
		})
	}
	return devices[0]
}

// A machine has its writable block devices for itself for as long as QEMU runs, in spite of a loop
// device over them, and those that it only reads together with others.
func TestMachineHasItsDeviceForItself(t *testing.T) {
	device := loopDevice(t)
	exclusively := func() error {
		f, err := os.OpenFile(device, os.O_RDWR|unix.O_EXCL, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	c := testConfig(t)
	c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "raw", Name: "data", Device: device}}
	r := start(t, c, testDirs(t))
	console := r.console(t)
	command(t, console, "write vda 4096 precious data")
	if err := exclusively(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("another process gets it: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	other := &Engine{o: Options{Reporter: &reporterFunc{message: func(m Message) {
		if strings.Contains(m.Text, "waiting up to") {
			cancel()
		}
	}}}}
	_, err := other.prepareDrives(ctx, c.Runner.VM.Drives, map[string]diskRecord{})
	if !errors.Is(err, errDeviceBusy) || !strings.Contains(err.Error(), "block device "+device+": it is in use: mounted") || ctx.Err() == nil {
		t.Errorf("another machine: %v", err)
	}
	c.Runner.VM.Drives[0].ReadOnly = true
	if _, err := other.prepareDrives(t.Context(), c.Runner.VM.Drives, map[string]diskRecord{}); err != nil {
		t.Errorf("another machine that only reads: %v", err)
	}
	if err := other.closeInherited(); err != nil {
		t.Error(err)
	}

	if err := console.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	r.wait(t)
	if err := exclusively(); err != nil {
		t.Errorf("when the machine has ended: %v", err)
	}
}

// A device is waited for whose holder is about to end.
func TestDeviceIsWaitedFor(t *testing.T) {
	device := loopDevice(t)
	holder, err := os.OpenFile(device, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	e := &Engine{o: Options{Reporter: &reporterFunc{message: func(Message) {
		waited = true
		if err := holder.Close(); err != nil {
			t.Error(err)
		}
	}}}}
	_, err = e.prepareDrives(t.Context(), []runnerconfig.Drive{{Type: "raw", Device: device}}, map[string]diskRecord{})
	if err != nil || !waited {
		t.Errorf("waited %v: %v", waited, err)
	}
	if err := e.closeInherited(); err != nil {
		t.Error(err)
	}
}
