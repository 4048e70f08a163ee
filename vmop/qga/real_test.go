package qga_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/debianguest"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
)

// patience is more than twenty times what the slowest step takes on a quiet
// machine.
const patience = 10 * time.Minute

// machine is a QEMU with a guest agent's port.
type machine struct {
	ctx    context.Context
	agent  string // the socket of the agent's port
	qmp    string // the socket of the monitor
	exited chan struct{}
	exit   error
}

// boot starts QEMU with the arguments and the agent's port. The test's end ends
// it.
func boot(t *testing.T, args ...string) *machine {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	m := &machine{ctx: ctx, exited: make(chan struct{})}
	cmd := exec.CommandContext(ctx, testbin.Find(t, testbin.QEMU), append([]string{
		"-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35",
		"-device", "virtio-serial-pci",
		"-chardev", "socket,id=agent,fd=3,server=on,wait=off",
		"-device", "virtserialport,chardev=agent,name=" + tinyguest.PortGuestAgent,
		"-chardev", "socket,id=qmp,fd=4,server=on,wait=off", "-mon", "chardev=qmp,mode=control",
	}, args...)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	dir := t.TempDir()
	// Listening before QEMU starts: nobody can be too early.
	for path, name := range map[*string]string{&m.agent: "agent", &m.qmp: "qmp"} {
		*path = filepath.Join(dir, name)
	}
	for _, path := range []string{m.agent, m.qmp} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.exited)
		m.exit = cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-m.exited
		if t.Failed() {
			t.Logf("QEMU ended with %v:\n%s", m.exit, output.Bytes())
		}
	})
	return m
}

// dial connects to the agent's port.
func (m *machine) dial(t *testing.T) *qga.Client {
	t.Helper()
	c, err := qga.Dial(m.ctx, m.agent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// patient returns a context for one call to a guest that may still be booting.
func (m *machine) patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(m.ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// gone waits until the guest has switched the machine off.
func (m *machine) gone(t *testing.T) {
	t.Helper()
	select {
	case <-m.exited:
	case <-m.ctx.Done():
		t.Fatal("QEMU did not end")
	}
	if m.exit != nil {
		t.Errorf("QEMU ended with: %v", m.exit)
	}
}

// frontendOpen asks QEMU whether the guest has the port open.
func (m *machine) frontendOpen(t *testing.T) bool {
	t.Helper()
	c, err := qmp.Dial(m.ctx, m.qmp, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	chardevs, err := qmp.Do(m.ctx, c, qmp.QueryChardev{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range chardevs {
		if d.Label == "agent" {
			return d.FrontendOpen
		}
	}
	t.Fatal("QEMU has lost the port")
	return false
}

func TestTinyGuest(t *testing.T) {
	guest := testbin.TinyGuest(t)
	m := boot(t, "-S", "-accel", "tcg,tb-size=32", "-m", "128", "-serial", "null",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", tinyguest.CommandLine+" "+tinyguest.WordGuestAgent)

	// The machine is still paused: nobody listens, QEMU says so, and what is
	// asked meanwhile fails at its deadline. The same client is used afterwards.
	if m.frontendOpen(t) {
		t.Error("the port of a paused machine is open")
	}
	c := m.dial(t)
	for range 3 {
		ctx, cancel := context.WithTimeout(m.ctx, 20*time.Millisecond)
		if err := c.Ping(ctx); !errors.Is(err, qga.ErrNoAnswer) {
			t.Fatal(err)
		}
		cancel()
	}
	monitor, err := qmp.Dial(m.ctx, m.qmp, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := monitor.Execute(m.ctx, "cont", nil); err != nil {
		t.Fatal(err)
	}
	_ = monitor.Close()
	if err := c.Ping(m.patient(t)); err != nil {
		t.Fatal(err)
	}
	if !m.frontendOpen(t) {
		t.Error("the port of an agent that answers is not open")
	}
	_ = c.Close()

	// A predecessor dies in the middle of a command.
	predecessor, err := net.Dial("unix", m.agent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := predecessor.Write([]byte(`{"execute":"guest-ping"}` + "\n" + `{"execute":"guest-pi`)); err != nil {
		t.Fatal(err)
	}
	_ = predecessor.Close()
	c = m.dial(t)
	info, err := c.OSInfo(m.patient(t))
	if err != nil || info.ID != "vmop-guest" || !json.Valid(info.Raw) {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := c.Info(m.patient(t)); err != nil || info.Version != "0" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := c.HostName(m.patient(t)); !errors.Is(err, qga.ErrCommandNotFound) {
		t.Error(err)
	}
	if err := c.Shutdown(m.patient(t), qga.Powerdown); err != nil {
		t.Error(err)
	}
	m.gone(t)
}

// TestDebianGuest speaks with the real agent. Debian boots once, without
// cloud-init, which would take longer than all the rest; the first run on a machine
// builds the guest.
func TestDebianGuest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	guest, err := debianguest.Ensure(ctx, debianguest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.qcow2")
	if out, err := exec.CommandContext(ctx, testbin.Find(t, "qemu-img"), "create", "-q", "-f", "qcow2", "-F", "raw", "-b", guest.Disk, overlay).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m := boot(t, "-no-reboot", "-accel", "tcg,thread=single,tb-size=128", "-smp", "2", "-m", "768",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", guest.Append+" "+debianguest.WithoutCloudInit,
		"-blockdev", "driver=file,filename="+overlay+",node-name=disk-file,cache.no-flush=on",
		"-blockdev", "driver=qcow2,file=disk-file,node-name=disk", "-device", "virtio-blk-pci,drive=disk",
		"-serial", "null", "-rtc", "base=utc")
	c := m.dial(t)
	// One wait for the agent; everything after it is quick.
	if err := c.Ping(m.patient(t)); err != nil {
		t.Fatal(err)
	}

	info, err := c.Info(m.patient(t))
	if err != nil || info.Version == "" || !info.Supports("guest-fsfreeze-freeze") || info.Supports("guest-make-tea") {
		t.Errorf("Info: %+v, %v", info, err)
	}
	for _, command := range info.Commands {
		if command.Name == "guest-shutdown" && command.Answers {
			t.Error("guest-shutdown answers")
		}
	}
	osinfo, err := c.OSInfo(m.patient(t))
	if err != nil || osinfo.ID != "debian" || osinfo.VersionID != "12" || osinfo.Machine != "x86_64" || osinfo.KernelRelease == "" {
		t.Errorf("OSInfo: %+v, %v", osinfo, err)
	}
	var raw map[string]string
	if err := json.Unmarshal(osinfo.Raw, &raw); err != nil || raw["version-id"] != "12" || raw["pretty-name"] != osinfo.PrettyName {
		t.Errorf("OSInfo.Raw: %s, %v", osinfo.Raw, err)
	}
	nics, err := c.Interfaces(m.patient(t))
	if err != nil || !slices.ContainsFunc(nics, func(i qga.Interface) bool {
		return i.Name == "lo" && slices.Contains(i.Addresses, netip.MustParsePrefix("127.0.0.1/8"))
	}) {
		t.Errorf("Interfaces: %+v, %v", nics, err)
	}
	if now, err := c.GetTime(m.patient(t)); err != nil || time.Since(now).Abs() > time.Hour {
		t.Errorf("GetTime: %v, %v", now, err)
	}

	// No shell in between, both outputs, the input, the exit code.
	status, err := c.Run(m.patient(t), qga.Program{
		Path: "/bin/sh", Args: []string{"-c", `printf '%s|' "$@"; cat; echo oops >&2; exit 3`, "sh", "a b", `$(c)"'`},
		Input: []byte("input"), Capture: true,
	})
	if err != nil || status.ExitCode != 3 || string(status.Stdout) != `a b|$(c)"'|input` || string(status.Stderr) != "oops\n" {
		t.Errorf("Run: %+v, %v", status, err)
	}
	status, err = c.Run(m.patient(t), qga.Program{Path: "/bin/sh", Args: []string{"-c", "kill -9 $$"}})
	if err != nil || !status.Exited || status.Signal != 9 {
		t.Errorf("Run of a program that is killed: %+v, %v", status, err)
	}
	var refusal *qga.Error
	if _, err := c.Exec(m.patient(t), qga.Program{Path: "/none"}); !errors.As(err, &refusal) || refusal.Class != qga.ClassGeneric {
		t.Errorf("Exec of nothing: %v", err)
	}
	// More output than a reply may have: refused, and the client goes on.
	if _, err := c.Run(m.patient(t), qga.Program{Path: "head", Args: []string{"-c", "6000000", "/dev/zero"}, Capture: true}); !errors.Is(err, qga.ErrTooLarge) {
		t.Errorf("Run with much output: %v", err)
	}

	if cpus, err := c.GetVCPUs(m.patient(t)); err != nil || len(cpus) != 2 || !online(cpus, 1) {
		t.Errorf("GetVCPUs: %+v, %v", cpus, err)
	}
	if n, err := c.SetVCPUs(m.patient(t), []qga.VCPU{{LogicalID: 1, Online: false}}); n != 1 || err != nil {
		t.Errorf("SetVCPUs: %d, %v", n, err)
	}
	if cpus, err := c.GetVCPUs(m.patient(t)); err != nil || online(cpus, 1) {
		t.Errorf("GetVCPUs: %+v, %v", cpus, err)
	}
	if n, err := c.SetVCPUs(m.patient(t), []qga.VCPU{{LogicalID: 1, Online: true}}); n != 1 || err != nil {
		t.Errorf("SetVCPUs: %d, %v", n, err)
	}

	if status, err := c.Run(m.patient(t), qga.Program{Path: "hostname", Args: []string{"guest-of-qga"}}); err != nil || status.ExitCode != 0 {
		t.Errorf("hostname: %+v, %v", status, err)
	}
	if name, err := c.HostName(m.patient(t)); err != nil || name != "guest-of-qga" {
		t.Errorf("HostName: %q, %v", name, err)
	}

	frozen, err := c.FSFreeze(m.patient(t))
	if err != nil || frozen < 1 {
		t.Errorf("FSFreeze: %d, %v", frozen, err)
	}
	if s, err := c.FSFreezeStatus(m.patient(t)); err != nil || s != qga.FSFrozen {
		t.Errorf("FSFreezeStatus: %s, %v", s, err)
	}
	if _, err := c.HostName(m.patient(t)); !errors.As(err, &refusal) {
		t.Errorf("HostName while frozen: %v", err)
	}
	if n, err := c.FSThaw(m.patient(t)); err != nil || n != frozen {
		t.Errorf("FSThaw: %d of %d, %v", n, frozen, err)
	}
	if s, err := c.FSFreezeStatus(m.patient(t)); err != nil || s != qga.FSThawed {
		t.Errorf("FSFreezeStatus: %s, %v", s, err)
	}

	c = frozenDisk(t, m, c)

	// Half a command and an unread reply of a predecessor.
	_ = c.Close()
	predecessor, err := net.Dial("unix", m.agent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := predecessor.Write([]byte(`{"execute":"guest-get-osinfo"}` + "\n" + `{"execute":"guest-shutdown","arguments":{"mode":"ha`)); err != nil {
		t.Fatal(err)
	}
	_ = predecessor.Close()
	c = m.dial(t)
	if name, err := c.HostName(m.patient(t)); err != nil || name != "guest-of-qga" {
		t.Errorf("HostName after a predecessor: %q, %v", name, err)
	}

	if err := c.Shutdown(m.patient(t), "explode"); !errors.As(err, &refusal) {
		t.Errorf("Shutdown in a mode that is none: %v", err)
	}
	if err := c.Shutdown(m.patient(t), qga.Powerdown); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	m.gone(t)
}

// online reports whether a processor, which guests list in any order, is switched on.
func online(cpus []qga.VCPU, id int) bool {
	return slices.ContainsFunc(cpus, func(c qga.VCPU) bool { return c.LogicalID == id && c.Online })
}

// frozenDisk looks from outside at the disk of a guest that writes all the time:
// while its file systems are frozen, not one write arrives. A client that goes
// away leaves them so; the next one thaws.
func frozenDisk(t *testing.T, m *machine, c *qga.Client) *qga.Client {
	t.Helper()
	monitor, err := qmp.Dial(m.ctx, m.qmp, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer monitor.Close()
	writes := func() (n int64) {
		stats, err := qmp.Do(m.ctx, monitor, qmp.QueryBlockStats{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stats {
			n += s.Stats.WriteOperations
		}
		return n
	}
	moves := func(what string) {
		t.Helper()
		for before, patient := writes(), m.patient(t); writes() == before; {
			if err := c.Ping(patient); err != nil {
				t.Fatalf("%s: the guest does not write: %v", what, err)
			}
		}
	}
	stands := func(c *qga.Client) {
		t.Helper()
		before := writes()
		for range 40 {
			if s, err := c.FSFreezeStatus(m.patient(t)); err != nil || s != qga.FSFrozen {
				t.Fatalf("FSFreezeStatus: %s, %v", s, err)
			}
		}
		if n := writes() - before; n > 0 {
			t.Errorf("%d writes to a frozen disk", n)
		}
	}
	if _, err := c.Exec(m.patient(t), qga.Program{Path: "/bin/sh", Args: []string{"-c", "while sleep 0.2; do date >/root/mark; sync; done"}}); err != nil {
		t.Fatal(err)
	}
	moves("before")
	if err := c.Frozen(m.patient(t), 5*time.Minute, func(context.Context, int) error { stands(c); return nil }); err != nil {
		t.Errorf("Frozen: %v", err)
	}
	moves("after")
	if _, err := c.FSFreeze(m.patient(t)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	c = m.dial(t)
	stands(c)
	if n, err := c.FSThaw(m.patient(t)); err != nil || n < 1 {
		t.Errorf("FSThaw by the next client: %d, %v", n, err)
	}
	moves("after the next client has thawed")
	return c
}
