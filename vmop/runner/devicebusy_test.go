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
		t.Fatal("a loop device needs root")
	}
	path := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 16<<20)); err != nil {
		t.Fatal(err)
	}
	var devices []string
	for range 2 {
		out, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", path).CombinedOutput()
		if err != nil {
			t.Fatalf("losetup: %v: %s", err, out)
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

// What the host has made of a device is named, wherever it is made of: the device, a partition of it,
// or what it is a partition of. If somebody uses it, or the device is held by something else, the
// device is busy.
func TestIdleVolumes(t *testing.T) {
	sysfs, dev := t.TempDir(), t.TempDir()
	mkdir := func(parts ...string) {
		if err := os.MkdirAll(filepath.Join(append([]string{sysfs}, parts...)...), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("dev/block")
	mkdir("devices/sdb/holders")
	mkdir("devices/sdb/sdb1/holders/dm-0")
	mkdir("devices/sdb/sdb2/holders")
	mkdir("devices/sdc/holders/dm-1")
	mkdir("devices/sdc/sdc1/holders")
	mkdir("devices/sdd/holders")
	if err := errors.Join(
		os.WriteFile(filepath.Join(sysfs, "devices/sdb/sdb2/partition"), nil, 0o600),
		os.WriteFile(filepath.Join(sysfs, "devices/sdc/sdc1/partition"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for number, at := range map[string]string{"8:16": "sdb", "8:18": "sdb/sdb2", "8:32": "sdc", "8:33": "sdc/sdc1", "8:48": "sdd"} {
		if err := os.Symlink(filepath.Join(sysfs, "devices", at), filepath.Join(sysfs, "dev/block", number)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		minor uint32
		want  string
	}{{16, "dm-0"}, {18, ""}, {32, "dm-1"}, {33, "dm-1"}, {48, ""}, {64, ""}} {
		if got := strings.Join(idleVolumes(sysfs, dev, unix.Mkdev(8, c.minor)), " "); got != c.want {
			t.Errorf("8:%d: %q, want %q", c.minor, got, c.want)
		}
	}
	device := loopDevice(t)
	if err := os.Symlink(device, filepath.Join(dev, "dm-0")); err != nil {
		t.Fatal(err)
	}
	if got := idleVolumes(sysfs, dev, unix.Mkdev(8, 16)); len(got) != 1 {
		t.Errorf("a volume that nobody uses: %q", got)
	}
	user, err := os.OpenFile(device, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	if got := idleVolumes(sysfs, dev, unix.Mkdev(8, 16)); len(got) != 0 {
		t.Errorf("one that is in use: %q", got)
	}
}
