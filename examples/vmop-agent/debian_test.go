package main

import (
	"archive/tar"
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/debianguest"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/vmopagent"
)

const debianPatience = 10 * time.Minute

// TestInstalledInDebianGuest installs both agents with their units and rules as the
// README says: udev has to find the port and systemd to start the agents. Debian
// boots once; the first run on a machine builds the guest.
func TestInstalledInDebianGuest(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), debianPatience)
	defer cancel()
	guest, err := debianguest.Ensure(ctx, debianguest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	port, control := bootDebian(ctx, t, dir, guest)
	defer control.Close()

	must := func(program string, args ...string) string {
		t.Helper()
		status, err := control.Run(ctx, qga.Program{Path: program, Args: args, Capture: true})
		if err != nil || status.ExitCode != 0 {
			journal, _ := control.Run(ctx, qga.Program{Path: "journalctl", Args: []string{"-b", "-n", "30", "-o", "cat"}, Capture: true})
			t.Fatalf("%s %q: %v, %+v\n%s%s\njournal:\n%s", program, args, err, status, status.Stdout, status.Stderr, journal.Stdout)
		}
		return string(status.Stdout)
	}
	states := make(chan vmopagent.State, 100)
	users := make(chan string)
	ended := make(chan error, 1)
	defer func() { cancel(); <-ended }()
	go func() {
		ended <- vmopagent.Run(ctx, port, vmopagent.NewMachine(vmopagent.Config{Timeout: debianPatience}, "alice"), vmopagent.Inputs{Users: users}, func(s vmopagent.State) { states <- s })
	}()
	until := func(reason vmopagent.Reason, user string, failure vmopagent.Failure) {
		t.Helper()
		for {
			select {
			case s := <-states:
				t.Logf("%+v", s)
				if s.Reason == reason && s.LoggedInUser == user && s.Failure == failure {
					return
				}
			case <-ctx.Done():
				t.Fatalf("no state %s %q %s", reason, user, failure)
			}
		}
	}
	until(vmopagent.ReasonDisconnected, "", "")
	must("tar", "-C", "/", "-xf", "/dev/vdb")
	must("systemctl", "daemon-reload")
	activate := func(rules string) {
		t.Helper()
		must("cp", "/usr/local/src/"+rules, "/etc/udev/rules.d/")
		must("udevadm", "control", "--reload")
		must("udevadm", "trigger", "--settle", "--action=add", "--subsystem-match=virtio-ports")
	}
	activate("99-vmop-agent-sh.rules")
	until(vmopagent.ReasonLoggedIn, "alice", "")
	users <- "root"
	until(vmopagent.ReasonProcessing, "", vmopagent.FailureRefused)
	users <- "bob"
	until(vmopagent.ReasonLoggedIn, "bob", "")

	// Killed, it is started again by systemd, and asked again.
	must("systemctl", "kill", "--signal=KILL", "vmop-agent-sh.service")
	until(vmopagent.ReasonProcessing, "", "")
	until(vmopagent.ReasonLoggedIn, "bob", "")

	// The Go agent takes its place.
	must("rm", "/etc/udev/rules.d/99-vmop-agent-sh.rules")
	must("systemctl", "stop", "vmop-agent-sh.service")
	until(vmopagent.ReasonDisconnected, "", "")
	activate("99-vmop-agent.rules")
	until(vmopagent.ReasonLoggedIn, "bob", "")
	users <- ""
	until(vmopagent.ReasonNotRequested, "", "")

	if got, want := must("cat", "/run/logins"), "login alice\nlogin bob\nlogin bob\nlogin bob\nlogout\n"; got != want {
		t.Errorf("the programs were called thus:\n%s\nwant:\n%s", got, want)
	}
}

// installation is a tar archive with both agents and their files.
func installation(ctx context.Context, t *testing.T, dir string) []byte {
	t.Helper()
	binary := filepath.Join(dir, "vmop-agent")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	add := func(name string, mode int64, data []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct {
		from, to string
		mode     int64
	}{
		{binary, "usr/local/bin/vmop-agent", 0o755},
		{"vmop-agent.sh", "usr/local/bin/vmop-agent.sh", 0o755},
		{"vmop-agent.service", "etc/systemd/system/vmop-agent.service", 0o644},
		{"vmop-agent-sh.service", "etc/systemd/system/vmop-agent-sh.service", 0o644},
		{"99-vmop-agent.rules", "usr/local/src/99-vmop-agent.rules", 0o644},
		{"99-vmop-agent-sh.rules", "usr/local/src/99-vmop-agent-sh.rules", 0o644},
	} {
		data, err := os.ReadFile(f.from)
		if err != nil {
			t.Fatal(err)
		}
		add(f.to, f.mode, data)
	}
	for _, name := range []string{"login", "logout"} {
		add("usr/local/lib/vmop-agent/"+name, 0o755, []byte("#!/bin/sh\necho "+name+" \"$@\" >>/run/logins\n"))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// bootDebian returns the host's end of the agent's port and a client of the guest
// agent of a machine with the installation on its second disk.
func bootDebian(ctx context.Context, t *testing.T, dir string, guest debianguest.Image) (net.Conn, *qga.Client) {
	t.Helper()
	files := filepath.Join(dir, "files")
	if err := os.WriteFile(files, installation(ctx, t, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay")
	if out, err := exec.CommandContext(ctx, testbin.Find(t, "qemu-img"), "create", "-q", "-f", "qcow2", "-F", "raw", "-b", guest.Disk, overlay).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	argv := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35",
		"-accel", "tcg,thread=multi,tb-size=128", "-m", "768",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", guest.Append + " " + debianguest.WithoutCloudInit,
		"-blockdev", "driver=qcow2,node-name=disk,file.driver=file,file.cache.no-flush=on,file.filename=" + overlay, "-device", "virtio-blk-pci,drive=disk",
		"-blockdev", "driver=raw,node-name=files,read-only=on,file.driver=file,file.filename=" + files, "-device", "virtio-blk-pci,drive=files",
		"-serial", "null", "-device", "virtio-serial-pci",
	}
	cmd := exec.CommandContext(ctx, testbin.Find(t, testbin.QEMU))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	var conns []net.Conn
	for i, name := range []string{tinyguest.PortAgent, tinyguest.PortGuestAgent} {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		_ = l.Close()
		chardev := strings.ReplaceAll(name, ".", "-")
		argv = append(argv, "-chardev", "socket,id="+chardev+",fd="+string(rune('3'+i))+",server=on,wait=off",
			"-device", "virtserialport,chardev="+chardev+",name="+name)
	}
	cmd.Args = append(cmd.Args, argv...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := qga.New(conns[1])
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = conns[0].Close()
		_ = client.Close()
		if t.Failed() {
			t.Logf("QEMU said: %s", output.Bytes())
		}
	})
	booted, cancel := context.WithTimeout(ctx, debianPatience/2)
	defer cancel()
	if err := client.Ping(booted); err != nil {
		t.Fatal(err)
	}
	return conns[0], client
}
