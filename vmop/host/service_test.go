package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A machine is started by a service of its own that systemd has and the caller may
// start, if there is one; and a service that is passed over is told of.
func TestServiceThatStartsAMachine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		services := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) service {
			return service{
				Unit: rapid.SampledFrom([]string{"a.service", "b.service"}).Draw(rt, "unit"), System: rapid.Bool().Draw(rt, "system"),
				Ours: rapid.Bool().Draw(rt, "ours"), Reached: rapid.Bool().Draw(rt, "reached"),
			}
		}), 0, 3).Draw(rt, "services")
		root, fresh := rapid.Bool().Draw(rt, "root"), rapid.Bool().Draw(rt, "fresh")
		runs := func(s service) bool { return s.Ours && s.Reached }
		may := func(s service) bool { return runs(s) && (root || !s.System) && !fresh }
		use, outside := chooseService(services, root, fresh)
		if (use != nil) != slices.ContainsFunc(services, may) || use != nil && !may(*use) {
			rt.Errorf("it is started by %+v", use)
		}
		if (outside != "") != (use == nil && slices.ContainsFunc(services, runs)) {
			rt.Errorf("by %+v, and outside because %q", use, outside)
		}
	})
}

// fakeSystemd is a systemctl that answers what a test has it answer, and writes down
// what it was told.
type fakeSystemd struct {
	*bench
	dir, unit string
}

// newFakeSystemd has the machine of a bench started by a service of its user.
func newFakeSystemd(t *testing.T) fakeSystemd {
	t.Helper()
	b := newBench(t)
	f := fakeSystemd{bench: b, dir: t.TempDir()}
	b.ok(os.WriteFile(filepath.Join(f.dir, "systemctl"), []byte(`#!/bin/sh -eu
shift 3 # --no-ask-password --no-pager --user
case $1 in
show) cat "$SYSTEMD/state" ;;
*) echo "$1 $XDG_RUNTIME_DIR" >>"$SYSTEMD/told"
   test ! -e "$SYSTEMD/$1" || mv "$SYSTEMD/$1" "$SYSTEMD/state" ;;
esac
`), 0o700))
	b.ok(os.Mkdir(filepath.Join(f.dir, "systemd"), 0o700))
	t.Setenv("SYSTEMD", f.dir)
	t.Setenv("PATH", f.dir+":"+os.Getenv("PATH"))
	b.h.getenv = func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": f.dir}[name]
	}
	b.h.runtime = filepath.Join(f.dir, "vmop")
	o, err := b.m.Object()
	b.ok(err)
	u := UnitOf(o.VirtualMachine, []string{"/bin/vmop-cli", "start", "--data-dir", b.h.DataDir(), b.m.FullName()})
	f.unit = u.FileName()
	_, err = b.h.Enable(u)
	b.ok(err)
	return f
}

// unitShow is what systemctl show says.
func unitShow(active, sub string, pid, status int) string {
	return fmt.Sprintf("LoadState=loaded\nNeedDaemonReload=no\nActiveState=%s\nSubState=%s\nMainPID=%d\nExecMainStatus=%d\n", active, sub, pid, status)
}

// is has systemd say that of the unit, now or after a command.
func (f fakeSystemd) is(when, show string) {
	f.Helper()
	f.ok(os.WriteFile(filepath.Join(f.dir, when), []byte(show), 0o600))
}

// told are the commands that systemd has got, in their order.
func (f fakeSystemd) told() string {
	f.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, "told"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.Error(err)
	}
	return strings.ReplaceAll(string(data), " "+f.dir+"\n", " ")
}

// start starts the machine by its service.
func (f fakeSystemd) start(ctx context.Context) (Started, error) {
	f.Helper()
	def, err := f.m.Definition()
	f.ok(err)
	manifest, err := os.ReadFile(f.m.ManifestFile())
	f.ok(err)
	def.Accelerator = "auto" // is given now
	j := &Job{host: f.h, Directories: f.m.Directories, Definition: def, Manifest: manifest}
	j.Config.Runner = runnerconfig.Runner{Namespace: f.m.Namespace, VM: runnerconfig.VM{Name: f.m.Name}}
	started, err := j.Start(ctx, StartOptions{Supervisor: []string{"/bin/false"}})
	if kept, derr := f.m.Definition(); derr != nil || kept.Accelerator != "auto" {
		f.Errorf("what was given is not kept for the service: %+v, %v", kept, derr)
	}
	return started, err
}

func TestServiceThatFails(t *testing.T) {
	for _, c := range []struct {
		name, after, want, told string
		status                  int
	}{
		{"it fails", unitShow("failed", "failed", 0, 4), "exit status 4 of its service vmop.lab.web.service", "reset-failed start ", 4},
		{"it is tried again", unitShow("activating", "auto-restart", 0, 1), "which systemd starts again", "reset-failed start ", 1},
		{"it ends at once", unitShow("inactive", "dead", 0, 0), "", "reset-failed start ", 0},
		{"it is stopped", unitShow("inactive", "dead", 0, UnitStopped), "", "reset-failed start ", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeSystemd(t)
			f.is("state", unitShow("failed", "failed", 0, 1))
			f.is("start", c.after)
			started, err := f.start(t.Context())
			var failed *StartError
			switch {
			case c.want == "":
				if err != nil || !started.Ended || started.Service != f.unit {
					t.Errorf("%+v, %v", started, err)
				}
			case !errors.As(err, &failed) || failed.ExitCode != c.status || !strings.Contains(failed.State, c.want):
				t.Errorf("%v", err)
			}
			if got := f.told(); got != c.told {
				t.Errorf("systemd was told: %s", got)
			}
		})
	}
}

// A wait that is given up gives up the start.
func TestServiceStartIsGivenUp(t *testing.T) {
	f := newFakeSystemd(t)
	f.is("state", unitShow("inactive", "dead", 0, UnitStopped))
	f.is("start", unitShow("active", "running", os.Getpid(), 0))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		for !strings.Contains(f.told(), " start ") && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if _, err := f.start(ctx); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("%v", err)
	}
	if got := f.told(); got != "reset-failed start stop " {
		t.Errorf("systemd was told: %s", got)
	}
}

// A service of another data directory, or one that systemd does not have, starts
// nothing here.
func TestServiceOfAnotherMachine(t *testing.T) {
	f := newFakeSystemd(t)
	f.is("state", "LoadState=not-found\nActiveState=inactive\n")
	f.is("daemon-reload", unitShow("inactive", "dead", 0, 0))
	services, err := f.h.services(t.Context(), "lab", "web")
	if err != nil || len(services) != 1 || !services[0].Ours || !services[0].Reached || f.told() != "daemon-reload " {
		t.Errorf("%+v, %v; systemd was told %s", services, err, f.told())
	}
	f.h.root += "2"
	if services, err = f.h.services(t.Context(), "lab", "web"); err != nil || len(services) != 1 || services[0].Ours || services[0].Reached {
		t.Errorf("%+v, %v", services, err)
	}
}

// A machine that stands still because systemd waits before it starts it again is
// stopped by stopping that.
func TestStopOfAServiceThatWaits(t *testing.T) {
	f := newFakeSystemd(t)
	f.is("state", unitShow("activating", "auto-restart", 0, 1))
	if _, err := f.h.Stop(t.Context(), f.m, StopOptions{}); err != nil || f.told() != "stop " {
		t.Errorf("%v; systemd was told: %s", err, f.told())
	}
	f.is("state", unitShow("inactive", "dead", 0, 0))
	if m, err := f.h.Stop(t.Context(), f.m, StopOptions{}); err != nil || f.told() != "stop " || m.Running() {
		t.Errorf("%v; systemd was told: %s", err, f.told())
	}
}

// A service is no way to take a machine that another runner has.
func TestServiceOfAMachineThatRuns(t *testing.T) {
	f := newFakeSystemd(t)
	f.is("state", unitShow("inactive", "dead", 0, 0))
	lock, err := runner.Lock(f.m.Data)
	f.ok(err)
	defer lock.Close()
	j := &Job{host: f.h, Directories: f.m.Directories}
	j.Config.Runner = runnerconfig.Runner{Namespace: "lab", VM: runnerconfig.VM{Name: "web"}}
	if _, err := j.Start(t.Context(), StartOptions{}); !errors.Is(err, runner.ErrRunning) || f.told() != "" {
		t.Errorf("%v; systemd was told: %s", err, f.told())
	}
}
