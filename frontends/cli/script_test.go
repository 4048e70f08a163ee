package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/debianguest"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
)

// patience bounds every wait for a guest: many times what an idle machine needs.
const patience = 3 * time.Minute

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, Setup: setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"interrupted-copy": interruptedCopyCommand, "page": pageCommand, "push-disk": pushDiskCommand, "serve-images": serveImagesCommand},
	})
}

// The completions are executed by the shells that they are for.
func TestShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			testbin.Find(t, shell)
			testscript.Run(t, testscript.Params{Files: []string{filepath.Join("testdata", "shells", shell+".txtar")}, UpdateScripts: *update, Setup: setup})
		})
	}
}

// pageCommand writes all manifests of another project's page: page PROJECT FILE.
func pageCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: page PROJECT FILE")
	}
	archive, err := txtar.ParseFile(filepath.Join("..", "..", "vmop", "dialect", "testdata", "page-"+args[0]+".txtar"))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), archive.Files[0].Data, 0o600))
}

// Scripts that start guests wait for these most of the time: they run beside each other.
func TestGuestScripts(t *testing.T) {
	t.Parallel()
	guest := testbin.TinyGuest(t)
	testbin.Find(t, testbin.QEMU)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/guest", UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			if err := setup(e); err != nil {
				return err
			}
			images := filepath.Join(e.WorkDir, "images")
			e.Setenv("IMAGES", images)
			if err := setPort(e); err != nil {
				return err
			}
			return exportGuest(guest, images)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"aged": agedCommand, "answers": answersCommand, "boot-sector": bootSectorCommand, "expect": expectCommand, "guest": guestCommand, "guest-disk": diskOfGuest(guest), "hold-monitor": holdMonitorCommand,
			"kill-copies": killCopiesCommand, "kill-runner": killRunnerCommand, "random-disk": randomDiskCommand, "picture": pictureCommand, "push-disk": pushDiskCommand, "serve-images": serveImagesCommand, "until": untilCommand, "waits": waitsCommand,
		},
	})
}

// A guest with the real agent takes half a minute to boot: it has a test of its own.
func TestDebianGuestScripts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // the first run on a machine builds it
	t.Cleanup(cancel)                                               // scripts run after this function
	guest, err := debianguest.Ensure(ctx, debianguest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	probed, err := hostprobe.Probe(ctx, hostprobe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	virtiofsd := probed.Host.VirtioFSD
	testscript.Run(t, testscript.Params{
		Dir: "testdata/debian", UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			if err := setup(e); err != nil {
				return err
			}
			images := filepath.Join(e.WorkDir, "images")
			if err := exportGuest(tinyguest.Guest{Kernel: guest.Kernel, Initrd: guest.Initrd}, images); err != nil {
				return err
			}
			return setPort(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"agent": agentCommand, "cloud-image": cloudImageOf(guest), "guest-image": guestImageOf(guest),
			"kill-server": killServerCommand, "serve-images": serveImagesCommand, "until": untilCommand,
		},
		// What the virtiofsd of this host can do: that of Debian 12 only serves root, and
		// nobody for reading only.
		Condition: func(cond string) (bool, error) {
			switch v := virtiofsd; cond {
			case "shares":
				return v.Path != "" && (v.Root || !v.Former) && v.Namespaces, nil
			case "readonly-shares":
				return v.ReadOnly, nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
	})
}

// guestImageOf makes an image of the guest's root alone, which a machine with the
// guest's kernel boots: guest-image FILE.
func guestImageOf(guest debianguest.Image) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: guest-image FILE")
		}
		ts.Check(ts.Exec("qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", guest.Disk, args[0]))
	}
}

// cloudImageOf makes an image that boots the guest as those of clouds do:
// cloud-image FILE.
func cloudImageOf(guest debianguest.Image) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: cloud-image FILE")
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ts.Check(guest.WriteCloudImage(ctx, ts.MkAbs(args[0])))
	}
}

// setPort has a script know, as PORT, a port of the loopback interface that nobody listens
// on. It is above those that Linux gives to whoever asks for any and those that are chosen
// for machines without one, and so stays free until a guest has it.
func setPort(e *testscript.Env) error {
	var errs []error
	for range 100 {
		port := strconv.Itoa(61100 + rand.IntN(4000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			e.Setenv("PORT", port)
			return l.Close()
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("find a free port: %w", errors.Join(errs...))
}

// killServerCommand kills the process that serves a machine's shared folder:
// kill-server NAMESPACE/NAME.
func killServerCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill-server NAMESPACE/NAME")
	}
	s, err := machineState(ts, args[0])
	ts.Check(err)
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.RunnerPID))
	ts.Check(err)
	for _, list := range lists {
		children, err := os.ReadFile(list)
		ts.Check(err)
		for _, child := range strings.Fields(string(children)) {
			exe, err := os.Readlink("/proc/" + child + "/exe")
			if err != nil || filepath.Base(exe) != "virtiofsd" {
				continue
			}
			pid, err := strconv.Atoi(child)
			ts.Check(err)
			ts.Check(syscall.Kill(pid, syscall.SIGTERM))
			return
		}
	}
	ts.Fatalf("%s has no server of a shared folder", args[0])
}

// agentCommand waits until the guest agent of NAMESPACE/NAME has its port open.
func agentCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: agent NAMESPACE/NAME")
	}
	s, err := machineState(ts, args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	c, err := qga.Dial(ctx, filepath.Join(s.RuntimeDir, qemucmd.SocketGuestAgent.FileName()))
	ts.Check(err)
	defer c.Close()
	ts.Check(c.Ping(ctx))
}

// exportGuest makes an image repository of the tiny guest. QEMU loads its
// compressed kernel as any other.
func exportGuest(g tinyguest.Guest, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(os.Symlink(g.Kernel, filepath.Join(dir, "vmlinuz")), os.Symlink(g.Initrd, filepath.Join(dir, "initrd")))
}

// setup gives a script a home of its own.
func setup(e *testscript.Env) error {
	// Short, because a socket's path must be.
	run, err := os.MkdirTemp("", "vmop")
	if err != nil {
		return err
	}
	data := filepath.Join(e.WorkDir, "data")
	e.Setenv("XDG_RUNTIME_DIR", run)
	e.Setenv("VMOP_DATA_DIR", data)
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("GORACE", os.Getenv("GORACE"))
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		return err
	}
	e.Setenv("EXAMPLES", examples)
	e.Setenv("DEPLOY", filepath.Join(examples, "..", "deploy"))
	e.Setenv("FORMER", filepath.Join(examples, "..", "vmop", "takeover", "testdata", "cluster"))
	e.Defer(func() {
		// A script that failed may leave a machine behind.
		dirs, _ := filepath.Glob(filepath.Join(data, "machines", "*", "*"))
		for _, dir := range dirs {
			holders, _ := runner.Holders(dir)
			for _, h := range holders {
				_ = syscall.Kill(h.PID, syscall.SIGKILL)
			}
		}
		_ = os.RemoveAll(run)
	})
	return nil
}

// machineState is the state file of a machine: NAMESPACE/NAME.
func machineState(ts *testscript.TestScript, name string) (runner.State, error) {
	return runner.ReadState(filepath.Join(ts.Getenv("VMOP_DATA_DIR"), "machines", filepath.FromSlash(name), "state.json"))
}

// guestConsole connects to a guest's console.
func guestConsole(ts *testscript.TestScript, machine string) *tinyguest.Console {
	s, err := machineState(ts, machine)
	ts.Check(err)
	conn, err := net.Dial("unix", s.Socket(qemucmd.SocketConsole))
	ts.Check(err)
	return tinyguest.NewConsole(conn)
}

// guestCommand asks a guest: guest NAMESPACE/NAME COMMAND...; its answer is the
// standard output. Without a command it waits until the guest is ready.
func guestCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: guest NAMESPACE/NAME [COMMAND...]")
	}
	c := guestConsole(ts, args[0])
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(c.WaitReady(ctx))
	if len(args) == 1 {
		return
	}
	line := strings.Join(args[1:], " ")
	if line == "poweroff" {
		ts.Check(c.Send(line))
		return
	}
	answer, err := c.Command(ctx, line)
	ts.Check(err)
	_, err = ts.Stdout().Write([]byte(answer + "\n"))
	ts.Check(err)
}

// answersCommand asks a guest until its answer has a text: what QEMU tells it, it
// notices in its own time. answers NAMESPACE/NAME TEXT COMMAND...
func answersCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: answers NAMESPACE/NAME TEXT COMMAND...")
	}
	c := guestConsole(ts, args[0])
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(c.WaitReady(ctx))
	for {
		answer, err := c.Command(ctx, strings.Join(args[2:], " "))
		ts.Check(err)
		if strings.Contains(answer, args[1]) {
			return
		}
		if ctx.Err() != nil {
			ts.Fatalf("%s: %q has no %q", args[0], answer, args[1])
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// expectCommand waits until the end of a guest's console has the texts, one after
// the other: expect NAMESPACE/NAME TEXT...
func expectCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: expect NAMESPACE/NAME TEXT...")
	}
	c := guestConsole(ts, args[0])
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, text := range args[1:] {
		_, err := c.Expect(ctx, text)
		ts.Check(err)
	}
}

// holdMonitorCommand keeps a machine's monitor for tools until the script ends:
// hold-monitor NAMESPACE/NAME.
func holdMonitorCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold-monitor NAMESPACE/NAME")
	}
	s, err := machineState(ts, args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := qmp.Dial(ctx, filepath.Join(s.RuntimeDir, qemucmd.SocketToolMonitor.FileName()), qmp.Options{})
	ts.Check(err)
	ts.Defer(func() { _ = client.Close() })
}

// waitsCommand waits until a file that is being written has a text: waits FILE TEXT.
func waitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waits FILE TEXT")
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Check(err)
		}
		if strings.Contains(string(data), args[1]) {
			return
		}
	}
	ts.Fatalf("waited in vain for %q in %s", args[1], args[0])
}

// pictureCommand checks that a file is a picture, readable by its owner only:
// picture FORMAT FILE.
func pictureCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: picture FORMAT FILE")
	}
	path := ts.MkAbs(args[1])
	info, err := os.Stat(path)
	ts.Check(err)
	data, err := os.ReadFile(path)
	ts.Check(err)
	if info.Mode().Perm()&0o077 != 0 {
		ts.Fatalf("%s has the mode %v", args[1], info.Mode())
	}
	switch args[0] {
	case string(host.PicturePNG):
		p, err := png.Decode(bytes.NewReader(data))
		ts.Check(err)
		if p.Bounds().Empty() {
			ts.Fatalf("%s is empty", args[1])
		}
	case string(host.PicturePPM):
		var w, h, depth int
		n, err := fmt.Sscanf(string(data), "P6\n%d %d\n%d\n", &w, &h, &depth)
		ts.Check(err)
		if n != 3 || w == 0 || len(data) < 3*w*h {
			ts.Fatalf("%s: %d by %d pixels in %d bytes", args[1], w, h, len(data))
		}
	}
}

// killRunnerCommand kills a machine's runner and waits for its end: kill-runner
// NAMESPACE/NAME.
func killRunnerCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill-runner NAMESPACE/NAME")
	}
	s, err := machineState(ts, args[0])
	ts.Check(err)
	fd, err := unix.PidfdOpen(s.RunnerPID, 0)
	ts.Check(err)
	defer unix.Close(fd)
	ts.Check(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0))
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds())); err != nil {
		ts.Fatalf("%v", err)
	}
}

// untilCommand waits until a machine is in a phase, Paused or Running, or without
// one until no process has it.
func untilCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: until NAMESPACE/NAME [PHASE]")
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		s, err := machineState(ts, args[0])
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Check(err)
		}
		if len(args) == 2 {
			reached := string(s.Phase) == args[1]
			switch host.Status(args[1]) {
			case host.StatusPaused:
				reached = s.Paused
			case host.StatusRunning:
				reached = s.Phase == runner.PhaseBooting && !s.Paused
			}
			if reached {
				return
			}
		}
		if len(args) == 1 {
			holders, err := runner.Holders(filepath.Join(ts.Getenv("VMOP_DATA_DIR"), "machines", filepath.FromSlash(args[0])))
			ts.Check(err)
			if len(holders) == 0 {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("waited in vain for %s", strings.Join(args, " "))
}
