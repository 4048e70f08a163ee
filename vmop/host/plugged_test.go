package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// plugBench is a machine that runs in a QEMU with ports.
type plugBench struct {
	*bench
	// opened are the files at the ports, by node, and refuses what QEMU says of a device.
	opened  map[string]string
	refuses string
	keeps   bool
	// locked: another QEMU has each image.
	locked bool
}

func newPlugBench(t *testing.T) *plugBench {
	b := &plugBench{bench: newBench(t), opened: map[string]string{}}
	q := b.run(nil)
	data, err := os.ReadFile(b.m.ManifestFile())
	b.ok(err)
	b.ok(os.WriteFile(b.m.startedFile(), data, 0o600))
	opened, devices, nodes := "", map[string]bool{}, map[string]string{}
	q.sync(func() {
		q.fails = func(c *qmptest.Call) bool {
			var args map[string]any
			_ = c.Arguments(&args)
			switch c.Name() {
			case "add-fd":
				for _, f := range c.Files {
					_ = f.Close()
				}
				opened = args["opaque"].(string)
				c.Return(qmp.AddedFD{})
			case "remove-fd":
				c.Return(nil)
			case "blockdev-add":
				if b.locked {
					c.Fail("GenericError", `Failed to get "write" lock`)
				}
				return b.locked
			case "device_add":
				if b.refuses != "" {
					c.Fail("GenericError", b.refuses)
					return true
				}
				node := args["drive"].(string)
				b.opened[node], devices[node], nodes[args["id"].(string)] = opened, true, node
				c.Return(nil)
			case "device_del":
				id := args["id"].(string)
				if b.keeps {
					c.Server.Emit("DEVICE_UNPLUG_GUEST_ERROR", qmp.DeviceUnplugGuestErrorEvent{Device: id})
				} else {
					delete(devices, nodes[id])
					c.Server.Emit("DEVICE_DELETED", qmp.DeviceDeletedEvent{Device: id})
				}
				c.Return(nil)
			case "blockdev-del":
				node := args["node-name"].(string)
				if devices[strings.TrimSuffix(node, "-file")] {
					c.Fail("GenericError", "Node "+node+" is in use")
					return true
				}
				delete(b.opened, node)
				return false
			case "query-named-block-nodes":
				list := []qmp.BlockDeviceInfo{
					{NodeName: qemucmd.DiskNode(0), Driver: "raw", File: q.paths[qemucmd.DiskNode(0)]},
					{NodeName: qemucmd.DiskNode(1), Driver: "raw", File: q.paths[qemucmd.DiskNode(1)]},
				}
				for node, file := range b.opened {
					list = append(list, qmp.BlockDeviceInfo{NodeName: node, Driver: "raw", File: file})
				}
				c.Return(list)
			default:
				return false
			}
			return true
		}
	})
	return b
}

// apply has the machine's disks follow a manifest with other entries behind the two that
// it has; change changes what else it says.
func (b *plugBench) apply(entries string, given map[string]string, change func(string) string) (*deviceChanges, []changes.Change, error) {
	b.Helper()
	text := strings.Replace(benchManifest, "    - persistentVolumeClaim: {claimName: data}\n", "    - persistentVolumeClaim: {claimName: data}\n"+entries, 1)
	if change != nil {
		text = change(text)
	}
	o, err := only(spec.Load("web.yaml", []byte(text), spec.Options{Default: true, Validate: true}))
	b.ok(err)
	before, err := b.m.Object()
	b.ok(err)
	g := Given{Disks: given}
	c, _, err := b.h.configuration(&o, g)
	b.ok(err)
	found := Changes(before.VirtualMachine, o.VirtualMachine)
	d, err := b.h.changeDevices(b.Context(), &b.m, &o, g, &c)
	if err == nil {
		d.tell(found)
		b.ok(b.m.keep(&o, g))
	}
	return d, found, err
}

func benchVM(t *testing.T) *spec.VirtualMachine {
	o, err := only(spec.Load("web.yaml", []byte(benchManifest), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	return o.VirtualMachine
}

// awaits are the paths of what waits for the next start.
func (b *plugBench) awaits() []string {
	b.Helper()
	all, err := b.m.Awaiting()
	b.ok(err)
	var out []string
	for _, c := range all {
		out = append(out, c.Operation+" "+c.Path)
	}
	return out
}

const (
	plugMore = "    - persistentVolumeClaim: {claimName: more}\n"
	plugNew  = "    - volumeClaimTemplate: {metadata: {name: new}, spec: {resources: {requests: {storage: 1Mi}}}}\n"
)

// A manifest with other disks has them plugged and released, whoever did part of it
// before, and what waits is told.
func TestDisksFollowTheManifest(t *testing.T) {
	b := newPlugBench(t)
	more := filepath.Join(filepath.Dir(b.external), "more.img")
	made := filepath.Join(b.m.Data, "new-disk.img")
	b.ok(os.WriteFile(more, make([]byte, 4096), 0o600))
	given := map[string]string{"more": more}
	check := func(what string, want ...string) {
		t.Helper()
		var have []string
		for _, file := range b.opened {
			have = append(have, file)
		}
		if slices.Sort(have); !slices.Equal(have, want) {
			t.Errorf("%s: plugged are %q, want %q", what, have, want)
		}
	}
	_, found, err := b.apply(plugMore+plugNew, given, nil)
	b.ok(err)
	check("two came", more, made)
	if info, err := os.Stat(made); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
	if len(found) != 2 || found[0].Applied != changes.AppliedLive || len(b.awaits()) > 0 {
		t.Errorf("%v, %q", found, b.awaits())
	}
	if def, err := b.m.Definition(); err != nil || def.Used["new-disk"] != made || def.Disks["more-claim"] != more {
		t.Errorf("%+v, %v", def, err)
	}
	// Once more, by somebody who does not know that it was done.
	b.ok(os.WriteFile(b.m.startedFile(), []byte(benchManifest), 0o600))
	_, _, err = b.apply(plugMore+plugNew, nil, nil)
	b.ok(err)
	check("again", more, made)
	if w := b.awaits(); len(w) > 0 {
		t.Errorf("again: %q", w)
	}
	// What else waits for a restart takes them with it.
	_, found, err = b.apply(plugMore, nil, func(text string) string { return strings.Replace(text, "maximumCpus: 1", "maximumCpus: 2", 1) })
	b.ok(err)
	check("with more CPUs", more, made)
	if w := b.awaits(); !slices.Equal(w, []string{"replace spec.vm.maximumCpus", "remove spec.vm.disks[3]"}) || !slices.ContainsFunc(found, func(c changes.Change) bool {
		return c.IsDisk() && c.Applied == changes.AppliedRestart && c.Reason != ""
	}) {
		t.Errorf("with more CPUs: %q, %v", w, found)
	}
	// A guest that keeps one has all as it was.
	b.keeps = true
	if _, _, err = b.apply(plugMore, nil, nil); !errors.Is(err, ErrNotReleased) {
		t.Error(err)
	}
	check("not released", more, made)
	b.keeps = false
	_, _, err = b.apply(plugMore, nil, nil)
	b.ok(err)
	check("one went", more)
	if w := b.awaits(); len(w) > 0 {
		t.Errorf("one went: %q", w)
	}
	if def, err := b.m.Definition(); err != nil || def.Used["new-disk"] != "" || def.Disks["more-claim"] != more {
		t.Errorf("%+v, %v", def, err)
	}
	// One of the start stays until then.
	_, found, err = b.apply("", nil, func(text string) string {
		return strings.Replace(text, "    - persistentVolumeClaim: {claimName: data}\n", "", 1)
	})
	b.ok(err)
	if w := b.awaits(); !slices.Contains(w, "remove spec.vm.disks[1]") {
		t.Errorf("one of the start: %q, %v", w, found)
	}
}

// What a machine has no place for waits for its next start, and what is another's is
// refused.
func TestDisksThatAreNotPlugged(t *testing.T) {
	b := newPlugBench(t)
	b.refuses = "Bus 'port0' not found"
	_, found, err := b.apply(plugNew, nil, nil)
	b.ok(err)
	if len(found) != 1 || found[0].Applied != changes.AppliedRestart || !strings.Contains(found[0].Reason, "made before machines had places") || len(b.awaits()) != 1 {
		t.Errorf("%v, %q", found, b.awaits())
	}
	if exists(filepath.Join(b.m.Data, "new-disk.img")) || len(b.opened) > 0 {
		t.Error("something is left of a disk that was not plugged")
	}
	b = newPlugBench(t)
	if _, _, err := b.apply(plugMore, map[string]string{"more": b.external}, nil); err == nil || !strings.Contains(err.Error(), "is the machine's disk data-claim") || len(b.opened) > 0 {
		t.Errorf("%v, %q", err, b.opened)
	}
	if data, err := os.ReadFile(b.m.ManifestFile()); err != nil || strings.Contains(string(data), "more") {
		t.Errorf("%v: %s", err, data)
	}
	used, err := os.OpenFile(filepath.Join(filepath.Dir(b.external), "used.img"), os.O_RDWR|os.O_CREATE, 0o600)
	b.ok(err)
	defer used.Close()
	b.ok(used.Truncate(4096))
	b.ok(unix.FcntlFlock(used.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: 100, Len: 1}))
	if _, _, err := b.apply(plugMore, map[string]string{"more": used.Name()}, nil); !errors.Is(err, errInUse) || len(b.opened) > 0 {
		t.Errorf("an image that another QEMU has: %v, %q", err, b.opened)
	}
	// Another QEMU has opened it since that was looked at.
	b.ok(os.WriteFile(filepath.Join(filepath.Dir(b.external), "free.img"), make([]byte, 4096), 0o600))
	b.locked = true
	if _, _, err := b.apply(plugMore, map[string]string{"more": filepath.Join(filepath.Dir(b.external), "free.img")}, nil); !errors.Is(err, errInUse) || len(b.opened) > 0 {
		t.Errorf("an image that another QEMU opens meanwhile: %v, %q", err, b.opened)
	}
	b.locked = false
	b.m.Status = Status(runner.PhaseStarting)
	if d, found, err := b.apply(plugNew, nil, nil); err != nil || d != nil || found[0].Applied != changes.AppliedRestart || len(b.opened) > 0 {
		t.Errorf("a machine that starts: %v, %v", found, err)
	}
	b.m.Status = StatusRunning
	b.ok(b.m.keep(&spec.Object{VirtualMachine: benchVM(t), Raw: []byte(benchManifest)}, Given{}))
	b.ok(os.Remove(b.m.startedFile()))
	d, found, err := b.apply(plugNew, nil, nil)
	b.ok(err)
	if d != nil || found[0].Applied != changes.AppliedRestart || len(b.opened) > 0 {
		t.Errorf("a machine of which nothing is known: %v", found)
	}
}
