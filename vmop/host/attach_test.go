package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// A machine that does not run gets and loses a disk by its manifest, and no image goes.
func TestAttachDisk(t *testing.T) {
	b := newBench(t)
	image := filepath.Join(filepath.Dir(b.external), "more.img")
	b.ok(os.WriteFile(image, make([]byte, 4096), 0o600))
	disk, err := b.h.AttachDisk(t.Context(), b.m, "more", image)
	b.ok(err)
	disks, _ := b.starts(b.machine("web"))
	if disk != "more-claim" || disks[disk] != image || len(disks) != 3 {
		t.Errorf("%s, %v", disk, disks)
	}
	for _, c := range []struct{ name, path, want string }{
		{"more", b.external, "has the disk more-claim already"},
		{"again", image, "is the machine's disk more-claim"},
		{"No Name", filepath.Join(filepath.Dir(image), "free.img"), "claimName"},
		{"none", "/nowhere/x.img", "no such file"},
		{"device", "/dev/null", "is no file"},
		{"text", filepath.Join(b.m.Data, manifestFile), "text"},
	} {
		b.ok(os.WriteFile(filepath.Join(filepath.Dir(image), "free.img"), make([]byte, 512), 0o600))
		if _, err := b.h.AttachDisk(t.Context(), b.machine("web"), c.name, c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	path, err := b.h.DetachDisk(t.Context(), b.machine("web"), "more")
	b.ok(err)
	if disks, _ = b.starts(b.machine("web")); path != image || len(disks) != 2 || !exists(image) {
		t.Errorf("%s, %v", path, disks)
	}
	if text, err := os.ReadFile(b.m.ManifestFile()); err != nil || strings.Contains(string(text), "more") || !strings.Contains(string(text), "{name: web, namespace: lab}") {
		t.Errorf("%v: %s", err, text)
	}
	if def, err := b.m.Definition(); err != nil || len(def.Disks) != 1 {
		t.Errorf("%+v, %v", def, err)
	}
	if _, err := b.h.DetachDisk(t.Context(), b.machine("web"), "more"); err == nil || !strings.Contains(err.Error(), "has no disk of that name") {
		t.Error(err)
	}
}

// Disks are plugged at the first place that is free, and what QEMU or the guest refuses
// changes nothing.
func TestPlugDisk(t *testing.T) {
	b := newBench(t)
	image := filepath.Join(filepath.Dir(b.external), "more.img")
	b.ok(os.WriteFile(image, make([]byte, 4096), 0o600))
	q := b.run(nil)
	var devices, sets []string
	answer := "" // to a device that is to be added
	fails := func(c *qmptest.Call) bool {
		var args map[string]any
		_ = c.Arguments(&args)
		switch c.Name() {
		case "add-fd":
			for _, f := range c.Files {
				_ = f.Close()
			}
			sets = append(sets, args["opaque"].(string))
			c.Return(qmp.AddedFD{})
		case "remove-fd":
			sets = nil
			c.Return(nil)
		case "device_add":
			if args["bus"] == "port0" && answer == "" {
				c.Fail("GenericError", "PCI: slot 0 function 0 not available for virtio-blk-pci, in use by virtio-net-pci")
				return true
			}
			if answer != "" {
				c.Fail("GenericError", answer)
				return true
			}
			devices = append(devices, args["id"].(string)+" at "+args["bus"].(string)+" of "+args["drive"].(string)+", "+args["serial"].(string))
			c.Return(nil)
		default:
			return false
		}
		return true
	}
	q.sync(func() { q.fails = fails })
	b.ok(b.m.plug(t.Context(), "more-claim", image, "serial"))
	q.mu.Lock()
	if want := []string{"plugged-more-claim at port1 of plugged-1-backend, serial"}; !slices.Equal(devices, want) || !slices.Equal(q.nodes, []string{"plugged-1-file", "plugged-1-backend"}) {
		t.Errorf("%q, %q", devices, q.nodes)
	}
	if !strings.Contains(b.record(), `"more-claim"`) {
		t.Error("the image was not recorded")
	}
	q.nodes, sets = nil, nil
	answer = "Bus 'port0' not found"
	q.mu.Unlock()
	if err := b.m.plug(t.Context(), "more-claim", image, "serial"); err == nil || !strings.Contains(err.Error(), "made before machines had places") {
		t.Error(err)
	}
	q.sync(func() { answer = "PCI: no. in use by all" })
	if err := b.m.plug(t.Context(), "more-claim", image, "serial"); err == nil || !strings.Contains(err.Error(), "all of its 6 places") {
		t.Error(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.nodes)+len(sets) != 0 {
		t.Errorf("%q and %q are left in QEMU", q.nodes, sets)
	}
}

func (b *bench) record() string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.m.Data, "machine.json"))
	b.ok(err)
	return string(data)
}

// Only what QEMU does not have is gone: a disk that it uses in another way is still the
// machine's.
func TestDiskThatQEMUUsesIsNotDetached(t *testing.T) {
	b := newBench(t)
	q := b.run(nil)
	q.sync(func() {
		q.fails = func(c *qmptest.Call) bool {
			if c.Name() != "query-named-block-nodes" {
				return false
			}
			c.Return([]qmp.BlockDeviceInfo{{NodeName: qemucmd.DiskNode(0), Driver: "host_device", File: "/dev/vg/data"}})
			return true
		}
	})
	if err := b.m.unplug(t.Context(), heldDisk{name: "data", path: "/dev/vg/data"}); err == nil || !strings.Contains(err.Error(), `is used as "host_device"`) {
		t.Errorf("a block device in use: %v", err)
	}
	if err := b.m.unplug(t.Context(), heldDisk{name: "gone", path: "/dev/vg/gone"}); err != nil {
		t.Errorf("a disk that QEMU has not: %v", err)
	}
}

// A guest that does not release a disk keeps it.
func TestDiskThatIsNotReleased(t *testing.T) {
	b := newBench(t)
	q := b.run(nil)
	event := qmp.EventData(qmp.DeviceUnplugGuestErrorEvent{Device: "plugged-data"})
	fails := func(c *qmptest.Call) bool {
		if c.Name() != "device_del" {
			return false
		}
		c.Server.Emit("DEVICE_DELETED", qmp.DeviceDeletedEvent{Path: "/machine/peripheral/plugged-data/virtio-backend"})
		c.Server.Emit(event.QMPEvent(), event)
		c.Return(nil)
		return true
	}
	q.sync(func() { q.fails = fails })
	ask := func(c *qmp.Client) error { return releaseDevice(t.Context(), c, "plugged-data") }
	if err := b.m.monitor(t.Context(), ask); !errors.Is(err, ErrNotReleased) || !strings.Contains(err.Error(), "it has refused") {
		t.Error(err)
	}
	q.sync(func() { event = qmp.DeviceDeletedEvent{Device: "plugged-data"} })
	b.ok(b.m.monitor(t.Context(), ask))
}
