package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Machine reports on a machine of this host, and asks its QEMU if it runs.
func Machine(ctx context.Context, m *host.Machine) (Report, error) {
	r, err := stored(m, time.Now())
	if err != nil || !m.Running() {
		return r, err
	}
	err = host.AskMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), func(c *qmp.Client) error { return r.Query(ctx, c) })
	if err != nil {
		return r, fmt.Errorf("inspect %s: %w", m.FullName(), err)
	}
	return r, nil
}

// stored reports on a machine without asking its QEMU; now determines the age of its conditions.
// [Report.Query] adds the answers of a running QEMU.
func stored(m *host.Machine, now time.Time) (Report, error) {
	if m == nil {
		return Report{}, errNoMachine
	}
	s := &m.State
	r := Report{
		Namespace: m.Namespace, Name: m.Name, UUID: s.UUID, Status: m.Status, Message: m.Message(), GuestPanics: s.GuestPanics,
		Versions: Versions{QEMU: s.QEMUVersion, Runner: s.RunnerVersion, MachineType: s.MachineType, Accelerator: string(s.Accelerator)},
	}
	for _, share := range s.Shares {
		r.Shares = append(r.Shares, Share(share))
	}
	if m.Running() && s.Started != nil {
		r.Started, r.UptimeSeconds = s.Started, int64(now.Sub(*s.Started).Seconds())
		r.Guest = inside(s)
	}
	if m.Running() || s.Phase == runner.PhaseStopped { // not from a runner that was killed
		r.Conditions, r.now = conditionsOf(m), now
	}
	r.Wanted, r.ManifestError = wanted(m.ManifestFile())
	var err error
	if r.Kept, err = kept(m); err == nil && !m.Running() {
		err = r.stoppedDisks(m)
	}
	if err != nil {
		return r, fmt.Errorf("inspect %s: %w", m.FullName(), err)
	}
	return r, nil
}

func wanted(file string) (*Wanted, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	objects, err := spec.Load(file, data, spec.Options{Default: true, Lenient: true})
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.VirtualMachine != nil {
			return WantedOf(o.VirtualMachine), nil
		}
	}
	return nil, fmt.Errorf("%s: no VirtualMachine", file)
}

var errNoMachine = errors.New("there is no machine: the pointer is nil")

// Query asks the QEMU behind a monitor, which may be any: what it does not support is left out.
func (r *Report) Query(ctx context.Context, c *qmp.Client) error {
	status, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return err
	}
	r.Versions.QEMU = c.Greeting().Version.String()
	r.RunState = status.Status
	if r.Status == host.StatusRunning || r.Status == host.StatusPaused {
		r.Status = host.StatusRunning // the runner's state may lag behind
		if status.Status == qmp.RunStatePaused || status.Status == qmp.RunStateIOError {
			r.Status = host.StatusPaused
		}
	}
	questions := []func(context.Context, *qmp.Client) error{r.queryIdentity, r.queryCPUs, r.queryMemory, r.queryDisks, r.queryNetworks}
	questions = append(questions, r.displayQueries()...)
	for _, ask := range append(questions, r.queryAgents) {
		// A QEMU of another program may lack devices or commands.
		if err := ask(ctx, c); err != nil && !errors.As(err, new(*qmp.Error)) {
			return err
		}
	}
	r.matchPlugged()
	return nil
}
