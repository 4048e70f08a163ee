package runner

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The whole life of a machine with all that a configuration can ask for at the
// start, seen from inside the guest; and the same disk at the second start.
func TestLife(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	vm := &c.Runner.VM
	vm.MaximumCPUs, vm.CurrentCPUs = 3, 2
	vm.CPUModel = limits.CPULevel3
	vm.CurrentRAM = 96 << 20
	vm.Network = []runnerconfig.Network{{Type: "user", Device: "virtio-net", MAC: "02:00:00:aa:bb:cc"}}
	disk := filepath.Join(filepath.Dir(d.Data), "disks", "system, the=first.img")
	vm.Drives = []runnerconfig.Drive{{Type: "raw", Name: "system-disk", File: disk, Size: 8 << 20}}

	r := start(t, c, d)
	console := r.console(t)
	s := r.State()
	if s.CPUs != 2 || s.MaximumCPUs != 3 || s.MaximumRAM != 128<<20 || s.QEMUPID == 0 || s.Accelerator != qemucmd.AcceleratorTCG || !strings.HasPrefix(s.MachineType, "pc-q35-") {
		t.Errorf("state %+v", s)
	}
	if got := command(t, console, "mac"); !strings.Contains(got, "02:00:00:aa:bb:cc") {
		t.Errorf("the guest's interfaces: %s", got)
	}
	if got := command(t, console, "uuid"); !strings.Contains(strings.ToLower(got), s.UUID) {
		t.Errorf("the guest's UUID %s, want %s", got, s.UUID)
	}
	if got := command(t, console, "disks"); !strings.Contains(got, "system-disk") {
		t.Errorf("the guest's disks: %s", got)
	}
	if got := command(t, console, "cpus"); !strings.Contains(got, "0-1") {
		t.Errorf("the guest's CPUs: %s", got)
	}
	if got := command(t, console, "cat /proc/cpuinfo"); strings.Count(got, " avx2 ") != 2 || strings.Contains(got, " avx512f ") {
		t.Errorf("the guest's CPUs are not of level 3: %s", got)
	}
	command(t, console, "write vda 4096 precious data")
	r.Stop()
	o, err := r.wait(t)
	if err != nil || o.Cause != CauseRequested || !o.Orderly || o.ExitCode() != ExitOK {
		t.Errorf("outcome %+v, %v", o, err)
	}
	if want := []Phase{PhaseInitializing, PhaseStarting, PhaseBooting, PhaseTerminating, PhaseStopped}; !slices.Equal(r.log.phases(), want) {
		t.Errorf("phases %v, want %v", r.log.phases(), want)
	}
	nothingLeft(t, d)

	again := start(t, c, d)
	console = again.console(t)
	if got := command(t, console, "read vda 4096 13"); !strings.Contains(got, "precious data") {
		t.Errorf("the disk after a restart: %s", got)
	}
	if now := again.State(); now.UUID != s.UUID || now.MachineType != s.MachineType {
		t.Errorf("identity %s %s became %s %s", s.UUID, s.MachineType, now.UUID, now.MachineType)
	}
	if err := console.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	if o, err := again.wait(t); err != nil || o.Cause != CauseGuestShutdown || !o.Orderly {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

func TestGuestAgentIsAskedFirst(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	r := start(t, testConfig(t, tinyguest.WordGuestAgent, tinyguest.WordIgnorePowerButton), d)
	r.console(t)
	// The guest's agent may open its port a moment after the guest is ready: it
	// is asked later then.
	r.Stop()
	if o, err := r.wait(t); err != nil || o.Cause != CauseRequested {
		t.Errorf("outcome %+v, %v; messages %q", o, err, r.log.messages)
	}
	if !r.log.said("guest agent was asked") {
		t.Errorf("the guest agent was not asked; messages %q", r.log.messages)
	}
	nothingLeft(t, d)
}

// A guest that does not listen is stopped within the timeout.
func TestDeafGuest(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordIgnorePowerButton)
	*c.Runner.VM.PowerdownTimeout = 2
	r := start(t, c, d)
	r.console(t)
	r.Stop()
	o, err := r.wait(t)
	if err == nil || o.Cause != CauseForced || o.Orderly || o.ExitCode() != ExitForced {
		t.Errorf("outcome %+v, %v", o, err)
	}
	if !r.log.said("power button was pressed") || !r.log.said("telling QEMU to quit") {
		t.Errorf("messages %q", r.log.messages)
	}
	nothingLeft(t, d)
}

func TestSecondStopShortens(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordIgnorePowerButton)
	*c.Runner.VM.PowerdownTimeout = 3600
	r := start(t, c, d)
	r.console(t)
	r.Stop()
	r.until(t, "the power button is pressed", func(s State) bool { return strings.Contains(s.Message, "power button") })
	r.Stop()
	if o, err := r.wait(t); err == nil || o.Cause != CauseForced {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

func TestCancelledContextStopsAtOnce(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	*c.Runner.VM.PowerdownTimeout = 3600
	r := start(t, c, d)
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	r.cancel()
	if o, _ := r.wait(t); o.Cause != CauseForced {
		t.Errorf("outcome %+v", o)
	}
	nothingLeft(t, d)
}

func TestQEMUDies(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	r := start(t, testConfig(t), d)
	s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	if err := syscall.Kill(s.QEMUPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o, err := r.wait(t)
	if err == nil || o.Cause != CauseQEMUFailure || o.ExitCode() != ExitFailure || !strings.Contains(o.Message, "killed") {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

func TestSWTPMDies(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.UseTPM = true
	c.Runner.VM.KernelBoot.Kernel = testGuest(t).BzImage // with a TPM, the kernel needs ACPI tables
	r := start(t, c, d)
	console := r.console(t)
	if got := command(t, console, "tpm"); !strings.Contains(got, "2") {
		t.Errorf("the guest's TPM: %s", got)
	}
	data, err := os.ReadFile(filepath.Join(d.Runtime, "swtpm.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for _, b := range strings.TrimSpace(string(data)) {
		pid = pid*10 + int(b-'0')
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o, err := r.wait(t)
	if err == nil || o.Cause != CauseHelperFailure || o.ExitCode() != ExitFailure || !strings.Contains(o.Message, "swtpm ended") {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
	if _, err := os.Stat(filepath.Join(d.Data, "tpm2-00.permall")); err != nil {
		t.Errorf("the TPM's state: %v", err)
	}
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*runnerconfig.Config, *Options)
		want   string
	}{
		{"missing disk", func(c *runnerconfig.Config, _ *Options) {
			c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "raw", File: "/nonexistent/disk.img"}}
		}, "vm.drives[0]: disk: open /nonexistent/disk.img: no such file"},
		{"missing kernel", func(c *runnerconfig.Config, _ *Options) {
			c.Runner.VM.KernelBoot.Kernel = "/nonexistent/vmlinuz"
		}, "kernel: open /nonexistent/vmlinuz"},
		{"no KVM", func(c *runnerconfig.Config, _ *Options) { c.Runner.VM.Accelerator = "kvm" }, "KVM"},
		{"no QEMU", func(_ *runnerconfig.Config, o *Options) { o.Host.QEMU = "/nonexistent/qemu" }, "start qemu: fork/exec /nonexistent/qemu"},
		{"QEMU refuses", func(c *runnerconfig.Config, _ *Options) { c.Runner.VM.CPUModel = "no-such-cpu" }, "vm.cpuModel: QEMU has no CPU model no-such-cpu"},
		{"no swtpm", func(c *runnerconfig.Config, o *Options) {
			c.Runner.VM.UseTPM = true
			o.Host.SWTPM = "/nonexistent/swtpm"
		}, "start swtpm"},
		{"a CD that is not there", func(c *runnerconfig.Config, _ *Options) {
			c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "ide-cd", File: "/nonexistent/cd.iso"}}
		}, "/nonexistent/cd.iso"},
		{"more CPUs than the machine type has", func(c *runnerconfig.Config, _ *Options) { c.Runner.VM.MaximumCPUs = 4000 }, "4000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := testDirs(t)
			c := testConfig(t)
			r := start(t, c, d, func(o *Options) { tt.change(&o.Config, o) })
			o, err := r.wait(t)
			if err == nil || o.Cause != CauseStartFailure || o.ExitCode() != ExitStart {
				t.Fatalf("outcome %+v, %v", o, err)
			}
			if !strings.Contains(o.Message, tt.want) {
				t.Errorf("message %q, want %q in it", o.Message, tt.want)
			}
			nothingLeft(t, d)
		})
	}
}

func TestStopBeforeTheGuestRuns(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	r := start(t, testConfig(t), d)
	r.Stop()
	o, err := r.wait(t)
	if err != nil || o.ExitCode() != ExitOK || o.Cause != CauseRequested {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

// A second runner does not touch the machine of the first.
func TestSecondRunner(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	first := startProcess(t, c, d)
	s := first.until(t, PhaseBooting)
	second := start(t, c, d)
	o, err := second.wait(t)
	if !errors.Is(err, ErrRunning) || o.Cause != CauseStartFailure {
		t.Errorf("outcome %+v, %v", o, err)
	}
	if states := second.log.phases(); len(states) > 0 {
		t.Errorf("the second runner told the states %v of the machine of the first", states)
	}
	if now := first.read(t); now.Phase != PhaseBooting || now.QEMUPID != s.QEMUPID {
		t.Errorf("the first runner's state became %+v", now)
	}
	if _, err := os.Stat(filepath.Join(d.Runtime, qemucmd.SocketMonitor.FileName())); err != nil {
		t.Errorf("the first runner's socket: %v", err)
	}
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	first.wait(t)
	nothingLeft(t, d)
}

// kill -9 at five moments: nothing of the disk is lost, the next start works,
// and it never runs beside the QEMU of the killed runner.
func TestKilledRunner(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordIgnorePowerButton)
	disk := filepath.Join(d.Data, "disk.img")
	c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "raw", Name: "data", File: disk, Size: 4 << 20}}
	r := start(t, c, d)
	console := r.console(t)
	command(t, console, "write vda 0 precious data")
	r.cancel()
	r.wait(t)

	moments := []struct {
		name  string
		brief bool // it may be over before it is seen
		at    func(State) bool
	}{
		{"preparing", true, func(s State) bool { return s.Phase == PhaseInitializing }},
		{"starting QEMU", true, func(s State) bool { return s.Phase == PhaseStarting }},
		{"QEMU started", false, func(s State) bool { return s.QEMUPID != 0 }},
		{"guest running", false, func(s State) bool { return s.Phase == PhaseBooting }},
		{"shutting down", false, func(s State) bool { return s.Phase == PhaseTerminating }},
	}
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			p := startProcess(t, c, d)
			if m.name == "shutting down" {
				p.until(t, PhaseBooting)
				if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			seen := func(s State) bool { return m.at(s) || m.brief && s.Phase == PhaseBooting }
			for s := p.untilState(t, seen); !m.at(s); s = p.untilState(t, seen) { // too late: once more
				if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				<-p.done
				p = startProcess(t, c, d)
			}
			written := ""
			if m.name == "guest running" || m.name == "shutting down" {
				// What the guest was told is on its disk stays there.
				conn, err := net.Dial("unix", filepath.Join(d.Runtime, qemucmd.SocketConsole.FileName()))
				if err != nil {
					t.Fatal(err)
				}
				console := tinyguest.NewConsole(conn)
				if err := console.WaitReady(withPatience(t)); err != nil {
					t.Fatal(err)
				}
				written = "while " + m.name
				command(t, console, "write vda 4096 "+written)
				if err := console.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-p.done
			if content, err := os.ReadFile(disk); err != nil || !strings.HasPrefix(string(content), "precious data") || len(content) != 4<<20 {
				t.Fatalf("the disk after the kill: %d bytes, %v", len(content), err)
			} else if got := string(content[4096 : 4096+len(written)]); got != written {
				t.Errorf("the guest wrote %q, the disk has %q", written, got)
			}
		})
	}
	r = start(t, c, d)
	console = r.console(t)
	if got := command(t, console, "read vda 0 13"); !strings.Contains(got, "precious data") {
		t.Errorf("the disk after five kills: %s", got)
	}
	holders, err := Holders(d.Data)
	if err != nil || len(holders) != 1 || !holders[0].IsQEMU() {
		t.Errorf("processes with the machine's lock: %v, %v; want one QEMU", holders, err)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// A QEMU that survived its runner is ended before a new one starts.
func TestOrphanedQEMU(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	if err := makeDataDir(d.Data); err != nil {
		t.Fatal(err)
	}
	lock, err := Lock(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command(testHost(t).QEMU, "-machine", "none", "-nodefaults", "-display", "none", "-S")
	orphan.ExtraFiles = []*os.File{lock}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	holders, err := Holders(d.Data)
	if err != nil || len(holders) != 1 || holders[0].PID != orphan.Process.Pid {
		t.Fatalf("holders %v, %v; want the orphaned QEMU", holders, err)
	}
	r := start(t, testConfig(t), d)
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the orphaned QEMU lives beside the new one")
	}
	if !r.log.said("without its runner") {
		t.Errorf("messages %q", r.log.messages)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

func (s *separate) read(t *testing.T) State {
	t.Helper()
	st, err := ReadState(s.state)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return st
}

func (s *separate) until(t *testing.T, p Phase) State {
	t.Helper()
	return s.untilState(t, func(st State) bool { return st.Phase == p })
}

// untilState looks at the state file until it shows what is waited for; the
// runner's process id tells its states from those of a predecessor.
func (s *separate) untilState(t *testing.T, is func(State) bool) State {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if st := s.read(t); st.RunnerPID == s.cmd.Process.Pid && is(st) {
			return st
		}
		select {
		case err := <-s.done:
			t.Fatalf("the runner ended: %v; state %+v", err, s.read(t))
		default:
		}
	}
	t.Fatalf("waited in vain; state %+v", s.read(t))
	return State{}
}

func (s *separate) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("the runner does not end")
	}
}
