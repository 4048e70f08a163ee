package runner

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

func (f *follower) observe(ctx context.Context, in desired) (live.Observed, error) {
	o := live.Observed{Resets: in.resets}
	status, err := answer(ctx, f.client, qmp.QueryStatus{})
	if err != nil {
		return o, err
	}
	o.RunState = string(status.Status)
	cpus, err := answer(ctx, f.client, qmp.QueryHotpluggableCPUs{})
	if err != nil && !refusal(err) { // machine types without places for CPUs refuse
		return o, err
	}
	for _, c := range cpus {
		o.CPUs = append(o.CPUs, live.CPUSlot{Driver: c.Type, Props: c.Props, QOMPath: c.QOMPath})
	}
	if !f.machine.KVM && live.LacksCPUs(&in.config, o.CPUs) {
		jit, err := answer(ctx, f.client, qmp.QueryJIT{})
		if err != nil && !refusal(err) { // other accelerators and versions do not know it
			return o, err
		}
		o.Translation = jit.Text
	}
	balloon, err := answer(ctx, f.client, qmp.QueryBalloon{})
	switch {
	case err == nil:
		o.Balloon = &balloon.Actual
		if !live.BalloonReached(balloon.Actual, live.BalloonTarget(&in.config, f.machine.RAM)) {
			if o.NoBalloonDriver, err = f.noBalloonDriver(ctx); err != nil {
				return o, err
			}
		}
	case !refusal(err):
		return o, err
	}
	blocks, err := answer(ctx, f.client, qmp.QueryBlock{})
	if err != nil {
		return o, err
	}
	for _, b := range blocks {
		if d, ok := cdDrive(b); ok {
			d.Medium = f.e.imagePath(d.Medium)
			o.Drives = append(o.Drives, d)
		} else if id := qemucmd.DeviceID(b.QDev); isDisk(id) && b.Inserted != nil {
			o.Disks = append(o.Disks, live.Disk{ID: id, Node: b.Inserted.NodeName, Size: b.Inserted.Image.VirtualSize})
		}
	}
	if o.Attached, err = f.attached(ctx, in, blocks); err != nil {
		return o, err
	}
	if o.USBDevices, err = f.usbDevices(ctx, in); err != nil {
		return o, err
	}
	if status.Status == qmp.RunStateIOError {
		o.IOError = f.e.ioError(blocks, in.ioReason)
	}
	if in.console {
		for _, p := range viewerProtocols() {
			if err := p.observe(f, ctx, in); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// noBalloonDriver reports whether no driver has sent the balloon's statistics since QEMU's start,
// which each driver does first. It returns false where QEMU does not answer.
func (f *follower) noBalloonDriver(ctx context.Context) (bool, error) {
	raw, err := answer(ctx, f.client, qmp.QOMGet{Path: qemucmd.DevicePath(qemucmd.BalloonID), Property: "guest-stats"})
	if err != nil {
		if refusal(err) {
			return false, nil
		}
		return false, err
	}
	var stats struct {
		LastUpdate *int64 `json:"last-update"`
	}
	return json.Unmarshal(raw, &stats) == nil && stats.LastUpdate != nil && *stats.LastUpdate == 0, nil
}

func (f *follower) usbDevices(ctx context.Context, in desired) ([]string, error) {
	f.hasUSB = f.hasUSB || len(in.config.Runner.VM.USBDevices)+len(f.machine.Started.Runner.VM.USBDevices) > 0
	if !f.hasUSB {
		return nil, nil
	}
	children, err := answer(ctx, f.client, qmp.QOMList{Path: qemucmd.Peripheral})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range children {
		if qemucmd.IsUSBDevice(c.Name) {
			out = append(out, c.Name)
		}
	}
	return out, nil
}

func isDisk(id string) bool {
	_, plugged := qemucmd.PluggedDisk(id)
	return plugged || qemucmd.IsDisk(id)
}

func cdDrive(b qmp.BlockInfo) (live.Drive, bool) {
	id := qemucmd.DeviceID(b.QDev)
	if b.TrayOpen == nil || !qemucmd.IsCD(id) {
		return live.Drive{}, false
	}
	d := live.Drive{ID: id, TrayOpen: *b.TrayOpen, Locked: b.Locked}
	if b.Inserted != nil {
		d.Medium = b.Inserted.File
	}
	return d, true
}

func (e *Engine) ioError(blocks []qmp.BlockInfo, reason string) *live.IOError {
	for _, b := range blocks {
		if b.IOStatus != "failed" && b.IOStatus != "nospace" || b.Inserted == nil {
			continue
		}
		out := &live.IOError{Device: e.diskName(qemucmd.DeviceID(b.QDev)), File: e.imagePath(fileName(b.Inserted.File)), Reason: reason, NoSpace: b.IOStatus == "nospace"}
		var fs unix.Statfs_t
		if err := unix.Statfs(filepath.Dir(out.File), &fs); err != nil {
			out.NoSpace = false // free space could not be detected
		}
		out.Free = int64(fs.Bavail) * fs.Bsize
		return out
	}
	return nil
}

// fileName returns the file of a node by QEMU's name of it: a JSON description if the node is not
// opened as its file implies, such as an overlay.
func fileName(name string) string {
	description, is := strings.CutPrefix(name, "json:")
	var node struct {
		File struct {
			Filename string `json:"filename"`
		} `json:"file"`
	}
	if is && json.Unmarshal([]byte(description), &node) == nil && node.File.Filename != "" {
		return node.File.Filename
	}
	return name
}

func (e *Engine) imagePath(name string) string {
	if path, ok := e.opened.Load(name); ok {
		return path.(string)
	}
	return name
}

var openedImage = regexp.MustCompile(regexp.QuoteMeta(qemucmd.FDSetPrefix) + "[0-9]+|/proc/self/fd/[0-9]+")

func (e *Engine) namedImages(text string) string {
	return openedImage.ReplaceAllStringFunc(text, e.imagePath)
}

func (f *follower) attached(ctx context.Context, in desired, blocks []qmp.BlockInfo) ([]live.Attached, error) {
	f.hasAttached = f.hasAttached || len(in.config.Runner.VM.Attachments) > 0
	if !f.hasAttached {
		return nil, nil
	}
	var out []live.Attached
	known := map[int]bool{}
	for _, b := range blocks {
		uid, ok := qemucmd.AttachedDisk(qemucmd.DeviceID(b.QDev))
		if !ok || b.Inserted == nil {
			continue
		}
		if port, ok := qemucmd.AttachedPort(b.Inserted.NodeName); ok {
			known[port] = true
			out = append(out, live.Attached{UID: uid, Port: port})
		}
	}
	nodes, err := answer(ctx, f.client, qmp.QueryNamedBlockNodes{Flat: true})
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if port, ok := qemucmd.AttachedPort(n.NodeName); ok && !known[port] {
			known[port] = true
			out = append(out, live.Attached{Port: port})
		}
	}
	return out, nil
}
