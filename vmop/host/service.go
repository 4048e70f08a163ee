package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runner"
)

// serviceLook is the time between two looks at a service that starts or restarts.
const serviceLook = 200 * time.Millisecond

// service is a unit that starts a machine with the host, as it was found.
type service struct {
	Unit string
	// System says that it is one of the system's own.
	System bool
	// Ours says that its command runs this machine, of this data directory.
	Ours bool
	// Reached says that a systemd that runs has it.
	Reached bool

	runtime string // of the user's systemd
}

// chooseService is the service that a machine is started by, or nil: then outside says
// why it is started beside a service that there is, in words; empty if there is none.
// root says that the caller may start those of the system, fresh that this start, unlike
// those of a service, may make disks anew.
func chooseService(services []service, root, fresh bool) (use *service, outside string) {
	for i := range services {
		s := &services[i]
		switch {
		case !s.Ours || !s.Reached:
		case s.System && !root:
			outside = "only root may start its service " + s.Unit
		case fresh:
			outside = "its service " + s.Unit + " makes no disk anew; restart it, to have it there"
		default:
			return s, ""
		}
	}
	return nil, outside
}

// services are the units that start a machine with the host.
func (h *Host) services(ctx context.Context, namespace, name string) ([]service, error) {
	var out []service
	for _, path := range h.Enabled(namespace, name) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		command := unitValue(string(text), "ExecStart")
		s := service{Unit: filepath.Base(path), System: h.IsSystemUnit(path)}
		s.Ours = strings.Contains(command+" ", " "+unitWord(h.root)+" ") && strings.HasSuffix(command, " "+unitWord(FullName(namespace, name)))
		systemd := "/run/systemd/system" // as sd_booted(3)
		if !s.System {
			s.runtime = filepath.Dir(h.runtime)
			systemd = filepath.Join(s.runtime, "systemd")
		}
		// What is not the user's own is everybody's (runtimeBase).
		if s.Ours && exists(systemd) && (s.System || filepath.Base(h.runtime) == "vmop") {
			u, err := s.look(ctx)
			if err == nil && (u.load != "loaded" || u.stale) {
				if err = s.systemctl(ctx, "daemon-reload"); err == nil {
					u, err = s.look(ctx)
				}
			}
			s.Reached = err == nil && u.load == "loaded"
		}
		out = append(out, s)
	}
	return out, nil
}

// output runs systemctl, and its error is what that says.
func (s *service) output(ctx context.Context, args ...string) (string, error) {
	if !s.System {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.CommandContext(ctx, "systemctl", append([]string{"--no-ask-password", "--no-pager"}, args...)...)
	if !s.System {
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.runtime)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return string(out), err
}

func (s *service) systemctl(ctx context.Context, args ...string) error {
	_, err := s.output(ctx, args...)
	return err
}

// unitState is what systemd knows of a unit.
type unitState struct {
	load   string // loaded if it has it
	stale  bool   // the file is another one
	active string // active, inactive, failed, activating, deactivating
	sub    string // auto-restart: it waits before it is started again
	pid    int
	status int // the exit status of the process that has ended
}

// waits reports whether systemd will start the unit again.
func (u unitState) waits() bool { return u.active == "activating" && u.sub == "auto-restart" }

func (s *service) look(ctx context.Context) (unitState, error) {
	out, err := s.output(ctx, "show", "-p", "LoadState,NeedDaemonReload,ActiveState,SubState,MainPID,ExecMainStatus", s.Unit)
	if err != nil {
		return unitState{}, err
	}
	return parseUnitState(out)
}

// parseUnitState reads KEY=VALUE lines of systemctl show.
func parseUnitState(text string) (unitState, error) {
	var u unitState
	var err error
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
		number := func() (n int) {
			var e error
			if n, e = strconv.Atoi(value); e != nil {
				err = errors.Join(err, fmt.Errorf("systemctl show: %s is %q, expected a number", key, value))
			}
			return n
		}
		switch key {
		case "LoadState":
			u.load = value
		case "NeedDaemonReload":
			u.stale = value == "yes"
		case "ActiveState":
			u.active = value
		case "SubState":
			u.sub = value
		case "MainPID":
			u.pid = number()
		case "ExecMainStatus":
			u.status = number()
		}
	}
	return u, err
}

// lives reports whether a process is there and has not ended.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return pid > 0 && err == nil && ok && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// startBy has systemd run a machine, and returns when its guest runs.
func (j *Job) startBy(ctx context.Context, s *service, progress func(string)) (Started, error) {
	j.service = s.Unit
	if err := j.keep(); err != nil {
		return Started{}, err
	}
	log, logStart, err := openLog(j.Directories)
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		return Started{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("the guest does not run after %v", startDeadline))
	defer cancel()
	started, err := j.awaitService(ctx, s, progress)
	if failed := (*StartError)(nil); errors.As(err, &failed) {
		failed.Log = logSince(j.Directories.LogFile(), logStart)
		return started, err
	}
	if err != nil && ctx.Err() != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortGrace)
		defer cancel()
		return started, errors.Join(fmt.Errorf("%s: the start was given up: %w", j.FullName(), context.Cause(ctx)), s.systemctl(stopping, "stop", s.Unit))
	}
	return started, err
}

// awaitService starts a service unless systemd just does that, and follows it.
func (j *Job) awaitService(ctx context.Context, s *service, progress func(string)) (Started, error) {
	ticks := time.NewTicker(serviceLook)
	defer ticks.Stop()
	asked, told := false, ""
	for {
		u, err := s.look(ctx)
		if err != nil {
			return Started{}, err
		}
		m, err := j.host.Machine(j.Config.Runner.Namespace, j.Config.Runner.VM.Name)
		switch {
		case err != nil:
			return Started{}, err
		case m.Runner != 0 && (m.Status == StatusRunning || m.Status == StatusPaused):
			return Started{PID: m.Runner, Service: s.Unit}, nil
		case m.Runner != 0 && m.State.Message != told:
			told = m.State.Message
			progress(m.Name + ": " + told)
		}
		running := u.active == "active" || u.active == "activating" && !u.waits()
		switch {
		case u.active == "deactivating" || running && !lives(u.pid): // of the run before, or it is just being noticed
		case running:
			asked = true
		case !asked:
			asked = true
			// One that was given up after some attempts would not be started.
			if err := s.systemctl(ctx, "reset-failed", s.Unit); err != nil && u.active == "failed" {
				return Started{}, err
			}
			if err := s.systemctl(ctx, "start", s.Unit); err != nil {
				return Started{}, err
			}
			continue
		case u.status == runner.ExitOK || u.status == UnitStopped:
			return Started{Ended: true, Service: s.Unit}, nil
		default:
			state := fmt.Sprintf("exit status %d of its service %s", u.status, s.Unit)
			if u.waits() {
				state += ", which systemd starts again"
			}
			return Started{}, &StartError{Name: j.FullName(), ExitCode: u.status, State: state}
		}
		select {
		case <-ctx.Done():
			return Started{}, context.Cause(ctx)
		case <-ticks.C:
		}
	}
}

// keep writes down what the machine is made of, for a process that is not given the
// job.
func (j *Job) keep() (err error) {
	d := j.Directories
	had, err := os.ReadFile(d.ManifestFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	def, err := d.Definition()
	if err != nil {
		return err
	}
	lock, err := runner.LockFor(d.Data, "started")
	if errors.Is(err, runner.ErrLocked) {
		if busy := d.busy(); busy != nil {
			return fmt.Errorf("%s: %w: %w", j.FullName(), ErrBusy, busy)
		}
		return fmt.Errorf("%s: %w", j.FullName(), runner.ErrRunning)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	def.Given = j.Definition.Given
	err = def.write(d)
	if err == nil && !bytes.Equal(had, j.Manifest) {
		err = atomicfile.Replace(d.ManifestFile(), j.Manifest)
	}
	return err
}

// Stop is [Machine.Stop], and has systemd not start the machine again where that is
// about to: it returns the machine as it is then.
func (h *Host) Stop(ctx context.Context, m Machine, o StopOptions) (Machine, error) {
	if err := m.Stop(ctx, o); err != nil {
		return m, err
	}
	services, err := h.services(ctx, m.Namespace, m.Name)
	if err != nil {
		return m, err
	}
	for _, s := range services {
		if !s.Reached {
			continue
		}
		switch u, err := s.look(ctx); {
		case err != nil:
			return m, err
		case u.waits():
			if err := s.systemctl(ctx, "stop", s.Unit); err != nil {
				return m, fmt.Errorf("its service starts it again: %w", err)
			}
		}
	}
	return h.Machine(m.Namespace, m.Name)
}

// Delete removes a machine as [Machine.Delete] does, and shuts it down before if it
// runs. One that systemd starts with the host is refused: disable it first.
func (h *Host) Delete(ctx context.Context, m Machine, o DeleteOptions) (kept []File, err error) {
	if units := h.Enabled(m.Namespace, m.Name); len(units) > 0 {
		return nil, fmt.Errorf("delete %s: %s starts it by its name: disable it first", m.FullName(), units[0])
	}
	if m, err = h.Machine(m.Namespace, m.Name); err != nil { // as it is now
		return nil, err
	}
	if m, err = h.Stop(ctx, m, StopOptions{}); err != nil {
		return nil, err
	}
	return m.Delete(o)
}
