package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// What a guest keeps in its TPM survives a killed runner.
func TestTPMSurvivesAKilledRunner(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.UseTPM = true
	c.Runner.VM.KernelBoot.Kernel = testGuest(t).BzImage
	p := startProcess(t, c, d)
	p.until(t, PhaseBooting)
	conn, err := net.Dial("unix", filepath.Join(d.Runtime, qemucmd.SocketConsole.FileName()))
	if err != nil {
		t.Fatal(err)
	}
	console := tinyguest.NewConsole(conn)
	if err := console.WaitReady(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	tpmAsk(t, console, tpmCommand(0x12a, []uint32{tpmOwner}, fmt.Sprintf("0000"+"000e%08x000b0202000200000004", tpmIndex)))
	tpmAsk(t, console, tpmCommand(0x137, []uint32{tpmOwner, tpmIndex}, "0004"+tpmText+"0000"))
	if err := console.Close(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(contents(t, filepath.Join(d.Runtime, "swtpm.pid")))))
	if err != nil {
		t.Fatal(err)
	}
	if lock, err := os.Stat(filepath.Join(d.Data, LockFile)); err != nil || !holds(pid, lock) {
		t.Errorf("swtpm does not hold the machine's lock: %v", err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	r := start(t, c, d)
	console = r.console(t)
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
		t.Errorf("the first swtpm still lives: %s", exe)
	}
	if got := tpmAsk(t, console, tpmCommand(0x14e, []uint32{tpmOwner, tpmIndex}, "00040000")); !strings.Contains(got, "0004"+tpmText) {
		t.Errorf("the TPM's memory: %s", got)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// A swtpm that outlives its QEMU and its runner is ended before another writes
// the same state.
func TestOrphanedSWTPM(t *testing.T) {
	d := testDirs(t)
	if err := makeDataDir(d.Data); err != nil {
		t.Fatal(err)
	}
	lock, err := Lock(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	// Only its name matters.
	sleep := filepath.Join(t.TempDir(), "swtpm")
	if err := os.WriteFile(sleep, contents(t, testbin.Find(t, "sleep")), 0o700); err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command(sleep, "86400")
	orphan.ExtraFiles = []*os.File{lock}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if holders, err := Holders(d.Data); err != nil || len(holders) != 0 {
		t.Errorf("holders %v, %v; a helper does not run a machine", holders, err)
	}
	r := start(t, testConfig(t), d)
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the orphaned swtpm lives beside the machine")
	}
	if !r.log.said("found swtpm") {
		t.Errorf("messages %q", r.log.messages)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// The state of one TPM is not given to two machines, nor is the first one ended,
// in one process either.
func TestTPMStateIsOneMachines(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	c.Runner.VM.UseTPM = true
	c.Runner.VM.KernelBoot.Kernel = testGuest(t).BzImage
	r := start(t, c, d)
	r.console(t)
	other := testDirs(t)
	other.Data = d.Data
	second := start(t, c, other)
	if o, err := second.wait(t); !errors.Is(err, ErrRunning) {
		t.Errorf("outcome %+v, %v", o, err)
	}
	if s := r.State(); s.Phase != PhaseBooting {
		t.Errorf("the first machine: %+v", s)
	}
	r.cancel()
	r.wait(t)
}
