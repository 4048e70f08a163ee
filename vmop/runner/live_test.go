package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vmop/sdk/internal/spice"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// condition finds a condition of a state.
func condition(s State, kind string) live.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return live.Condition{}
}

func reason(kind, reason string) func(State) bool {
	return func(s State) bool { return condition(s, kind).Reason == reason }
}

// reconfigure changes a copy of the configuration and hands it to the engine.
func (r *running) reconfigure(t *testing.T, c *runnerconfig.Config, change func(*runnerconfig.Runner)) {
	t.Helper()
	c.Runner.VM.Drives = slices.Clone(c.Runner.VM.Drives) // the engine has the others
	change(&c.Runner)
	if err := r.Reconfigure(*c); err != nil {
		t.Fatal(err)
	}
	r.given++
}

// now waits for a state of the last configuration given.
func (r *running) now(t *testing.T, what string, wanted func(State) bool) State {
	t.Helper()
	given := r.given
	is := func(s State) bool { return s.ConfigGeneration >= given && wanted(s) }
	if s := r.State(); is(s) {
		return s
	}
	r.log.forget()
	if s := r.State(); is(s) { // reported in between
		return s
	}
	return r.until(t, what, is)
}

// eventsOf are the events that were told. Those of a state are told behind it: whoever has
// seen the state waits here for them.
func (r *running) eventsOf(action string) []string {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	return r.log.eventsOf(action)
}

func expect(t *testing.T, c *tinyguest.Console, text string) {
	t.Helper()
	if _, err := c.Expect(withPatience(t), text); err != nil {
		t.Fatal(err)
	}
}

// A running machine follows its configuration, seen from inside the guest.
func TestLiveChanges(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	vm := &c.Runner.VM
	vm.MaximumCPUs, vm.CurrentCPUs = 3, 1
	r := start(t, c, d)
	console := r.console(t)
	t.Cleanup(func() {
		if t.Failed() { // once the guest was silent after its reset
			t.Logf("processors:\n%s", tinyguest.Processors(context.Background(), r.State().Socket(qemucmd.SocketToolMonitor)))
		}
	})

	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs = 3 })
	r.now(t, "three CPUs", func(s State) bool {
		return s.CPUs == 3 && condition(s, live.CPUsAdjusted).Status == live.True
	})
	expect(t, console, "vmop-guest: cpu 1 online")
	expect(t, console, "vmop-guest: cpu 2 online")
	if got := command(t, console, "cpus"); !strings.Contains(got, "online 0-2") {
		t.Errorf("the guest's CPUs: %s", got)
	}

	// Beyond what there is room for; memory is changed nevertheless.
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs, r.VM.CurrentRAM = 5, 96<<20 })
	s := r.now(t, "as much as there is room for", reason(live.CPUsAdjusted, live.ReasonAboveMaximum))
	if s.CPUs != 3 {
		t.Errorf("%d CPUs", s.CPUs)
	}
	r.now(t, "the balloon", func(s State) bool { return s.RAM == 96<<20 && condition(s, live.MemoryAdjusted).Status == live.True })
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs, r.VM.CurrentRAM = 3, 0 })
	r.now(t, "all of the memory", func(s State) bool { return s.RAM == 128<<20 })

	// What cannot be changed is said and left.
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.MaximumRAM = 256 << 20 })
	r.now(t, "a restart is needed", func(s State) bool {
		return condition(s, live.RestartRequired).Status == live.True && strings.Contains(condition(s, live.RestartRequired).Message, "vm.maximumRam")
	})
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.MaximumRAM = 128 << 20 })
	r.now(t, "no restart is needed", reason(live.RestartRequired, live.ReasonNoRestartRequired))

	bad := c
	bad.Runner.VM.Firmware = "none"
	var problem *runnerconfig.Error
	if err := r.Reconfigure(bad); !errors.As(err, &problem) {
		t.Errorf("an invalid configuration: %v", err)
	}
	r.now(t, "the refusal", func(s State) bool {
		return strings.Contains(condition(s, ConfigurationAccepted).Message, "vm.firmware")
	})
	other := c
	other.Runner.VM.Name = "other"
	if err := r.Reconfigure(other); err == nil {
		t.Error("the machine changed its name")
	}

	r.Pause()
	r.now(t, "paused", func(s State) bool { return s.Paused && condition(s, live.GuestExecuting).Reason == live.ReasonPaused })
	r.Resume()
	r.now(t, "resumed", func(s State) bool { return !s.Paused && condition(s, live.GuestExecuting).Status == live.True })

	one := int64(1)
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.ResetCounter = &one })
	r.now(t, "the configuration is good again", reason(ConfigurationAccepted, "Valid"))
	expect(t, console, tinyguest.Ready)
	if !r.log.said("the machine was reset (host-qmp-system-reset)") {
		t.Errorf("messages %q", r.log.messages)
	}

	// A paused machine can be shut down.
	r.Pause()
	r.now(t, "paused", func(s State) bool { return s.Paused })
	r.Stop()
	if o, err := r.wait(t); err != nil || o.Cause != CauseRequested {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

// asWithKVM does to a machine what is decided for one that KVM executes, over the
// tools' monitor, until a decision is as wanted. QEMU and the guest are asked to
// release CPUs in the same way there; only software emulation does not outlive it.
func (r *running) asWithKVM(t *testing.T, client *qmp.Client, c runnerconfig.Config, clock clock, wanted func(live.Condition) bool) live.Condition {
	t.Helper()
	changes := client.Subscribe(16, "DEVICE_DELETED")
	defer changes.Close()
	machine := live.Machine{Started: &c, RAM: 128 << 20, KVM: true}
	f := &follower{e: r.Engine, client: client, machine: machine}
	memory := live.Start(&c)
	for ctx := withPatience(t); ; {
		observed, err := f.observe(ctx, desired{config: c})
		if err != nil {
			t.Fatal(err)
		}
		d := live.Decide(live.Input{Config: &c, Machine: machine, Observed: observed, Memory: memory, Now: clock.now()})
		memory = d.Memory
		i := slices.IndexFunc(d.Conditions, func(c live.Condition) bool { return c.Type == live.CPUsAdjusted })
		if wanted(d.Conditions[i]) {
			return d.Conditions[i]
		}
		for _, s := range d.Steps {
			problem := ""
			if err := f.execute(ctx, s); err != nil {
				problem = err.Error()
			}
			memory = memory.Result(s, problem)
		}
		if len(d.Steps) > 0 {
			continue
		}
		if d.Wake.IsZero() {
			t.Fatalf("nothing is left to do, but %+v", d.Conditions[i])
		}
		next, cancel := context.WithTimeout(ctx, clock.until(d.Wake))
		_, _ = changes.Next(next)
		cancel()
	}
}

// CPUs that are no longer desired stay in a machine of software emulation until its next
// start, and that is said. With KVM they leave the guest. This one does nothing
// more then, because the next change of its memory map would end it.
func TestCPUsRemoved(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.MaximumCPUs, c.Runner.VM.CurrentCPUs = 3, 3
	// One thread for all CPUs ends with the first CPU that leaves.
	r := start(t, c, d, func(o *Options) { o.Template = "{{without \"accelerator\"}}\n-accel\ntcg,thread=multi,tb-size=32\n" })
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting && s.CPUs == 3 })
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs = 1 })
	console := r.console(t)
	s := r.now(t, "it waits for the next start", reason(live.CPUsAdjusted, live.ReasonChangesWait))
	if got := condition(s, live.RestartRequired); s.CPUs != 3 || got.Status != live.True || !strings.HasSuffix(got.Message, ": vm.currentCpus") {
		t.Errorf("%d CPUs, %+v", s.CPUs, got)
	}
	if got := command(t, console, "cpus"); !strings.Contains(got, "online 0-2\n") {
		t.Errorf("the guest's CPUs: %s", got)
	}

	r.asWithKVM(t, r.tools(t), c, clock{}, func(c live.Condition) bool { return c.Status == live.True })
	r.now(t, "one CPU", func(s State) bool {
		return s.CPUs == 1 && condition(s, live.CPUsAdjusted).Status == live.True && condition(s, live.RestartRequired).Status == live.False
	})
	if got := command(t, console, "cpus"); !strings.Contains(got, "online 0\n") {
		t.Errorf("the guest's CPUs: %s", got)
	}
	// Software emulation frees what it still uses when a CPU leaves, so that QEMU may
	// end by a signal of its own instead. Nothing may be left then either.
	r.Stop()
	o, err := r.wait(t)
	orderly := err == nil && o.Cause == CauseRequested && o.ExitCode() == ExitOK
	crashed := o.Cause == CauseQEMUFailure && (o.QEMUStatus == "signal: aborted" || o.QEMUStatus == "signal: segmentation fault")
	if !orderly && !crashed {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

// The power-down timeout can be changed while it runs.
func TestTimeoutChangedWhileWaiting(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordIgnorePowerButton)
	*c.Runner.VM.PowerdownTimeout = 3600
	r := start(t, c, d)
	r.console(t)
	r.Stop()
	r.until(t, "the power button is pressed", func(s State) bool { return strings.Contains(s.Message, "power button") })
	short := int64(2)
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.PowerdownTimeout = &short })
	if o, err := r.wait(t); err == nil || o.Cause != CauseForced {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

// CD drives: change, the guest's eject, a locked tray, an empty drive.
func TestCDDrives(t *testing.T) {
	t.Parallel()
	g, err := tinyguest.Ensure(t.Context(), tinyguest.Options{CacheDir: os.Getenv("VMOP_CACHE"), Flavor: tinyguest.FlavorGeneric})
	if err != nil {
		t.Fatalf("%v: install what is missing with: make deps", err)
	}
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.KernelBoot.Kernel, c.Runner.VM.KernelBoot.Initrd = g.Kernel, g.Initrd
	images := t.TempDir()
	image := func(name string) string {
		path := filepath.Join(images, name)
		if err := os.WriteFile(path, append([]byte("disc "+name), make([]byte, 1<<20)...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := image("one"), image("two")
	c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "ide-cd", File: one}, {Type: "ide-cd"}}
	r := start(t, c, d)
	console := r.console(t)
	content := func(drive, want string) {
		t.Helper()
		// The first reads of a new medium fail: the drive tells of the change so.
		var got string
		var err error
		for range 10 {
			if got, err = console.Command(withPatience(t), "read "+drive+" 0 8"); err == nil {
				break
			}
		}
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s holds %s, %v; want %s", drive, got, err, want)
		}
	}
	settled := func(what string) {
		t.Helper()
		r.now(t, what, reason(live.MediaChanged, live.ReasonAsConfigured))
	}
	medium := func(n int, file string) func(*runnerconfig.Runner) {
		return func(r *runnerconfig.Runner) {
			r.VM.Drives = append([]runnerconfig.Drive(nil), r.VM.Drives...)
			r.VM.Drives[n].File = file
		}
	}
	content("sr0", "disc one")
	r.reconfigure(t, &c, medium(1, two))
	r.changed(t, "sr1 to be filled", "cd1", two)
	settled("the empty drive is filled")
	content("sr1", "disc two")

	command(t, console, "eject sr0")
	r.reconfigure(t, &c, medium(1, one))
	r.changed(t, "sr1 to be changed", "cd1", one)
	content("sr1", "disc one")
	if got := command(t, console, "tray sr0"); !strings.Contains(got, "open") {
		t.Errorf("the guest's own eject was undone: %s", got)
	}
	command(t, console, "close sr0")

	command(t, console, "lock sr0")
	r.reconfigure(t, &c, medium(0, two))
	r.now(t, "the guest is asked", func(s State) bool {
		return strings.Contains(condition(s, live.MediaChanged).Message, "asked to open the tray")
	})
	content("sr0", "disc one")
	command(t, console, "unlock sr0")
	command(t, console, "eject sr0")
	r.changed(t, "sr0 to be changed", "cd0", two)
	settled("the locked drive is changed")
	content("sr0", "disc two")

	r.reconfigure(t, &c, medium(1, ""))
	r.changed(t, "sr1 to be emptied", "cd1", "")
	settled("the drive is empty")
	r.reconfigure(t, &c, medium(1, "nbd://host/disc"))
	r.now(t, "the refusal", reason(live.MediaChanged, live.ReasonRefused))
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) {
		r.VM.Drives = append(r.VM.Drives, runnerconfig.Drive{Type: "ide-cd", File: one})
		r.VM.Drives[1].File = ""
	})
	r.now(t, "a drive waits for the restart", func(s State) bool {
		return strings.Contains(condition(s, live.RestartRequired).Message, "vm.drives")
	})
	r.Stop()
	if o, err := r.wait(t); err != nil || o.Cause != CauseRequested {
		t.Errorf("outcome %+v, %v", o, err)
	}
}

// changed waits until QEMU reports a medium, asking by the monitor for tools.
func (r *running) changed(t *testing.T, what, id, file string) {
	t.Helper()
	client, err := qmp.Dial(t.Context(), r.State().Socket(qemucmd.SocketToolMonitor), qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	events := client.Subscribe(16, "DEVICE_TRAY_MOVED")
	ctx := withPatience(t)
	for {
		blocks, err := qmp.Do(ctx, client, qmp.QueryBlock{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if d, ok := cdDrive(b); ok && d.ID == id && r.imagePath(d.Medium) == file {
				return
			}
		}
		next, cancel := context.WithTimeout(ctx, eventGrace)
		_, _ = events.Next(next) // removing a medium causes no event
		cancel()
		if ctx.Err() != nil {
			t.Fatalf("waited in vain for %s; state %+v", what, r.State())
		}
	}
}

// A machine whose configuration is a file in a volume follows the volume.
func TestFollowedMachine(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.MaximumCPUs = 2
	text := func(cpus int) string {
		c.Runner.VM.CurrentCPUs = cpus
		data, err := runnerconfig.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	v := &volume{dir: t.TempDir()}
	v.write(t, map[string]string{"config.yaml": text(1)})
	path := filepath.Join(v.dir, "config.yaml")
	r := start(t, c, d)
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	f := &ConfigFollower{
		Path: path, Refused: r.RefuseConfig, Changed: r.rereadDisplaySecret,
		Config: func(c runnerconfig.Config, _ []string) { _ = r.Reconfigure(c) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Follow(ctx) }()

	v.write(t, map[string]string{"config.yaml": text(2)[:40]})
	r.now(t, "half a configuration is refused", reason(ConfigurationAccepted, "Invalid"))
	v.write(t, map[string]string{"config.yaml": text(2)})
	r.now(t, "the configuration is followed", func(s State) bool {
		return s.CPUs == 2 && condition(s, ConfigurationAccepted).Status == live.True
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// A disk that fails for lack of space pauses the machine and is reported; when
// the machine is resumed, the guest has noticed nothing. Another error of a disk is
// the guest's to handle, and is told of.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "raw", Name: "data", File: filepath.Join(d.Data, "disk.img"), Size: 4 << 20}}
	r := start(t, c, d)
	console := r.console(t)
	client, err := qmp.Dial(t.Context(), r.State().Socket(qemucmd.SocketToolMonitor), qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	fail := func(problem syscall.Errno) { // the next write, once
		t.Helper()
		node := fmt.Sprintf("fail-%d", problem)
		debug := qmp.BlockdevAdd{Driver: "blkdebug", NodeName: node, Options: map[string]any{
			"image":        "drive-0-host-resource",
			"inject-error": []any{map[string]any{"event": "pwritev", "iotype": "write", "errno": int(problem), "once": true}},
		}}
		if _, err := qmp.Do(t.Context(), client, debug); err != nil {
			t.Fatal(err)
		}
		reopen := map[string]any{"options": []any{map[string]any{"driver": "raw", "node-name": "drive-0-backend", "file": node, "discard": "unmap"}}}
		if _, err := client.Execute(t.Context(), "blockdev-reopen", reopen); err != nil {
			t.Fatal(err)
		}
	}
	fail(syscall.ENOSPC)
	if err := console.Send("write vda 0 precious data"); err != nil {
		t.Fatal(err)
	}
	s := r.now(t, "the disk is full", func(s State) bool { return s.Paused })
	if got := condition(s, live.GuestExecuting); got.Status != live.False || !strings.Contains(got.Message, "error of data (") {
		t.Errorf("%+v", got)
	}
	r.Resume()
	r.now(t, "the guest goes on", func(s State) bool { return !s.Paused })
	expect(t, console, "13 bytes written")
	if got := command(t, console, "read vda 0 13"); !strings.Contains(got, "precious data") {
		t.Errorf("the disk holds %s", got)
	}
	fail(syscall.EIO)
	if got, err := console.Command(withPatience(t), "write vda 0 lost data"); !errors.Is(err, tinyguest.ErrCommand) {
		t.Errorf("the guest says %q, %v", got, err)
	}
	r.told(t, "disk error: write of data: Input/output error, action report")
	if r.State().Paused {
		t.Error("the machine is paused")
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

func TestIOError(t *testing.T) {
	disk := func(file, status string) []qmp.BlockInfo {
		return []qmp.BlockInfo{{QDev: "/machine/peripheral/disk0/virtio-backend", IOStatus: status, Inserted: &qmp.BlockDeviceInfo{File: file}}}
	}
	path := filepath.Join(t.TempDir(), "disk.img")
	if e := new(Engine).ioError(disk(path, "nospace"), "no space"); e == nil || e.Device != "disk0" || e.File != path || !e.NoSpace || e.Free == 0 {
		t.Errorf("%+v", e)
	}
	if e := new(Engine).ioError(disk("/nonexistent/disk.img", "nospace"), ""); e == nil || e.NoSpace {
		t.Errorf("waits for space where it cannot be seen: %+v", e)
	}
	if e := new(Engine).ioError(disk(path, "ok"), ""); e != nil {
		t.Errorf("%+v", e)
	}
}

// The display's password and its client.
func TestDisplayPassword(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	secret := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(secret, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("display-password", "first")
	write("password-expiry", "now\n")
	c.Runner.VM.Display = &runnerconfig.Display{SPICE: &runnerconfig.SPICE{Socket: filepath.Join(d.Runtime, qemucmd.SocketSPICE.FileName())}}
	runnerconfig.Default(&c)
	r := start(t, c, d, func(o *Options) { o.DisplaySecretDir = secret })
	s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	if s.DisplayPasswordSerial != 1 || condition(s, live.DisplayPasswordSet).Status != live.True || statusCondition(s, live.ConsoleConnected).Reason != live.ReasonDisconnected {
		t.Errorf("serial %d, %+v", s.DisplayPasswordSerial, s.Conditions)
	}
	write("display-password", "geheimnis")
	r.rereadDisplaySecret()
	r.now(t, "the password is changed", func(s State) bool { return s.DisplayPasswordSerial == 2 })
	write("password-expiry", "tomorrow")
	r.rereadDisplaySecret()
	r.now(t, "the expiry is refused", reason(live.DisplayPasswordSet, live.ReasonRefused))
	write("password-expiry", "+3600")
	r.rereadDisplaySecret()
	s = r.now(t, "the expiry is changed", reason(live.DisplayPasswordSet, live.ReasonAsConfigured))
	if s.DisplayPasswordSerial != 2 {
		t.Errorf("serial %d", s.DisplayPasswordSerial)
	}

	socket := s.Socket(qemucmd.SocketSPICE)
	if conn, err := spice.Open(withPatience(t), spiceAt(socket), "first"); !errors.Is(err, spice.ErrRefused) {
		if err == nil {
			_ = conn.Close()
		}
		t.Errorf("the old password: %v", err)
	}
	conn, err := spice.Open(withPatience(t), spiceAt(socket), "geheimnis")
	if err != nil {
		t.Fatal(err)
	}
	r.now(t, "the client is seen", func(s State) bool {
		return s.ConsoleClient == "unix" && statusCondition(s, live.ConsoleConnected).Status == live.True
	})
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	r.now(t, "the client is gone", func(s State) bool {
		return s.ConsoleClient == "" && statusCondition(s, live.ConsoleConnected).Status == live.False
	})
	if got := r.eventsOf(live.ActionConsole); !slices.Equal(got, []string{"Connection from unix", "Disconnected from unix"}) {
		t.Errorf("events %q", got)
	}
	if r.log.said("geheimnis") {
		t.Error("the password is told")
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// The disks of a pod grow when its volumes have, as the configuration says, and the guest
// sees it: raw and qcow2, a file in a volume of others. What they have is told.
func TestDisksOfPodsGrow(t *testing.T) {
	t.Parallel()
	d, c, volume := testDirs(t), testConfig(t), t.TempDir()
	image, err := os.OpenFile(filepath.Join(volume, "raw.img"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(image.Truncate(1<<20), image.Close())
	}
	if err := errors.Join(err, os.WriteFile(filepath.Join(volume, "packed.img"), qcow2(t), 0o600)); err != nil {
		t.Fatal(err)
	}
	c.Runner.VM.Drives = append(c.Runner.VM.Drives,
		runnerconfig.Drive{Type: runnerconfig.DriveRaw, Name: "raw", File: filepath.Join(volume, "raw.img"), GrowTo: 1 << 20},
		runnerconfig.Drive{Type: runnerconfig.DriveRaw, Name: "packed", File: filepath.Join(volume, "packed.img")},
	)
	first := len(c.Runner.VM.Drives) - 2
	r := start(t, c, d, func(o *Options) { o.Volumes = []string{volume} })
	console := r.console(t)
	r.now(t, "one disk that may grow", func(s State) bool { return slices.Equal(s.Disks, []live.DiskSize{{Name: "raw", Size: 1 << 20}}) })

	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.Drives[first].GrowTo, r.VM.Drives[first+1].GrowTo = 4<<20, 8<<20 })
	r.now(t, "both have grown", func(s State) bool {
		return slices.Equal(s.Disks, []live.DiskSize{{Name: "raw", Size: 4 << 20}, {Name: "packed", Size: 8 << 20}}) && condition(s, live.RestartRequired).Status == live.False
	})
	if got := command(t, console, "disks"); !strings.Contains(got, " 4194304 bytes") || !strings.Contains(got, " 8388608 bytes") {
		t.Errorf("the guest's disks: %s", got)
	}

	// Less is what nobody gets, also while a volume does not tell.
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.Drives[first].GrowTo, r.VM.Drives[first+1].GrowTo = 1<<20, 0 })
	s := r.now(t, "one disk is told of", func(s State) bool { return len(s.Disks) == 1 })
	if s.Disks[0].Size != 4<<20 || condition(s, live.RestartRequired).Status != live.False {
		t.Errorf("%+v", s)
	}
}
