package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const observeRetry = 30 * time.Second

// begin resumes the guest even if a part of the configuration cannot be applied. If ctx ends after
// QEMU was told to, there is no error: a guest that executes is shut down, and not aborted.
func (f *follower) begin(ctx context.Context) error {
	_, err := f.adjust(ctx)
	var status qmp.Status
	if err == nil {
		status, err = answer(ctx, f.client, qmp.QueryStatus{})
	}
	switch {
	case err != nil && ctx.Err() != nil && f.resumed:
		return nil
	case err != nil:
		return err
	}
	if status.Status == qmp.RunStatePrelaunch {
		return fmt.Errorf("let the guest go: %s", f.memory.Tries["cont"].Error)
	}
	return nil
}

func (f *follower) follow(ctx context.Context) {
	timer := time.NewTimer(0) // handle changes since the start
	defer timer.Stop()
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.client.Done():
			return
		case <-f.e.wake:
		case <-timer.C:
		case <-ping.C:
			if f.hangs || f.responds(ctx) {
				continue // one that hangs is observed again soon
			}
			f.reportHanging()
		}
		wake, err := f.adjust(ctx)
		if ctx.Err() != nil || f.client.Err() != nil {
			return
		}
		f.hangs = errors.Is(err, context.DeadlineExceeded)
		switch {
		case f.hangs:
			f.reportHanging()
			wake = f.e.o.clock.now().Add(observeRetry)
		case err != nil:
			f.e.message(LevelWarning, "observe the machine: %v", err)
			wake = f.e.o.clock.now().Add(observeRetry)
		}
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(f.e.o.clock.until(wake))
		}
	}
}

// responds reports whether QEMU answers as it did before: a main loop that waits for storage or for
// itself does not, and no event reports that.
func (f *follower) responds(ctx context.Context) bool {
	_, err := answer(ctx, f.client, qmp.QueryStatus{})
	return !errors.Is(err, context.DeadlineExceeded)
}

func (f *follower) reportHanging() {
	before := f.e.State().Conditions
	c := live.Condition{
		Type: live.GuestExecuting, Status: live.Unknown, Reason: live.ReasonQEMUNotResponding,
		Message: fmt.Sprintf("QEMU has not answered for %v: its storage does not answer, or it hangs; if that lasts, stop the machine by force", commandDeadline),
	}
	after := slices.DeleteFunc(slices.Clone(before), func(o live.Condition) bool { return o.Type == c.Type })
	after = append(after, c)
	f.e.update(func(s *State) { s.Conditions, s.Paused = after, true })
	f.e.announce(before, after)
}

// adjust executes the missing steps, and returns when to observe again.
func (f *follower) adjust(ctx context.Context) (wake time.Time, err error) {
	late := false // QEMU did not answer a command in time
	for {
		in := f.e.takeDesired()
		f.refused(in.refused)
		if in.secret {
			f.secret = f.e.readDisplaySecret()
		}
		observed, err := f.observe(ctx, in)
		if err != nil {
			f.e.putBack(in)
			return time.Time{}, err
		}
		d := live.Decide(live.Input{
			Config: &in.config, Generation: in.renewed, Machine: f.machine, Display: f.secret.seen,
			Power: in.power, Observed: observed, Memory: f.memory, Now: f.e.o.clock.now(),
		})
		f.memory = d.Memory
		if late { // it may not answer the next one either: report first
			f.report(in, d, observed)
		}
		late = false
		for _, step := range d.Steps {
			problem := ""
			err := f.execute(ctx, step)
			if err != nil {
				problem = err.Error()
				late = late || errors.Is(err, context.DeadlineExceeded)
			}
			serial := f.memory.PasswordSerial
			f.memory = f.memory.Result(step, problem)
			if err != nil && !refusal(err) {
				f.memory = f.memory.Unsure(step)
			}
			if f.memory.PasswordSerial != serial {
				f.e.update(func(s *State) { s.DisplayPasswordSerial++ })
			}
		}
		if len(d.Steps) > 0 && ctx.Err() == nil {
			continue
		}
		return f.report(in, d, observed), nil
	}
}

func (f *follower) refused(devices map[string]string) {
	for _, id := range slices.Sorted(maps.Keys(devices)) {
		f.memory = f.memory.Result(live.UnplugCPU{ID: id}, devices[id])
	}
}

func (f *follower) report(in desired, d live.Decision, observed live.Observed) time.Time {
	wake := d.Wake
	now := f.e.o.clock.now()
	conditions := append(slices.Clone(d.Conditions), in.conditions()...)
	conditions = append(conditions, f.e.shareConditions()...)
	state := f.e.State()
	next := state
	next.Conditions, next.ConfigGeneration, next.Generation = conditions, in.generation, in.config.Runner.Generation
	next.MachineUID = in.config.Runner.MachineUID
	next.Attachments, next.AttachmentKey, next.Disks = d.Attachments, f.attachmentKey(in), d.Disks
	switch qmp.RunState(observed.RunState) {
	case qmp.RunStatePaused, qmp.RunStateIOError, qmp.RunStateGuestPanicked, qmp.RunStateInternalError, qmp.RunStateWatchdog:
		next.Paused = true
	default:
		next.Paused = false
	}
	if len(observed.CPUs) > 0 {
		next.CPUs = 0
		for _, s := range observed.CPUs {
			if s.QOMPath != "" {
				next.CPUs++
			}
		}
	}
	ram := f.machine.RAM
	if observed.Balloon != nil {
		ram = *observed.Balloon
	}
	report, due := live.ReportRAM(ram, live.BalloonTarget(&in.config, f.machine.RAM), state.RAM, f.ramSaid, now)
	if report {
		next.RAM, f.ramSaid = ram, now
	}
	if !due.IsZero() && (wake.IsZero() || due.Before(wake)) {
		wake = due
	}
	if !next.equal(state) {
		f.e.update(func(s *State) {
			s.Conditions, s.ConfigGeneration, s.Generation = next.Conditions, next.ConfigGeneration, next.Generation
			s.Paused, s.CPUs, s.RAM, s.MachineUID = next.Paused, next.CPUs, next.RAM, next.MachineUID
			s.Attachments, s.AttachmentKey, s.Disks = next.Attachments, next.AttachmentKey, next.Disks
		})
	}
	f.e.announce(state.Conditions, conditions)
	return wake
}

func (s State) equal(o State) bool {
	return slices.Equal(s.Conditions, o.Conditions) &&
		slices.Equal(s.Attachments, o.Attachments) && s.AttachmentKey == o.AttachmentKey && slices.Equal(s.Disks, o.Disks) &&
		s.ConfigGeneration == o.ConfigGeneration && s.Generation == o.Generation && s.MachineUID == o.MachineUID &&
		s.Paused == o.Paused && s.CPUs == o.CPUs && s.RAM == o.RAM
}

func (e *Engine) announce(before, after []live.Condition) {
	old := map[string]live.Condition{}
	for _, c := range before {
		old[c.Type] = c
	}
	for _, c := range after {
		was, known := old[c.Type]
		if was.Reason == c.Reason && was.Status == c.Status || c.Reason == live.ReasonAdjusting || !known && (c.Status == live.True || c.Message == "") {
			continue
		}
		level := LevelInfo
		if c.Status != live.True && c.Type != live.RestartRequired {
			level = LevelWarning
		}
		text := c.Type + ": " + string(c.Status) + ", " + c.Reason
		if c.Message != "" {
			text += ": " + c.Message
		}
		e.message(level, "%s", text)
	}
}

func (e *Engine) newFollower(ctx context.Context, c *qmp.Client) (*follower, error) {
	size, err := answer(ctx, c, qmp.QueryMemorySizeSummary{})
	if err != nil {
		return nil, fmt.Errorf("ask for the size of the memory: %w", err)
	}
	// A custom machine type chooses its accelerator itself.
	kvm, err := answer(ctx, c, qmp.QueryKVM{})
	if err != nil && !refusal(err) { // a QEMU without the command has no KVM

		return nil, fmt.Errorf("ask for the accelerator: %w", err)
	}
	e.mu.Lock()
	ticketing := e.ticketing
	e.mu.Unlock()
	started := &e.o.Config
	if !ticketing {
		e.update(func(s *State) { s.DisplayPasswordSerial = -1 })
	}
	inDrive := map[string]int{}
	for _, d := range started.Runner.VM.Drives {
		if d.Type == runnerconfig.DriveCD {
			inDrive[qemucmd.CDID(len(inDrive))] = qemucmd.CDSet(len(inDrive))
		}
	}
	return &follower{
		e: e, client: c, inDrive: inDrive,
		machine: live.Machine{
			Started: started, RAM: size.BaseMemory,
			HTTPImages: slices.Contains(e.o.Host.BlockDrivers, "http") && slices.Contains(e.o.Host.BlockDrivers, "https"),
			Ticketing:  ticketing,
			KVM:        kvm.Enabled,
			GrowsDisks: len(e.o.Volumes) == 0,
			Ports:      qemucmd.PortsOf(e.State().AddressMap),
		},
		memory: live.Start(started),
	}, nil
}
