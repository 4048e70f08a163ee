package qmp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/internal/qemutest"
)

// do runs a command that must succeed.
func do[R any](t testing.TB, ctx context.Context, c *qmp.Client, cmd qmp.Command[R], opts ...qmp.CallOption) R {
	t.Helper()
	r, err := qmp.Do(ctx, c, cmd, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestQueriesOfARealMachine(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "disk")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	vnc := filepath.Join(dir, "vnc")
	ctx, c := real(t, qmp.Options{OOB: true},
		"-machine", "q35", "-cpu", "qemu64", "-smp", "1,maxcpus=2", "-m", "128,slots=2,maxmem=1G",
		"-name", "test machine", "-uuid", "4b1a3c9e-0df7-4fd5-b3a8-2f8a5c0a9a01",
		"-vnc", "unix:"+vnc+",password=on", "-device", "VGA",
		"-object", "iothread,id=io0",
		"-blockdev", `{"driver":"raw","node-name":"disk","file":{"driver":"file","filename":"`+image+`"}}`,
		"-device", "virtio-blk-pci,id=vd0,drive=disk", "-device", "ide-cd,id=cd0",
		"-device", "pcie-root-port,id=rp0,chassis=1", "-device", "virtio-balloon-pci,id=bal")

	if st := do(t, ctx, c, qmp.QueryStatus{}); st.Running || st.Status != qmp.RunStatePrelaunch {
		t.Errorf("status %+v", st)
	}
	if v := do(t, ctx, c, qmp.QueryVersion{}); v != c.Greeting().Version || v.QEMU.Major < 7 {
		t.Errorf("version %+v", v)
	}
	if n := do(t, ctx, c, qmp.QueryName{}); n.Name != "test machine" {
		t.Errorf("name %+v", n)
	}
	if u := do(t, ctx, c, qmp.QueryUUID{}); u.UUID != "4b1a3c9e-0df7-4fd5-b3a8-2f8a5c0a9a01" {
		t.Errorf("uuid %+v", u)
	}
	if k := do(t, ctx, c, qmp.QueryKVM{}); k.Enabled {
		t.Errorf("kvm %+v", k)
	}
	if a := do(t, ctx, c, qmp.QueryTarget{}); a.Arch != "x86_64" {
		t.Errorf("target %+v", a)
	}
	if m := do(t, ctx, c, qmp.QueryMemorySizeSummary{}); m.BaseMemory != 128<<20 || m.PluggedMemory != 0 {
		t.Errorf("memory %+v", m)
	}
	if b := do(t, ctx, c, qmp.QueryBalloon{}); b.Actual != 128<<20 {
		t.Errorf("balloon %+v", b)
	}
	do(t, ctx, c, qmp.QueryCurrentMachine{})
	if ms := do(t, ctx, c, qmp.QueryMachines{}); len(ms) < 10 {
		t.Errorf("%d machines", len(ms))
	}
	if cs := do(t, ctx, c, qmp.QueryCPUDefinitions{}); len(cs) < 10 || cs[0].Typename == "" {
		t.Errorf("%d CPU definitions", len(cs))
	}
	if cs := do(t, ctx, c, qmp.QueryCommands{}); len(cs) < 200 {
		t.Errorf("%d commands", len(cs))
	}
	if i := do(t, ctx, c, qmp.QueryIOThreads{}); len(i) != 1 || i[0].ID != "io0" || i[0].ThreadID == 0 {
		t.Errorf("iothreads %+v", i)
	}
	if ch := do(t, ctx, c, qmp.QueryChardev{}); len(ch) == 0 || ch[0].Label == "" {
		t.Errorf("chardevs %+v", ch)
	}
	if p := do(t, ctx, c, qmp.QueryPCI{}); len(p) != 1 || len(p[0].Devices) < 5 {
		t.Errorf("PCI %+v", p)
	}
	if v := do(t, ctx, c, qmp.QueryVNC{}); !v.Enabled || v.Service != vnc || v.Auth != "vnc" {
		t.Errorf("VNC %+v", v)
	}
	if v := do(t, ctx, c, qmp.QueryVNCServers{}); len(v) != 1 || len(v[0].Server) != 1 || v[0].Server[0].Family != "unix" {
		t.Errorf("VNC servers %+v", v)
	}
	do(t, ctx, c, qmp.SetPassword{Protocol: "vnc", Password: "secret"})
	do(t, ctx, c, qmp.ExpirePassword{Protocol: "vnc", Time: "+30"})
	if tpm := do(t, ctx, c, qmp.QueryTPM{}); len(tpm) != 0 {
		t.Errorf("TPM %+v", tpm)
	}
	if y := do(t, ctx, c, qmp.QueryYank{}, qmp.OutOfBand()); len(y) != 1 || y[0].Type != "chardev" {
		t.Errorf("yank %+v", y)
	}
	if _, err := qmp.Do(ctx, c, qmp.QueryStatus{}, qmp.OutOfBand()); err == nil {
		t.Error("query-status was executed out of band")
	}
	t.Run("cpu", func(t *testing.T) { plugCPU(t, ctx, c) })
	t.Run("memory", func(t *testing.T) { plugMemory(t, ctx, c) })
	t.Run("block", func(t *testing.T) { blockNodes(t, ctx, c, image) })
	t.Run("media", func(t *testing.T) { media(t, ctx, c) })
	t.Run("device", func(t *testing.T) { plugDevice(t, ctx, c) })
	t.Run("objects", func(t *testing.T) { objects(t, ctx, c) })
	shot := filepath.Join(dir, "shot")
	do(t, ctx, c, qmp.Screendump{Filename: shot, Format: "png"})
	if b, err := os.ReadFile(shot); err != nil || !strings.HasPrefix(string(b), "\x89PNG") {
		t.Errorf("screenshot of %d bytes, %v", len(b), err)
	}
}

func plugCPU(t *testing.T, ctx context.Context, c *qmp.Client) {
	for _, place := range do(t, ctx, c, qmp.QueryHotpluggableCPUs{}) {
		if place.QOMPath != "" {
			continue
		}
		do(t, ctx, c, qmp.DeviceAdd{Driver: place.Type, ID: "cpu1", Properties: place.Props.Properties()})
	}
	cpus := do(t, ctx, c, qmp.QueryCPUsFast{})
	if len(cpus) != 2 || cpus[1].QOMPath != "/machine/peripheral/cpu1" || cpus[1].ThreadID == 0 {
		t.Errorf("CPUs %+v", cpus)
	}
}

func plugMemory(t *testing.T, ctx context.Context, c *qmp.Client) {
	do(t, ctx, c, qmp.ObjectAdd{QOMType: "memory-backend-ram", ID: "m1", Properties: map[string]any{"size": 128 << 20}})
	do(t, ctx, c, qmp.DeviceAdd{Driver: "pc-dimm", ID: "dimm1", Properties: map[string]any{"memdev": "m1"}})
	d := do(t, ctx, c, qmp.QueryMemoryDevices{})
	if len(d) != 1 || d[0].Type != "dimm" || d[0].Data.ID != "dimm1" || d[0].Data.Size != 128<<20 || !d[0].Data.Hotpluggable {
		t.Errorf("memory devices %+v", d)
	}
	if m := do(t, ctx, c, qmp.QueryMemorySizeSummary{}); m.PluggedMemory != 128<<20 {
		t.Errorf("memory %+v", m)
	}
}

func blockNodes(t *testing.T, ctx context.Context, c *qmp.Client, image string) {
	file, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// QEMU opens the file that it was given, not the path.
	set := do(t, ctx, c, qmp.AddFD{Opaque: "image"}, qmp.WithFile(file))
	do(t, ctx, c, qmp.BlockdevAdd{Driver: "file", NodeName: "given", Options: map[string]any{
		"filename": fmt.Sprintf("/dev/fdset/%d", set.FDSetID), "read-only": true,
	}})
	named := make(map[string]qmp.BlockDeviceInfo)
	for _, node := range do(t, ctx, c, qmp.QueryNamedBlockNodes{Flat: true}) {
		named[node.NodeName] = node
	}
	if n := named["given"]; n.Image.VirtualSize != 1<<20 || !n.ReadOnly || n.Driver != "file" {
		t.Errorf("node %+v", n)
	}
	do(t, ctx, c, qmp.BlockdevDel{NodeName: "given"})
	do(t, ctx, c, qmp.RemoveFD{FDSetID: set.FDSetID})
	do(t, ctx, c, qmp.BlockResize{NodeName: "disk", Size: 2 << 20})

	found := false
	for _, b := range do(t, ctx, c, qmp.QueryBlock{}) {
		if strings.Contains(b.QDev, "vd0") {
			found = b.Inserted != nil && b.Inserted.Image.VirtualSize == 2<<20 && b.TrayOpen == nil
		}
	}
	if !found {
		t.Errorf("block devices %+v", do(t, ctx, c, qmp.QueryBlock{}))
	}
	if s := do(t, ctx, c, qmp.QueryBlockStats{}); len(s) == 0 || s[0].QDev == "" {
		t.Errorf("block statistics %+v", s)
	}
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer w.Close()
	do(t, ctx, c, qmp.GetFD{FDName: "pipe"}, qmp.WithFile(pipe))
	do(t, ctx, c, qmp.CloseFD{FDName: "pipe"})
	_, err = qmp.Do(ctx, c, qmp.GetFD{FDName: "pipe"})
	wantError(t, err, qmp.ErrGeneric)
}

func media(t *testing.T, ctx context.Context, c *qmp.Client) {
	image := filepath.Join(t.TempDir(), "iso")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	moved := c.Subscribe(8, "DEVICE_TRAY_MOVED")
	defer moved.Close()
	tray := func(open bool) {
		t.Helper()
		e, err := moved.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := qmp.DecodeEvent[qmp.DeviceTrayMovedEvent](e)
		if err != nil || got.ID != "cd0" || got.TrayOpen != open {
			t.Errorf("event %+v, %v", got, err)
		}
	}
	do(t, ctx, c, qmp.BlockdevOpenTray{ID: "cd0"})
	tray(true)
	do(t, ctx, c, qmp.BlockdevAdd{Driver: "raw", NodeName: "iso", Options: map[string]any{
		"read-only": true, "file": map[string]any{"driver": "file", "filename": image},
	}})
	do(t, ctx, c, qmp.BlockdevInsertMedium{ID: "cd0", NodeName: "iso"})
	do(t, ctx, c, qmp.BlockdevCloseTray{ID: "cd0"})
	tray(false)
	do(t, ctx, c, qmp.BlockdevOpenTray{ID: "cd0", Force: true})
	tray(true)
	do(t, ctx, c, qmp.BlockdevRemoveMedium{ID: "cd0"})
	do(t, ctx, c, qmp.BlockdevDel{NodeName: "iso"})
	do(t, ctx, c, qmp.BlockdevChangeMedium{ID: "cd0", Filename: image, Format: "raw", ReadOnlyMode: "read-only"})
	tray(false)
}

func plugDevice(t *testing.T, ctx context.Context, c *qmp.Client) {
	do(t, ctx, c, qmp.NetdevAdd{Type: "user", ID: "n0", Properties: map[string]any{"restrict": true}})
	do(t, ctx, c, qmp.DeviceAdd{Driver: "virtio-net-pci", ID: "nic0", Bus: "rp0", Properties: map[string]any{
		"netdev": "n0", "mac": "52:54:00:00:00:01",
	}})
	mac := do(t, ctx, c, qmp.QOMGet{Path: "/machine/peripheral/nic0", Property: "mac"})
	if string(mac) != `"52:54:00:00:00:01"` {
		t.Errorf("MAC %s", mac)
	}
	_, err := qmp.Do(ctx, c, qmp.DeviceDel{ID: "nowhere"})
	wantError(t, err, qmp.ErrDeviceNotFound)
	if p := do(t, ctx, c, qmp.DeviceListProperties{Typename: "virtio-net-pci"}); len(p) < 10 {
		t.Errorf("%d properties", len(p))
	}
	// The parser of QEMU refuses this, in a message without an id.
	_, err = c.Execute(ctx, "device_del", json.RawMessage(`{"id":"a","id":"b"}`))
	wantError(t, err, qmp.ErrGeneric, &qmp.Error{Command: "device_del"})
	do(t, ctx, c, qmp.QueryStatus{})
}

func objects(t *testing.T, ctx context.Context, c *qmp.Client) {
	do(t, ctx, c, qmp.ObjectAdd{QOMType: "iothread", ID: "io1"})
	do(t, ctx, c, qmp.QOMSet{Path: "/objects/io1", Property: "poll-max-ns", Value: 1000})
	if v := do(t, ctx, c, qmp.QOMGet{Path: "/objects/io1", Property: "poll-max-ns"}); string(v) != "1000" {
		t.Errorf("property is %s", v)
	}
	if l := do(t, ctx, c, qmp.QOMList{Path: "/objects"}); len(l) < 3 {
		t.Errorf("objects %+v", l)
	}
	if l := do(t, ctx, c, qmp.QOMListTypes{Implements: "iothread"}); len(l) != 1 || l[0].Name != "iothread" {
		t.Errorf("types %+v", l)
	}
	do(t, ctx, c, qmp.ObjectDel{ID: "io1"})
}

func TestPowerOfARealMachine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	m := qemutest.Start(t, 1, "-machine", "q35")
	c, err := qmp.Dial(ctx, m.Sockets[0], qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = qmp.Do(ctx, c, qmp.Balloon{Value: 1 << 20})
	wantError(t, err, qmp.ErrDeviceNotActive)
	events := c.Subscribe(16)
	do(t, ctx, c, qmp.Cont{})
	do(t, ctx, c, qmp.SystemReset{})
	do(t, ctx, c, qmp.Stop{})
	do(t, ctx, c, qmp.InjectNMI{})
	do(t, ctx, c, qmp.SystemPowerdown{})
	_, _ = qmp.Do(ctx, c, qmp.Quit{}) // the reply may be lost
	seen := make(map[string]qmp.Event)
	for e := range events.All(ctx) {
		if _, again := seen[e.Name]; !again {
			seen[e.Name] = e
		}
	}
	wantError(t, events.Err(), qmp.ErrDisconnected)
	wantError(t, c.Err(), qmp.ErrDisconnected)
	for _, name := range []string{"RESUME", "RESET", "STOP", "POWERDOWN", "SHUTDOWN"} {
		if _, ok := seen[name]; !ok {
			t.Errorf("event %s was not seen", name)
		}
	}
	if got, err := qmp.DecodeEvent[qmp.ShutdownEvent](seen["SHUTDOWN"]); err != nil || got.Guest || got.Reason != qmp.CauseHostQuit {
		t.Errorf("shutdown %+v, %v", got, err)
	}
	m.Wait(t)
}

// A monitor has one client. The next is not greeted until that one is gone, and
// then starts afresh.
func TestReconnectToARealMachine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	m := qemutest.Start(t, 1, "-machine", "none")
	for range 3 {
		first, err := qmp.Dial(ctx, m.Sockets[0], qmp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithCancel(ctx)
		second := make(chan error)
		go func() {
			c, err := qmp.Dial(short, m.Sockets[0], qmp.Options{})
			if err == nil {
				_ = c.Close()
			}
			second <- err
		}()
		do(t, ctx, first, qmp.QueryStatus{})
		stop()
		wantError(t, <-second, context.Canceled)
		_ = first.Close()
	}
}

func TestManyCommandsAtOnceOnARealMachine(t *testing.T) {
	for _, oob := range []bool{false, true} {
		t.Run(fmt.Sprintf("oob=%t", oob), func(t *testing.T) {
			ctx, c := real(t, qmp.Options{OOB: oob}, "-machine", "none")
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() {
					id := fmt.Sprintf("rng%d", i)
					do(t, ctx, c, qmp.ObjectAdd{QOMType: "rng-builtin", ID: id})
					raw := do(t, ctx, c, qmp.QOMGet{Path: "/objects/" + id, Property: "type"})
					if string(raw) != `"rng-builtin"` {
						t.Errorf("type is %s", raw)
					}
					_, err := c.Execute(ctx, "qom-get", map[string]string{"path": "/objects/no" + id, "property": "type"})
					if err == nil || !strings.Contains(err.Error(), id+"'") {
						t.Errorf("got somebody else's refusal: %v", err)
					}
				})
				all.Go(func() {
					var schema []json.RawMessage
					if i%10 == 0 {
						raw, err := c.Execute(ctx, "query-qmp-schema", nil)
						if err != nil || json.Unmarshal(raw, &schema) != nil || len(raw) < 64<<10 {
							t.Errorf("schema of %d bytes, %v", len(raw), err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
