package runner

import (
	"context"
	"fmt"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (f *follower) execute(ctx context.Context, step live.Step) error {
	c := f.client
	switch s := step.(type) {
	case live.PlugCPU:
		return do(ctx, c, qmp.DeviceAdd{Driver: s.Driver, ID: s.ID, Properties: qmp.CPUProps(s.Props).Properties()})
	case live.UnplugCPU:
		return do(ctx, c, qmp.DeviceDel{ID: s.ID})
	case live.SetBalloon:
		return do(ctx, c, qmp.Balloon{Value: s.Bytes})
	case live.OpenTray:
		return do(ctx, c, qmp.BlockdevOpenTray{ID: s.ID})
	case live.ChangeMedium:
		return f.changeMedium(ctx, s.ID, s.File)
	case live.RemoveMedium:
		err := do(ctx, c, qmp.BlockdevRemoveMedium{ID: s.ID})
		if err == nil {
			err = f.release(ctx, s.ID, 0)
		}
		return err
	case live.GrowDisk:
		err := do(ctx, c, qmp.BlockResize{NodeName: s.Node, Size: s.Bytes})
		if err == nil {
			f.e.message(LevelInfo, "the disk %s has grown to %s; the guest may enlarge its partitions", s.ID, runnerconfig.Bytes(s.Bytes))
		}
		return err
	case live.PlugDisk:
		return f.plugDisk(ctx, s)
	case live.UnplugDisk:
		return f.unplugDisk(ctx, s.UID)
	case live.CloseDisk:
		return f.closeDisk(ctx, s.Port)
	case live.PlugUSBDevice:
		return do(ctx, c, qmp.DeviceAdd{Driver: qemucmd.USBHostDriver, ID: s.ID, Bus: qemucmd.USBBus, Properties: map[string]any{
			"vendorid": s.Vendor, "productid": s.Product,
		}})
	case live.UnplugUSBDevice:
		return do(ctx, c, qmp.DeviceDel{ID: s.ID})
	case live.SetDisplayPassword:
		return do(ctx, c, qmp.SetPassword{Protocol: s.Protocol, Password: f.secret.password})
	case live.ExpireDisplayPassword:
		return do(ctx, c, qmp.ExpirePassword{Protocol: s.Protocol, Time: s.Time})
	case live.Reset:
		return do(ctx, c, qmp.SystemReset{})
	case live.SetResetAction:
		action, text := qmp.RebootReset, "a reset of the machine is one again"
		if s.Ends {
			action, text = qmp.RebootShutdown, "a reset by the guest ends the machine from now on, because changes wait for its next start"
		}
		err := do(ctx, c, qmp.SetAction{Reboot: action})
		if err == nil || s.Ends && !refusal(err) {
			f.e.mu.Lock()
			f.e.end.resetEnds = s.Ends
			f.e.mu.Unlock()
		}
		if err == nil {
			f.e.message(LevelInfo, "%s", text)
		}
		return err
	case live.Cont:
		f.resumed = true // also if nobody waits for the answer any more
		return do(ctx, c, qmp.Cont{})
	case live.Stop:
		return do(ctx, c, qmp.Stop{})
	}
	return fmt.Errorf("step %T is unknown", step)
}

func (f *follower) changeMedium(ctx context.Context, id, image string) error {
	name, set := image, 0
	if !isURL(image) {
		file, err := f.e.openImage(image)
		if err != nil {
			return fmt.Errorf("cd: %w", err)
		}
		defer file.Close()
		f.media++
		set = mediaSets + f.media
		if _, err := answer(ctx, f.client, qmp.AddFD{FDSetID: &set, Opaque: image}, qmp.WithFile(file)); err != nil {
			return err
		}
		name = qemucmd.FDSetName(set)
		f.e.opened.Store(name, image)
	}
	err := do(ctx, f.client, qmp.BlockdevChangeMedium{ID: id, Filename: name, Format: "raw", ReadOnlyMode: "read-only"})
	if err == nil {
		return f.release(ctx, id, set)
	}
	if set != 0 && refusal(err) {
		f.forget(ctx, set)
	}
	return f.e.readable(err)
}
