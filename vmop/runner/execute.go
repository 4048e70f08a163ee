package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// execute does one step.
func (f *follower) execute(ctx context.Context, step live.Step) error {
	c := f.client
	switch s := step.(type) {
	case live.PlugCPU:
		props := make(map[string]any, len(s.Props))
		for k, v := range s.Props {
			props[k] = v
		}
		return do(ctx, c, qmp.DeviceAdd{Driver: s.Driver, ID: s.ID, Properties: props})
	case live.UnplugCPU:
		return do(ctx, c, qmp.DeviceDel{ID: s.ID})
	case live.SetBalloon:
		return do(ctx, c, qmp.Balloon{Value: s.Bytes})
	case live.OpenTray:
		return do(ctx, c, qmp.BlockdevOpenTray{ID: s.ID})
	case live.ChangeMedium:
		if !strings.Contains(s.File, "://") {
			if err := f.e.checkImage(s.File); err != nil {
				return fmt.Errorf("cd: %w", err)
			}
		}
		err := do(ctx, c, qmp.BlockdevChangeMedium{ID: s.ID, Filename: s.File, Format: "raw", ReadOnlyMode: "read-only"})
		if err == nil {
			err = f.release(ctx, s.ID)
		}
		return err
	case live.RemoveMedium:
		err := do(ctx, c, qmp.BlockdevRemoveMedium{ID: s.ID})
		if err == nil {
			err = f.release(ctx, s.ID)
		}
		return err
	case live.GrowDisk:
		err := do(ctx, c, qmp.BlockResize{NodeName: s.Node, Size: s.Bytes})
		if err == nil {
			f.e.message(LevelInfo, "the disk %s has grown to %s; the guest may enlarge its partitions", s.ID, runnerconfig.Bytes(s.Bytes))
		}
		return err
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
			f.e.resetEnds = s.Ends
			f.e.mu.Unlock()
		}
		if err == nil {
			f.e.message(LevelInfo, "%s", text)
		}
		return err
	case live.Cont:
		return do(ctx, c, qmp.Cont{})
	case live.Stop:
		return do(ctx, c, qmp.Stop{})
	}
	return fmt.Errorf("step %T is unknown", step)
}

// release closes the medium that a drive had at the start. QEMU keeps block nodes
// that were named; there is none any more after the first change.
func (f *follower) release(ctx context.Context, id string) error {
	err := do(ctx, f.client, qmp.BlockdevDel{NodeName: qemucmd.MediumNode(id)})
	if refusal(err) {
		return nil
	}
	return err
}
