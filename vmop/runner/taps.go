package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner/tap"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const vhostDevice = "/dev/vhost-net"

// PrepareTaps creates the tap interfaces of a line of [runnerconfig.FormatTaps] for a user, for a
// runner that takes them over with [OpenTaps]. It needs CAP_NET_ADMIN.
func PrepareTaps(line string, user int) error {
	taps, err := runnerconfig.ParseTaps(line)
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range taps {
		if err := tap.Prepare(t.Name, t.Bridge, t.Queues, user); err != nil {
			errs = append(errs, fmt.Errorf("vm.network[%d]: %w", t.Network, err))
		}
	}
	return errors.Join(errs...)
}

// OpenTaps takes over the interfaces that [PrepareTaps] created. They are deleted with this
// process, or with the QEMU that gets them: call it before anything else can fail.
func OpenTaps(line string) (map[int]*tap.Device, error) {
	taps, err := runnerconfig.ParseTaps(line)
	if err != nil {
		return nil, err
	}
	out := map[int]*tap.Device{}
	var errs []error
	for _, t := range taps {
		d, err := tap.Open(t.Name, t.Queues)
		if err != nil {
			errs = append(errs, fmt.Errorf("vm.network[%d]: %w", t.Network, err))
			continue
		}
		out[t.Network] = d
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, closeTaps(out))
	}
	return out, nil
}

func closeTaps(taps map[int]*tap.Device) error {
	var errs []error
	for _, d := range taps {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// openTaps opens the prepared interfaces, otherwise new ones, with this process's own privileges or
// by QEMU's bridge helper, which QEMU itself could not run under its sandbox.
func (e *Engine) openTaps(ctx context.Context) (map[int]runnerconfig.Tap, error) {
	vm := &e.o.Config.Runner.VM
	facts := map[int]runnerconfig.Tap{}
	for i, n := range vm.Network {
		if n.Type == runnerconfig.NetworkUser {
			continue
		}
		d := e.o.Taps[i]
		if d == nil {
			var err error
			if d, err = e.newTap(ctx, n.Bridge, vm.TapQueues(i)); err != nil {
				return nil, fmt.Errorf("%s: %w", e.networkField(i), err)
			}
		}
		t := runnerconfig.Tap{MTU: d.MTU}
		for _, q := range d.Queues {
			t.FDs = append(t.FDs, e.handOver(q))
		}
		d.Queues = nil // the engine has taken them over
		t.VhostFDs = e.openVhost(len(t.FDs))
		e.message(LevelInfo, "network %d is the interface %s of bridge %s", i, d.Name, bridgeName(n.Bridge))
		facts[i] = t
	}
	return facts, nil
}

func bridgeName(name string) string {
	if name == "" {
		return tap.DefaultBridge
	}
	return name
}

func (e *Engine) newTap(ctx context.Context, bridge string, queues int) (*tap.Device, error) {
	bridge = bridgeName(bridge)
	d, err := tap.New(bridge, queues)
	switch {
	case errors.Is(err, unix.ENODEV):
		return nil, fmt.Errorf("%w: name a bridge that is there (tap.bridge), make this one, or take a user network, which needs none", err)
	case !errors.Is(err, tap.ErrNotPermitted):
		return d, err
	}
	helper := e.o.Host.BridgeHelper
	if helper == "" {
		return nil, fmt.Errorf("%w, and there is no qemu-bridge-helper (Debian: package qemu-system-common, Fedora: qemu-common)", err)
	}
	d, herr := tap.Helper(ctx, helper, bridge)
	if herr != nil {
		return nil, fmt.Errorf("%w; an administrator allows users this with: %s, and a line \"allow %s\" in /etc/qemu/bridge.conf (%v)", herr, shellwords.Join("chmod", "u+s", helper), bridge, tap.ErrNotPermitted)
	}
	return d, nil
}

// openVhost opens the kernel's back end once for each queue, if this host and this user have it;
// without it QEMU moves the packets. Software emulation cannot use it: nothing would wake the
// guest.
func (e *Engine) openVhost(queues int) []int {
	if !e.o.Host.KVM || e.o.Config.Runner.VM.Accelerator == string(qemucmd.AcceleratorTCG) {
		return nil
	}
	var files []*os.File
	for range queues {
		f, err := os.OpenFile(vhostDevice, os.O_RDWR, 0)
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil
		}
		files = append(files, f)
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, e.handOver(f))
	}
	return fds
}
